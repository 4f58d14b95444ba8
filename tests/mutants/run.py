"""Runs the tests against a sample of mutants of the core files: `python tests/mutants/run.py --help`.

A mutant is a copy of the package with one small fault. The tests of the mutated file must fail. This process
imports torch and the other heavy libraries once and forks a child for each mutant, so a mutant costs only its
tests. A child that takes too long counts as killed.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from mutate import Mutant, mutants_of, sample_of

HERE = Path(__file__).resolve().parent
TESTS, ROOT = HERE.parent, HERE.parents[1]
PACKAGE = ROOT / "src" / "tercet"
WANTED_SHARE = 0.95
PATIENCE, EXTRA_SECONDS = 5, 30
"""A mutant may take this many times as long as the unchanged code, and some seconds more."""
PRELOADED = ("pytest", "hypothesis.extra.numpy", "torch", "transformers", "sklearn.linear_model", "faiss")
TRANSFORMERS = ("AutoModel", "AutoTokenizer", "BertModel", "PreTrainedTokenizerFast", "Trainer")
"""Parts of transformers that are imported on first use."""
PYTEST = ("-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist", "--hypothesis-profile=ci")
PASSED, FAILED, INTERRUPTED = 0, 1, 2
"""Exit statuses of pytest; a module that cannot be imported interrupts it. Others mean that this script is
wrong."""


@dataclass(frozen=True)
class Job:
    """A mutant, or the unchanged package if it is None, and the tests that it has to pass."""

    mutant: Mutant | None
    tests: tuple[str, ...]
    limit: float


@dataclass(frozen=True)
class Outcome:
    """What became of a job."""

    job: Job
    survived: bool
    seconds: float


@dataclass
class Child:
    """A process that runs the tests of a job in a folder of its own."""

    job: Job
    pid: int
    folder: Path
    start: float


def main() -> int:
    """0 if enough mutants were killed."""
    options = _options()
    targets = _targets(options.files)
    accepted = tomllib.loads((HERE / "equivalents.toml").read_text(encoding="utf-8")).get("equivalent", [])
    mutants = [mutant for file in targets for mutant in mutants_of(PACKAGE, file)]
    stale = [entry for entry in accepted if entry["file"] in targets and not _among(entry, mutants)]
    sample = sample_of(mutants, options.count, seed=options.seed)
    judged = [mutant for mutant in sample if not any(_is_meant(entry, mutant) for entry in accepted)]
    print(f"{len(mutants)} mutants, {len(sample)} sampled, {len(sample) - len(judged)} of them equivalent")
    if options.list:
        print("\n".join(mutant.diff for mutant in judged))
        return 0
    _preload()
    limits = _limits([targets[file] for file in {mutant.file for mutant in judged}], options.jobs)
    jobs = [Job(mutant, targets[mutant.file], limits[targets[mutant.file]]) for mutant in judged]
    return _report(_run(jobs, options.jobs), stale)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Test the tests: how many small faults do they notice?")
    parser.add_argument("--count", type=int, default=200, help="Number of mutants. Default: 200.")
    parser.add_argument("--seed", type=int, default=0, help="Seed of the sample. Default: 0.")
    parser.add_argument("--jobs", type=int, default=2, help="Mutants at a time. Default: 2.")
    parser.add_argument("--list", action="store_true", help="Show the mutants and run nothing.")
    parser.add_argument("files", nargs="*", help="Files under src/tercet. Default: all of targets.toml.")
    return parser.parse_args()


def _targets(files: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The files to mutate, and their tests that exist."""
    targets = tomllib.loads((HERE / "targets.toml").read_text(encoding="utf-8"))
    unknown = sorted(set(files) - set(targets))
    missing = sorted({test for tests in targets.values() for test in tests if not (TESTS / test).is_file()})
    if unknown or missing:
        sys.exit(f"targets.toml must list existing tests for every file, got {unknown + missing}")
    return {file: tuple(tests) for file, tests in targets.items() if not files or file in files}


def _among(entry: dict[str, str], mutants: Sequence[Mutant]) -> bool:
    return any(_is_meant(entry, mutant) for mutant in mutants)


def _is_meant(entry: dict[str, str], mutant: Mutant) -> bool:
    """Whether an entry of equivalents.toml describes a mutant."""
    return (entry["file"], entry["function"], entry["before"]) == (
        mutant.file,
        mutant.function,
        mutant.before,
    ) and entry.get("after", mutant.after) == mutant.after


def _preload() -> None:
    """Import what tests need and what is not mutated."""
    for name in PRELOADED:
        import_module(name)
    for name in TRANSFORMERS:
        getattr(import_module("transformers"), name)


def _limits(groups: Sequence[tuple[str, ...]], jobs: int) -> dict[tuple[str, ...], float]:
    """The seconds that each group of tests may take; they must pass without a mutant."""
    unlimited = [Job(None, tests, limit=3600) for tests in sorted(set(groups))]
    outcomes = _run(unlimited, jobs)
    failed = [outcome.job.tests for outcome in outcomes if not outcome.survived]
    if failed:
        sys.exit(f"these tests must pass before mutants mean anything: {failed}")
    print(f"the tests of the unchanged code take {sum(outcome.seconds for outcome in outcomes):.0f} s")
    return {outcome.job.tests: PATIENCE * outcome.seconds + EXTRA_SECONDS for outcome in outcomes}


def _run(jobs: Sequence[Job], at_once: int) -> list[Outcome]:
    """The outcome of each job, ``at_once`` at a time."""
    waiting, running, outcomes = list(jobs), list[Child](), list[Outcome]()
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                running.append(_start(waiting.pop(0)))
            time.sleep(0.02)
            for child in list(running):
                outcome = _finished(child)
                if outcome:
                    running.remove(child)
                    outcomes.append(outcome)
                    _show_progress(outcome, len(outcomes), len(jobs))
    finally:
        for child in running:
            _stop(child)
    return outcomes


def _start(job: Job) -> Child:
    folder = Path(tempfile.mkdtemp(prefix="mutant-"))
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        _become_tests(job, folder)
    return Child(job, pid, folder, time.monotonic())


def _become_tests(job: Job, folder: Path) -> None:
    """Run the tests and end this process with the status of pytest."""
    status = 70
    try:
        os.setsid()  # so that its own children can be ended with it
        with (folder / "output").open("wb") as output:
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
        os.chdir(ROOT)
        source = _shadow(folder, job.mutant)
        sys.path[:0] = [str(source), str(ROOT)]
        os.environ["PYTHONPATH"] = str(source)  # for the commands that tests start
        tests = [str(TESTS / test) for test in job.tests]
        status = int(import_module("pytest").main([*PYTEST, f"--basetemp={folder / 'tests'}", *tests]))
    finally:
        sys.stdout.flush()
        os._exit(status)


def _shadow(folder: Path, mutant: Mutant | None) -> Path:
    """A source folder with links to the package, in which the mutated file is a file."""
    source = folder / "src"
    shadow, original = source / "tercet", PACKAGE
    for name in Path(mutant.file).parts if mutant else ("__init__.py",):
        shadow.mkdir(parents=True)
        for entry in original.iterdir():
            if entry.name not in (name, "__pycache__"):
                (shadow / entry.name).symlink_to(entry)
        shadow, original = shadow / name, original / name
    shadow.write_text(mutant.source if mutant else original.read_text(encoding="utf-8"), encoding="utf-8")
    return source


def _finished(child: Child) -> Outcome | None:
    """The outcome of a child; None while it is running."""
    seconds = time.monotonic() - child.start
    pid, status = os.waitpid(child.pid, os.WNOHANG)
    if not pid and seconds < child.job.limit:
        return None
    output = (child.folder / "output").read_text(encoding="utf-8", errors="replace")
    _stop(child, reaped=bool(pid))
    if pid and os.WIFEXITED(status) and os.WEXITSTATUS(status) not in (PASSED, FAILED, INTERRUPTED):
        sys.exit(f"pytest ended with status {os.WEXITSTATUS(status)} for {child.job.tests}:\n{output}")
    survived = bool(pid) and os.WIFEXITED(status) and os.WEXITSTATUS(status) == PASSED
    if child.job.mutant is None and not survived:
        print(output)
    return Outcome(child.job, survived, seconds)


def _stop(child: Child, *, reaped: bool = False) -> None:
    """End the processes of a child and remove its folder."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    if not reaped:
        os.waitpid(child.pid, 0)
    shutil.rmtree(child.folder, ignore_errors=True)


def _show_progress(outcome: Outcome, done: int, count: int) -> None:
    mutant = outcome.job.mutant
    if mutant:
        verdict = "SURVIVED" if outcome.survived else "killed"
        place = f"{mutant.file}:{mutant.line}"
        print(f"{done}/{count} {verdict} {place} {outcome.seconds:.1f} s", flush=True)


def _report(outcomes: Sequence[Outcome], stale: Sequence[dict[str, str]]) -> int:
    """Print the survivors and the share of the killed; 1 if it is too small or an equivalent is stale."""
    survivors = [outcome.job.mutant for outcome in outcomes if outcome.survived and outcome.job.mutant]
    for mutant in sorted(survivors, key=lambda mutant: (mutant.file, mutant.line)):
        print(f"\nsurvived: {mutant.diff}")
    for entry in stale:
        print(f"\nstale in equivalents.toml: {entry['file']}, {entry['function']}: {entry['before']}")
    killed = len(outcomes) - len(survivors)
    share = killed / len(outcomes) if outcomes else 1.0
    print(f"\nkilled {killed} of {len(outcomes)} ({share:.1%}); at least {WANTED_SHARE:.0%} must be")
    return int(share < WANTED_SHARE or bool(stale))


if __name__ == "__main__":
    sys.exit(main())
