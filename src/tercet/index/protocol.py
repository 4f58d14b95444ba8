"""What ``Retriever`` needs of a store. A folder has it, and so has a database of ``index.backends``."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from tercet.index.conditions import Where
from tercet.index.items import Item
from tercet.index.owners import CandidateParts
from tercet.index.ranking import Ranking
from tercet.records import Codes, Floats, Ints

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a model encodes again what was lost."""

    texts: Callable[[Sequence[str]], Floats]
    """Texts to vectors ``[C, D]``."""
    update: Callable[[Sequence[Item]], None]
    """Stores candidates with their present texts and new vectors."""


class View(Protocol):
    """The candidates during one search. Candidates are identified by numbers."""

    def bound(self) -> int:
        """The number of candidates, or a larger number."""

    def select(self, where: Where) -> Any:
        """The candidates that meet all conditions, in a form for the other methods."""

    def by_vectors(
        self, codes: Codes, k: int, *, scale: float, exact: bool, selection: Any = None
    ) -> list[Ranking]:
        """The ``k`` best candidates of each context.

        Args:
            scale: multiplies the logits of the candidates' attention over the codes, as in ``match``.
            exact: compare with every vector, even if there is a graph.
            selection: what ``select`` returned. Default: all candidates.
        """

    def by_words(self, text: str, k: int, selection: Any = None) -> dict[int, float]:
        """The scores of at most ``k`` candidates that have words of a text, best first."""

    def items(self, numbers: Ints) -> dict[int, Item]:
        """Candidates by number; unknown numbers are left out."""


class CandidateStore(Protocol):
    """Candidates with their vectors, and settings of the index, such as the model that built it."""

    width: int
    has_lexical: bool
    is_chunked: bool

    @property
    def name(self) -> str:
        """What messages call the store: a folder, or an address without its secrets."""

    @property
    def is_finished(self) -> bool:
        """Whether no build of the index was interrupted."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Item]: ...

    def contains(self, id_: str) -> bool:
        """Whether there is a candidate with an id."""

    def get(self, ids: Sequence[str]) -> list[Item]:
        """The candidates with these ids, which must exist."""

    def read(self, call: Callable[[View], T]) -> T:
        """What ``call`` returns. It may be called again if a connection is lost, so it must only read."""

    def columns(self) -> list[str]:
        """The names in the metadata of all candidates, sorted."""

    def check_column(self, column: str) -> None:
        """Raise if no candidate has a column in its metadata."""

    def count_where(self, where: Where) -> int:
        """The number of candidates that meet all conditions."""

    def lexical_terms(self, text: str) -> list[str]:
        """The terms of a text as the lexical index has them; none without such an index."""

    def metadata(self, name: str) -> Any:
        """A value of the store's metadata; None if it is not set."""

    def set_metadata(self, metadata: Mapping[str, Any]) -> None:
        """Set values of the store's metadata."""

    def summary(self) -> dict[str, Any]:
        """The size, settings and model of the index."""

    def add(
        self,
        items: Sequence[Item],
        vectors: Floats,
        *,
        parts: CandidateParts | None = None,
        store_metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Add candidates with new ids, all or none of them, and set values of the store's metadata."""

    def update(self, items: Sequence[Item], vectors: Floats, *, parts: CandidateParts | None = None) -> None:
        """Replace candidates that have these ids, and add the others."""

    def update_metadata(self, metadata: Mapping[str, Mapping[str, Any]]) -> None:
        """Change values in the metadata of candidates, by id; None removes one."""

    def remove(self, ids: Sequence[str]) -> None:
        """Remove candidates, which must exist."""

    def compact(self, *, graph_threshold: int = ...) -> None:
        """Make search fast after many changes; with enough vectors, build a graph."""

    def save(self, path: Path) -> "CandidateStore":
        """A copy of the store in a new folder."""

    def export(self, path: Path, *, vectors: Path | None = None, overwrite: bool = False) -> int:
        """Write id, text and metadata of each candidate to a JSONL file; returns how many were written."""

    def batches(self, *, with_vectors: bool) -> "Iterator[tuple[list[Item], Floats | None]]":
        """All candidates in batches, as they are at one moment, with their vectors ``[C, D]`` or None."""

    def problems(self) -> list[str]:
        """What is wrong with the store, one line per problem."""

    def repair(self, encoding: Encoding, *, accept_loss: bool = False) -> int:
        """Mend what is wrong; returns how many vectors were encoded."""

    def marker(self) -> object:
        """Identifies what is stored under the name; None if nothing is there any more."""

    def delete(self) -> None:
        """Delete the index, and nothing else."""

    def close(self) -> None:
        """Close files or connections."""
