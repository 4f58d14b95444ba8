"""Settings of bulk jobs."""

from dataclasses import dataclass

from tercet.errors import InputError
from tercet.inputs import check_count
from tercet.settings.models import Precision, Side


@dataclass(frozen=True, kw_only=True)
class WorkersConfig:
    """Where a bulk job runs."""

    address: str | None = None
    """A Ray cluster, such as ``ray://head:10001``, ``head:6379`` or ``auto``. Default: this machine."""
    workers: int = 1
    """Workers on CPUs. One worker on this machine needs no Ray."""
    gpu_workers: int = 0
    """Workers with a GPU each."""
    cpus_per_worker: int = 1
    """CPUs, and threads, of each worker."""
    attempts: int = 5
    """How often a part may be started. A worker that dies is started again, and another takes its part."""

    def __post_init__(self) -> None:
        for name in ("cpus_per_worker", "attempts"):
            check_count(name, getattr(self, name))
        for name in ("workers", "gpu_workers"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} must be at least 0, got {getattr(self, name)}")
        if not self.workers + self.gpu_workers:
            raise InputError("a job needs a worker: set workers or gpu_workers to at least 1")

    @property
    def needs_ray(self) -> bool:
        """Whether other processes work; otherwise this process does, without Ray."""
        return self.address is not None or self.workers != 1 or self.gpu_workers > 0


@dataclass(frozen=True, kw_only=True)
class EncodeConfig:
    """Texts to vectors."""

    model: str
    """A bi- or poly-encoder."""
    precision: Precision = "fp32"
    """``fp32`` or ``bf16``; on a GPU also ``fp16``."""
    side: Side = "candidate"
    """Whether the texts are contexts or candidates."""


@dataclass(frozen=True, kw_only=True)
class ScoreConfig:
    """Pairs of texts to scores."""

    model: str
    """A model of any kind."""
    precision: Precision = "fp32"
    """``fp32`` or ``bf16``; on a GPU also ``fp16``."""


@dataclass(frozen=True, kw_only=True)
class LabelConfig:
    """Examples to the mean scores of teachers."""

    models: tuple[str, ...]
    """The teachers, usually cross-encoders."""
    precision: Precision = "fp32"
    """``fp32`` or ``bf16``; on a GPU also ``fp16``."""


ROWS_PER_SHARD = 8192
"""Rows of a part of a bulk job, which becomes one file."""
