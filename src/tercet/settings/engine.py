"""How the engine of the server batches and queues texts."""

from dataclasses import dataclass

from tercet.errors import InputError
from tercet.inputs import check_count


@dataclass(frozen=True, kw_only=True)
class EngineConfig:
    """Batches, queues and the cache of the engine."""

    batch_tokens: int | None = None
    """Tokens per forward pass. Default: 1,024 on a CPU and 32,768 on a GPU. A new request waits for at least
    one forward pass, so smaller ones answer sooner."""
    batches_ahead: int = 1
    """Batches that are handed to the device at a time. 2 saves a GPU the pause between two batches, and
    makes new requests wait for one more."""
    turn_tokens: int = 512
    """Tokens that a request adds to a batch before other waiting requests have their turn."""
    max_request_tokens: int = 131_072
    """Tokens of a request for one model, estimated by its characters."""
    max_queued_tokens: int = 262_144
    """Tokens that wait for each model at most. Requests beyond that are refused."""
    max_wait_seconds: float = 30.0
    """A request is refused if the texts before it are expected to take longer."""
    burst_requests: int = 80
    """Requests that may wait at the same time. If more do, the engine is overloaded: it then accepts only
    what it can begin almost at once, until no request was refused for a second."""
    tokenizer_threads: int = 2
    """Threads that tokenize texts while a forward pass runs."""
    cache_bytes: int = 0
    """Memory for vectors and scores that were computed before. Default: no cache."""

    def __post_init__(self) -> None:
        for name in (
            "batches_ahead",
            "turn_tokens",
            "max_request_tokens",
            "max_queued_tokens",
            "burst_requests",
            "tokenizer_threads",
        ):
            check_count(name, getattr(self, name))
        if self.batch_tokens is not None:
            check_count("batch_tokens", self.batch_tokens)
        if not self.max_wait_seconds > 0:
            raise InputError(f"max_wait_seconds must be positive, got {self.max_wait_seconds}")
        if self.cache_bytes < 0:
            raise InputError(f"cache_bytes must be at least 0, got {self.cache_bytes}")
