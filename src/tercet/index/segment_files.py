"""The segments of a store on disk, and the HNSW graphs beside them."""

import re
from pathlib import Path
from uuid import uuid4

from tercet.files.atomic import PARTIAL_NAME, writing
from tercet.files.digest import file_digest
from tercet.files.removal import remove_own
from tercet.index.database import Database
from tercet.index.faiss_index import write_graph
from tercet.index.segment import MANIFEST, Segment, segment_problem

GRAPH_FILE = "graph.faiss"
GRAPH = "graph"
"""The setting of the store with the name and the digest of the graph."""
SEGMENT_NAME = re.compile(rf"\d{{12}}-[0-9a-f]{{8}}|{PARTIAL_NAME}")
"""The names of segment folders, complete and partial."""
SEGMENT_FILE = re.compile(
    r"(ids|quantized|scales|errors|norms|vectors)\.npy|"
    rf"{re.escape(MANIFEST)}|{re.escape(GRAPH_FILE)}|{PARTIAL_NAME}"
)
"""The names of the files of a segment."""


class SegmentFiles:
    """One folder per segment. The database lists those that belong to the store; others are leftovers."""

    def __init__(self, folder: Path, database: Database) -> None:
        self.folder = folder
        self.loaded: dict[str, Segment] = {}
        """The segments that were loaded last, by name."""
        self._database = database

    def names(self) -> list[str]:
        """The segments that belong to the store."""
        return [str(name) for name in self._database.column("segments", "name")]

    def load(self) -> dict[str, Segment]:
        """The segments of the store by name; those that were loaded before are reused."""
        known = self.loaded
        self.loaded = {name: known.get(name) or Segment.load(self.folder / name) for name in self.names()}
        return self.loaded

    def write(self, segment: Segment) -> str:
        """The name of a new segment on disk, which a transaction can then make part of the store."""
        name = f"{int(segment.ids[0]):012}-{uuid4().hex[:8]}"
        with writing(self.folder / name):
            segment.save(self.folder / name)
        return name

    def manifest_digest(self, name: str) -> str:
        """The digest of the file that lists the files of a segment and their digests."""
        return file_digest(self.folder / name / MANIFEST)

    def sweep(self, names: set[str] | None = None) -> None:
        """Delete segments that do not belong to the store. Only the writer may call this.

        Folders with other names, and other files in the folder of a segment, are somebody else's.

        Args:
            names: the segments to keep. Default: those that belong to the store.
        """
        self.folder.mkdir(exist_ok=True)
        names = set(self.names()) if names is None else names
        for folder in self.folder.iterdir():
            if folder.name not in names and SEGMENT_NAME.fullmatch(folder.name):
                remove_own(folder, SEGMENT_FILE)

    def problems(self) -> dict[str, str]:
        """The segments whose files are missing or modified, and why."""
        rows = self._database.query("SELECT name, manifest_digest FROM segments ORDER BY name")
        problems = {str(name): self._problem(str(name), digest) for name, digest in rows}
        return {name: problem for name, problem in problems.items() if problem}

    def _problem(self, name: str, manifest_digest: str) -> str:
        problem = segment_problem(self.folder / name)
        if not problem and self.manifest_digest(name) != manifest_digest:
            return f"modified after it was written: {MANIFEST}"
        return problem

    def graph_file(self, name: str) -> Path:
        """The file of a segment's graph."""
        return self.folder / name / GRAPH_FILE

    def has_graph(self, name: str) -> bool:
        """Whether the graph of a segment was built completely."""
        graph = self._database.metadata(GRAPH) or {}
        return graph.get("segment") == name and self.graph_file(name).is_file()

    def build_graph(self, name: str, segment: Segment) -> None:
        """Build the graph of a segment."""
        write_graph(segment.vectors(slice(None)), self.graph_file(name))
        graph = {"segment": name, "digest": file_digest(self.graph_file(name))}
        with self._database.transaction():  # a new version makes readers look for the graph
            self._database.set_metadata({GRAPH: graph})

    def drop_graph(self, name: str) -> None:
        """Delete the graph of a segment; compacting builds it again."""
        self.graph_file(name).unlink()

    def graph_problems(self) -> dict[str, str]:
        """The segments whose graphs were modified, and why."""
        digest = (self._database.metadata(GRAPH) or {}).get("digest")
        graphs = filter(self.has_graph, self.names())
        return {name: "modified" for name in graphs if file_digest(self.graph_file(name)) != digest}
