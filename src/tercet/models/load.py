"""``tercet.load``: a model's name to a scorer."""

from os import PathLike

from tercet.config import Precision
from tercet.models.bi import BiEncoder


def load(
    source: str | PathLike[str], *, precision: Precision = "fp32", device: str | None = None
) -> BiEncoder:
    """The scorer that ``source`` names.

    Args:
        source: ``"bi"`` (comes with the install), a folder, or a hub id such as ``"org/name"``.
        precision: ``"fp32"``, or ``"bf16"`` for about twice the speed and nearly the same ranking.
        device: such as ``"cpu"`` or ``"cuda:0"``; a GPU is used by default where there is one.
    """
    return BiEncoder.load(source, precision=precision, device=device)
