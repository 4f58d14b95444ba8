"""schemathesis makes requests from the OpenAPI document: no server errors, and answers fit the document."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.serve.running import running_server, tiny_models, tiny_options

pytestmark = pytest.mark.slow

PROGRAM = shutil.which("schemathesis", path=str(Path(sys.executable).parent)) or shutil.which("schemathesis")
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,"
    "negative_data_rejection"
)


@pytest.mark.skipif(PROGRAM is None, reason="schemathesis is not installed: pip install schemathesis")
def test_generated_requests_find_no_fault(tmp_path: Path) -> None:
    folder = tiny_models(tmp_path)
    with running_server(*tiny_options(folder), log=folder / "log") as server:
        line = [str(PROGRAM), "run", f"{server.url}/openapi.json", "--seed", "26", "--max-examples", "60"]
        line += ["--checks", CHECKS, "--phases", "examples,coverage,fuzzing", "--no-color"]
        line += ["--exclude-path", "/health/ready"]
        found = subprocess.run(line, capture_output=True, text=True, timeout=380, cwd=tmp_path)
        assert found.returncode == 0, found.stdout[-8000:]
        assert "Traceback" not in server.log.read_text()
