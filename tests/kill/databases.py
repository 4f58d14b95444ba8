"""Kill writers and the database server while an index in a database changes, and check what is left.

``python tests/kill/databases.py --rounds 50 --seed 0``

There are three kinds of rounds: a process that changes the index is killed; the server is killed with all
its processes while a process changes the index, which must go on after the restart; a build is killed, with
its server now and then, and resumed. Every acknowledged change must be there afterwards, and nothing twice.
"""

import argparse
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}

from tests.conftest import make_folder  # noqa: E402
from tests.databases.servers import PostgresServer  # noqa: E402
from tests.kill.children import Tell, run_child  # noqa: E402
from tests.kill.writing import Writing  # noqa: E402

import tercet  # noqa: E402
import tercet.retrieve  # noqa: E402

SECONDS = 1.5
"""The longest time until a kill."""
CANDIDATES = 60
"""Candidates of a build, in batches of ``BATCH``."""
BATCH = 7


def main() -> None:
    """Kill as often as asked for; the first wrong state ends the run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=50, help="rounds of each of the three kinds")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    server = PostgresServer(settings=())
    try:
        with TemporaryDirectory() as folder:
            scorer = tercet.BiEncoder.from_backbone(make_folder(Path(folder) / "backbone"), device="cpu")
            kills = Kills(server, scorer, Path(folder))
            for kind in ("writer", "server", "build"):
                _repeat(kind, options.rounds, kills, chance)
    finally:
        server.close()


def _repeat(kind: str, rounds: int, kills: "Kills", chance: random.Random) -> None:
    start, killed = time.monotonic(), 0
    for _ in range(rounds):
        killed += getattr(kills, kind)(chance)
    took = time.monotonic() - start
    print(
        f"{kind}: {killed} kills in {rounds} rounds: nothing lost, nothing twice ({took:.0f} s)", flush=True
    )


class Kills:
    """An index that is changed, and builds of others."""

    def __init__(self, server: PostgresServer, scorer: tercet.BiEncoder, folder: Path) -> None:
        self._server, self._scorer = server, scorer
        self._killing: threading.Thread | None = None
        self._writing = Writing(folder, scorer, address=f"{server.url}/changed", settle=self._settle)
        self._builds = 0

    def writer(self, chance: random.Random) -> bool:
        """Kill a process that changes the index; whether it had not ended before."""
        return self._writing.run(chance.random(), seconds=chance.uniform(0, SECONDS)).killed

    def server(self, chance: random.Random) -> bool:
        """Kill the server while a process changes the index, which must go on without an error."""
        seconds = chance.uniform(0, SECONDS)
        self._killing = threading.Thread(target=self._kill_under_client, args=(seconds,))
        self._killing.start()
        ended = self._writing.run(chance.random())
        if ended.failed or ended.told[-1] != "done":
            raise SystemExit(f"a writer did not survive the restart of its server: {ended.told[-1]}")
        return True

    def build(self, chance: random.Random) -> bool:
        """Kill a build, or its server, until it ends; whether a kill interrupted it."""
        self._builds += 1
        address, interruptions = f"{self._server.url}/build_{self._builds}", 0
        tercet.Retriever(self._scorer, index=address).close()
        while self._build_and_kill(address, chance):
            interruptions += 1
            if chance.random() < 0.3:
                self._kill_and_start(0)
        self._server.settle()
        with tercet.Retriever.open(address, self._scorer) as retriever:
            found = [item.text for item in retriever]
            if found != list(_texts()) or retriever.problems():
                raise SystemExit(f"{len(found)} candidates after a build of {CANDIDATES} in several parts")
            retriever.store.delete()
        return interruptions > 0

    def _build_and_kill(self, address: str, chance: random.Random) -> bool:
        """Whether a build was killed before it ended."""
        ended = run_child(lambda tell: self._build(address, tell), seconds=chance.uniform(0, SECONDS))
        return bool(ended.told[-1] != "built")

    def _build(self, address: str, tell: Tell) -> None:
        tercet.retrieve.ADDED_AT_ONCE = BATCH  # in this process only: the changes of others are one batch
        with tercet.Retriever.open(address, self._scorer) as retriever:
            retriever.build(_texts(), source="texts", on_progress=tell)
            tell("built")

    def _settle(self) -> None:
        if self._killing is not None:
            self._killing.join()
        self._server.settle()

    def _kill_under_client(self, seconds: float) -> None:
        self._server.wait_for_client()  # opening an index is not tried again
        self._kill_and_start(seconds)

    def _kill_and_start(self, seconds: float) -> None:
        time.sleep(seconds)
        self._server.kill()
        self._server.start()


def _texts() -> Iterator[str]:
    return (f"text {number}" for number in range(CANDIDATES))


if __name__ == "__main__":
    main()
