"""How OpenVINO is imported."""

import subprocess
import sys

import pytest

UNWANTED = ("openvino.tools.ovc", "openvino_telemetry", "absl", "torch", "transformers")


def in_a_new_process(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_the_runtime_imports_neither_the_converter_nor_telemetry() -> None:
    code = (
        f"import sys, tercet.encoders.openvino.compiled; print(*[m for m in {UNWANTED} if m in sys.modules])"
    )
    assert in_a_new_process(code).split() == []


@pytest.mark.parametrize(
    "code",
    [
        "openvino.convert_model",
        "from openvino import convert_model",
        "from openvino.tools.ovc import convert_model",
    ],
)
def test_other_code_still_gets_the_converter(code: str) -> None:
    assert not in_a_new_process(f"import tercet.encoders.openvino\nimport openvino\n{code}")


def test_an_unknown_name_of_openvino_is_an_attribute_error() -> None:
    code = "import tercet.encoders.openvino, openvino; print(hasattr(openvino, 'no_such_name'))"
    assert in_a_new_process(code).split() == ["False"]
