"""What the server offers, to whom, and within which limits."""

import re
from dataclasses import dataclass, field, fields
from pathlib import Path

from tercet.errors import InputError
from tercet.inputs import check_choice, check_count
from tercet.settings.engine import EngineConfig
from tercet.settings.models import PRECISIONS, Precision

LOOPBACK = ("127.0.0.1", "::1", "localhost")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""What a model or an index may be called in a request."""
DEFAULT_MODELS = ("bi", "poly", "cross")


@dataclass(frozen=True, kw_only=True)
class ServeLimits:
    """Limits on each request. A request beyond one is refused with an error that names it."""

    max_body_bytes: int = 8 << 20
    """Bytes of a request."""
    max_texts: int = 4096
    """Texts, candidates or pairs in a request."""
    max_text_characters: int = 100_000
    """Characters of a text, all turns of a context together."""
    max_k: int = 1000
    """Results of a search."""
    max_explained_characters: int = 4000
    """Characters of a context and a candidate to explain."""
    max_requests: int = 256
    """Requests at the same time."""
    max_connections: int = 1024
    """Open connections."""
    request_seconds: float = 60.0
    """Time for an answer, from the moment when the request is complete."""
    body_seconds: float = 10.0
    """Time for a client to send its request."""
    send_seconds: float = 30.0
    """Time for a client to read its answer."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name.startswith("max_"):
                check_count(each.name, value)
            elif not value > 0:
                raise InputError(f"{each.name} must be positive, got {value}")


@dataclass(frozen=True, kw_only=True)
class ServeConfig:
    """Models, indexes, address and limits of the server."""

    models: dict[str, str] = field(default_factory=dict)
    """Names and sources of models: packaged ones, folders or hub ids. Default: bi, poly and cross, or the
    models of the indexes."""
    indexes: dict[str, str] = field(default_factory=dict)
    """Names of indexes, and their folders or addresses."""
    reranker: str | None = None
    """Name of the model that reranks. Default: the first cross-encoder."""
    host: str = "127.0.0.1"
    """Address to listen on. Others than loopback need API keys."""
    port: int = 8080
    """Port to listen on. 0 takes a free one."""
    workers: int = 1
    """Processes. Each has its own copy of the models."""
    precision: Precision = "fp32"
    """fp32, or bf16; on a CPU also int8, on a GPU fp16."""
    device: str | None = None
    """Device of the models, such as ``cuda``. Default: a GPU if there is one."""
    keys_file: str | None = None
    """File of API keys, one per line: ``read KEY`` or ``write KEY``."""
    read_only: bool = False
    """Refuse changes of indexes."""
    playground: bool = True
    """Serve the page at ``/``."""
    cors_origins: tuple[str, ...] = ()
    """Origins whose pages may call the server, such as ``https://example.org``. Default: none."""
    allowed_hosts: tuple[str, ...] = ()
    """Further names of this machine to which a server without API keys answers. Default: only localhost and
    the loopback addresses, so that a web page cannot reach it by a name of its own."""
    log_texts: bool = False
    """Write the texts of requests to the log."""
    drain_seconds: float = 30.0
    """Time for open requests after SIGTERM."""

    def __post_init__(self) -> None:
        for kind, named in (("model", self.models), ("index", self.indexes)):
            for name in named:
                if not NAME.fullmatch(name):
                    raise InputError(
                        f"the name of a {kind} has letters, digits, '.', '_' and '-', got {name!r}: give it "
                        f"one, such as --{kind} my-{kind}=PATH"
                    )
        check_choice("precision", self.precision, PRECISIONS)
        check_count("workers", self.workers)
        if not 0 <= self.port < 65536:
            raise InputError(f"port must be from 0 to 65535, got {self.port}")
        if not self.drain_seconds > 0:
            raise InputError(f"drain_seconds must be positive, got {self.drain_seconds}")

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect."""
        return self.host in LOOPBACK


@dataclass(frozen=True, kw_only=True)
class ServerConfig:
    """All settings of the server, one table of a TOML file each."""

    serve: ServeConfig = field(default_factory=ServeConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    limits: ServeLimits = field(default_factory=ServeLimits)


def named_source(given: str) -> tuple[str, str]:
    """The name and the source in ``NAME=SOURCE`` or ``SOURCE``, whose last part is then the name."""
    name, equals, source = given.partition("=")
    if equals and NAME.fullmatch(name) and source:
        return name, source
    if "://" in given:  # an address: its options are no part of the name
        return given.partition("?")[0].rpartition("/")[2].rpartition(".")[2], given
    return Path(given).name.removesuffix(".tercet"), given
