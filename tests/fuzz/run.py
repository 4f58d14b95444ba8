"""Fuzz readers, recipes, tasks, model folders and indexes for some minutes.

Each case runs in a process of its own. A finding is an error that is not a ``TercetError``, a crash, more
than 10 seconds of the CPU or 3 minutes in all, or more than 2 GB of memory. It is printed with its seed, and
its files are kept.

    python tests/fuzz/run.py --minutes 5 --seed 0
    python tests/fuzz/run.py --case bi 0:17
"""

import argparse
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from random import Random

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.fuzz.folders import damage_folder, make_folders  # noqa: E402
from tests.fuzz.targets import check, readers  # noqa: E402

SECONDS, BYTES = 10, 2 << 30
"""Limits of a case. The seconds are those of the CPU: other programs do not make a case slow."""
WAITING_SECONDS = 180
"""When a case is taken to wait for ever; a busy machine may need this long for a few seconds of CPU."""
FAILED, KEPT = 3, "FINDING.txt"


@dataclass(frozen=True)
class Case:
    """Damages something into a folder, and reads the result."""

    name: str
    prepare: Callable[[Path, Random], Path]
    read: Callable[[Path], object]


def cases(folder: Path) -> list[Case]:
    """Everything that is fuzzed."""
    found = []
    for target in readers():

        def write(into: Path, random: Random, target=target) -> Path:  # type: ignore[no-untyped-def]
            (into / target.name).write_bytes(target.damage(target.content, random))
            return into / target.name

        found.append(Case(target.name, write, target.read))
    for name, (source, read) in make_folders(folder).items():

        def copy(into: Path, random: Random, source=source) -> Path:  # type: ignore[no-untyped-def]
            damage_folder(source, into / source.name, random)
            return into / source.name

        found.append(Case(name, copy, read))
    return found


def read_in_child(case: Case, path: Path, report: Path) -> None:
    """Read within the limit of memory; write the traceback of an unexpected error."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    allowed = pages * resource.getpagesize() + BYTES
    resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))  # of this process alone
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    try:
        check(case.read, path)
    except BaseException:
        report.write_text(traceback.format_exc(limit=-12), encoding="utf-8", errors="backslashreplace")
        os._exit(FAILED)
    os._exit(0)


def problem(case: Case, path: Path, report: Path) -> str:
    """What is wrong with reading a damaged file or folder; empty if nothing is."""
    child = os.fork()
    if child == 0:
        read_in_child(case, path, report)
    deadline = time.monotonic() + WAITING_SECONDS
    while True:
        done, status, used = os.wait4(child, os.WNOHANG)
        if done:
            break
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return f"took more than {WAITING_SECONDS} s"
        time.sleep(0.002)
    code = os.waitstatus_to_exitcode(status)
    if used.ru_utime + used.ru_stime > SECONDS - 0.1:
        return f"took more than {SECONDS} s of the CPU"
    if code == FAILED:
        return report.read_text(encoding="utf-8").strip().splitlines()[-1]
    if code:
        return f"exit status {code}"
    return f"took {used.ru_maxrss >> 10} MB" if used.ru_maxrss << 10 > BYTES else ""


def run_case(case: Case, seed: str, keep: Path) -> str:
    """The problem of one case; its files are kept if there is one."""
    folder = keep / f"{case.name}-{seed.replace(':', '-')}"
    folder.mkdir(parents=True)
    path = case.prepare(folder, Random(f"{case.name}:{seed}"))
    found = problem(case, path, folder / KEPT)
    if found:
        with (folder / KEPT).open("a", encoding="utf-8") as file:
            file.write(f"\n{case.name} {seed}: {found}\n")
    else:
        shutil.rmtree(folder)
    return found


def drawn(everything: list[Case], seed: int, minutes: float) -> Iterator[tuple[Case, str]]:
    """Cases and their seeds, until the time is over."""
    end = time.monotonic() + 60 * minutes
    for number in count():
        for case in everything:
            if time.monotonic() > end:
                return
            yield case, f"{seed}:{number}"


def main() -> int:
    """Run; the exit status is 1 if there are findings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--keep", type=Path, help="folder for the files of findings; default: a temporary one"
    )
    parser.add_argument("--only", help="run only the cases whose name contains this")
    parser.add_argument("--case", nargs=2, metavar=("NAME", "SEED"), help="repeat one case")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    keep = given.keep or Path(tempfile.mkdtemp(prefix="tercet-fuzz-"))
    with tempfile.TemporaryDirectory() as valid:
        everything = [case for case in cases(Path(valid)) if (given.only or "") in case.name]
        if given.case:
            chosen = [(case, given.case[1]) for case in everything if case.name == given.case[0]]
        else:
            chosen = drawn(everything, given.seed, given.minutes)  # type: ignore[assignment]
        done: Counter[str] = Counter()
        findings: Counter[str] = Counter()
        for case, seed in chosen:
            done[case.name] += 1
            found = run_case(case, seed, keep)
            if found:
                findings[f"{case.name}: {found[:160]}"] += 1
                if findings[f"{case.name}: {found[:160]}"] == 1:
                    print(f"{case.name} {seed}: {found[:400]}", flush=True)  # noqa: T201
    total = f"{done.total():,} cases of {len(done)} kinds, {findings.total()} findings"
    print(total + (f", {len(findings)} different, in {keep}" if findings else ""))  # noqa: T201
    return int(bool(findings))


if __name__ == "__main__":
    sys.exit(main())
