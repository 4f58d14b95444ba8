"""Where training begins: a finished model, or an untrained one of any kind over a backbone."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from tercet.config import BiConfig, CrossConfig, PolyConfig, PoolingConfig, PoolingKind, cross_settings
from tercet.errors import InputError
from tercet.inputs import check_choice, check_seed, with_tuples
from tercet.models.bi import BiEncoder
from tercet.models.cross import CrossEncoder
from tercet.models.load import AnyScorer, load
from tercet.models.manifest import reading_settings
from tercet.models.poly import PolyEncoder
from tercet.models.sources import lasting_name

StartKind: TypeAlias = Literal["model", "bi", "poly", "cross"]
START_KINDS: tuple[StartKind, ...] = get_args(StartKind)

CONFIGS: dict[str, type[BiConfig] | type[PolyConfig] | type[CrossConfig]] = {
    "bi": BiConfig,
    "poly": PolyConfig,
    "cross": CrossConfig,
}


@dataclass(frozen=True, kw_only=True)
class Start:
    """How a scorer is made before it learns."""

    kind: StartKind = "model"
    """``model``: the one that ``source`` names, as it is. Otherwise an untrained one over ``source``."""
    source: str = "bi"
    """``bi`` (comes with tercet), a folder, or a hub id; of a finished model also ``poly`` and ``cross``."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Of an untrained one: the fields of its kind's config, such as ``codes``."""
    pooling: tuple[PoolingKind, ...] = ("mean",)
    """Of an untrained bi-encoder."""
    max_tokens: int | None = None
    """Where texts are cut; the backbone's own limit by default."""
    seed: int = 0
    """Of the weights that the backbone does not have."""

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, START_KINDS)
        check_seed(self.seed)
        if self.kind == "model":
            if self.settings or self.max_tokens is not None:
                raise InputError(
                    f"a finished model has its settings: {', '.join(self.settings) or 'max_tokens'} would be "
                    f"for an untrained one (kind = {', '.join(CONFIGS)}) or for tercet pretrain"
                )
        else:
            self.config()
            PoolingConfig(kinds=self.pooling)

    def config(self) -> Any:
        """The settings as the kind's config, with its defaults."""
        known: Any = CONFIGS[self.kind]
        try:
            return known(**with_tuples(self.settings))
        except TypeError as error:
            names = ", ".join(known.__dataclass_fields__)
            raise InputError(f"a {self.kind}-encoder cannot be made so ({error}): it has {names}") from None


def make_scorer(start: Start, *, device: str | None = None) -> AnyScorer:
    """The scorer, in float32."""
    if start.kind == "model":
        return load(start.source, device=device)
    more: dict[str, Any] = {"config": start.config(), "max_tokens": start.max_tokens, "device": device}
    if start.kind == "bi":
        return BiEncoder.from_backbone(start.source, pooling=PoolingConfig(kinds=start.pooling), **more)
    made = PolyEncoder if start.kind == "poly" else CrossEncoder
    return made.from_backbone(start.source, seed=start.seed, **more)


def resolved(start: Start) -> dict[str, Any]:
    """Every setting, those that were not given too."""
    table = asdict(start)
    if start.kind == "model":
        return table
    config = start.config()
    return {**table, "settings": cross_settings(config) if start.kind == "cross" else asdict(config)}


def written_start(start: Start) -> dict[str, Any]:
    """For a folder that holds only what was learnt: where that began."""
    return resolved(start) | {"source": lasting_name(start.source)}


def read_start(folder: Path, manifest: dict[str, Any]) -> Start:
    """What ``written_start`` has put under ``start`` in a folder's manifest."""
    with reading_settings(folder):
        return Start(**with_tuples(manifest["start"]))


def outside_transformers(names: Iterable[str]) -> set[str]:
    """Of a scorer's weights those of layers of our own, such as codes or a head."""
    return {name for name in names if ".transformer." not in name}
