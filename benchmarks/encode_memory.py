"""Peak memory of streamed encoding by the number of texts; each number is measured in its own process.

python benchmarks/encode_memory.py --counts 50000 200000 1000000
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

import tercet
from tercet.data.sample import pairs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--counts", type=int, nargs="+", default=[50_000, 200_000])
    parser.add_argument("--precision", default="bf16")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        encode(options.one, options.precision)
        return
    print("| texts | precision | peak memory, MB | of which before the first text | texts/s | file, MB |")
    print("|---:|---|---:|---:|---:|---:|")
    for count in options.counts:
        command = [sys.executable, __file__, "--one", str(count), "--precision", options.precision]
        subprocess.run(command, check=True)


def encode(count: int, precision: str) -> None:
    """Encode ``count`` texts and print a row of the table."""
    scorer = tercet.load("bi", precision=precision, device="cpu")  # type: ignore[arg-type]
    scorer.score("warm", ["up"])
    before = peak_megabytes()
    with tempfile.TemporaryDirectory() as folder:
        start = perf_counter()
        written = scorer.encode_to_file(short_sentences(count), Path(folder) / "vectors.npy")
        seconds = perf_counter() - start
        size = written.path.stat().st_size / 1e6
    print(
        f"| {count:,} | {precision} | {peak_megabytes():.0f} | {before:.0f} | {count / seconds:.0f} "
        f"| {size:.0f} |",
        flush=True,
    )


def short_sentences(count: int) -> Iterator[str]:
    """Sample sentences, numbered so that all are distinct."""
    sentences = [pair.context for pair in pairs("en")]
    return (f"{number}: {sentences[number % len(sentences)]}" for number in range(count))


def peak_megabytes() -> float:
    """The peak memory of this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000


if __name__ == "__main__":
    main()
