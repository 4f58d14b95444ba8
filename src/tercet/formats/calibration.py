"""``calibration.json`` in a model folder."""

from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from tercet.errors import FileError, ModelError
from tercet.files.structured import read_json, write_json
from tercet.inputs import check_choice
from tercet.scorers.calibration import CURVES, Calibration
from tercet.settings.calibration import METHODS
from tercet.settings.tables import lists_to_tuples

NAME = "calibration.json"


def read_calibration(folder: Path) -> Calibration | None:
    """The calibration saved in a model folder, or None."""
    file = folder / NAME
    if not file.is_file():
        return None
    try:
        content: dict[str, Any] = read_json(file)
        check_choice("method", content["method"], METHODS)
        curve: Any = CURVES[content["method"]]
        parameters = lists_to_tuples({each.name: content[each.name] for each in fields(curve)})
        return Calibration(
            curve(**{name: _numbers(value) for name, value in parameters.items()}),
            float(content["threshold"]),
            float(content["f1"]),
            int(content["pairs"]),
        )
    except (FileError, KeyError, TypeError, ValueError) as error:
        raise ModelError(f"{file} is malformed ({error}): calibrate the model again") from error


def write_calibration(calibration: Calibration | None, folder: Path) -> None:
    """Write what ``read_calibration`` reads, if there is a calibration."""
    if calibration is None:
        return
    content = asdict(calibration)
    write_json(folder / NAME, {"method": calibration.curve.method, **content.pop("curve"), **content})


def _numbers(value: Any) -> float | tuple[float, ...]:
    return tuple(map(float, value)) if isinstance(value, tuple) else float(value)
