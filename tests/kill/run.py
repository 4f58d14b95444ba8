"""Kill processes while they write, train and encode, fill their disks, and check what is left.

``python tests/kill/run.py --writing 500 --training 250 --encoding 250 --serving 100 --full 200 --seed 0``

This process imports everything once and forks the processes that are killed, so that each needs only
milliseconds to start.
"""

import argparse
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HF_HUB_OFFLINE": "1"}

from tests.conftest import make_folder  # noqa: E402
from tests.kill.children import Ended, random_bytes  # noqa: E402
from tests.kill.encoding import Encoding  # noqa: E402
from tests.kill.serving import Serving  # noqa: E402
from tests.kill.training import Training  # noqa: E402
from tests.kill.writing import Writing  # noqa: E402

import tercet  # noqa: E402


def main() -> None:
    """Kill as many processes of each kind as asked for; the first wrong state ends the run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for kind in ("writing", "training", "encoding", "serving", "full"):
        parser.add_argument(f"--{kind}", type=int, default=0, metavar="N", help="number of processes")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        backbone = make_folder(folder / "backbone")
        scorer = tercet.BiEncoder.from_backbone(backbone, device="cpu")
        writing, encoding = Writing(folder, scorer), Encoding(folder, scorer)
        training, serving = Training(folder, backbone), Serving(folder, scorer)
        killed = {"writing": writing, "training": training, "encoding": encoding, "serving": serving}
        for kind, cases in killed.items():
            _repeat(kind, getattr(options, kind), [lambda cases=cases: cases.kill(chance)])
        full = [
            lambda cases=cases: cases.fill_disk(chance, random_bytes(chance))
            for cases in (writing, training, encoding)
        ]
        _repeat("full disk", options.full, full)
        training.finish()
        print(f"{training.finished} resumed runs ended with the weights of an unkilled one")


def _repeat(title: str, count: int, cases: Sequence[Callable[[], Ended]]) -> None:
    """Run the cases in turn until ``count`` processes were killed or failed, and print how they ended."""
    start = time.monotonic()
    killed = failed = finished = 0
    while killed + failed < count:
        ended = cases[(killed + failed + finished) % len(cases)]()
        killed, failed = killed + ended.killed, failed + ended.failed
        finished += not (ended.killed or ended.failed)
    print(
        f"{title}: {killed} processes killed, {failed} ended with an error, {finished} finished: "
        f"nothing lost, nothing half ({time.monotonic() - start:.0f} s)",
        flush=True,
    )


if __name__ == "__main__":
    main()
