"""The work of a job: what is done with the rows of a part. A kind of job is one class."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tercet.formats.load import GPU_DEVICES, load
from tercet.settings.models import Precision

if TYPE_CHECKING:
    from tercet.scorers.loaded import LoadedScorer

Record: TypeAlias = dict[str, Any]
"""A row as the work needs it, of values that JSON has."""


class Work(ABC):
    """Does the parts of a job, with a model that is loaded once in each worker."""

    @abstractmethod
    def __init__(self, config: Any, device: str) -> None:
        """Load what the work needs, on ``cpu`` or ``cuda``."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """What must be the same in all workers, such as the model's fingerprint; goes into the manifest."""

    @abstractmethod
    def run(self, records: Sequence[Record]) -> Any:
        """The rows of the part as a table of Arrow."""


@dataclass(frozen=True)
class Task:
    """A kind of work with its settings, as it is sent to workers."""

    work: type[Work]
    config: Any

    def start(self, device: str) -> Work:
        """The work, with its model loaded."""
        return self.work(self.config, device)


def load_on(model: str, precision: Precision, device: str) -> "LoadedScorer":
    """The scorer of a worker; on a CPU in the faster runtime, unless torch would choose a GPU itself."""
    has_gpu = any(Path(each).exists() for each in GPU_DEVICES)
    return load(model, precision=precision, device=device if device != "cpu" or has_gpu else None)
