"""Processes that are forked, killed at random moments, and tell what they have done until then."""

import json
import os
import random
import resource
import signal
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from tercet.errors import TercetError

Tell: TypeAlias = Callable[[Any], None]
FAILED = 3
"""The exit status of a process that ended with an error of tercet, as it may on a full disk."""


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    told: list[Any]
    """What it told before that, oldest first."""
    killed: bool
    failed: bool
    """Whether it ended with an error of tercet."""


def run_child(
    work: Callable[[Tell], object], *, seconds: float | None = None, max_bytes: int | None = None
) -> Ended:
    """Fork a process, run ``work`` in it, and wait for its end.

    Args:
        seconds: kill it so long after it has told something for the first time.
        max_bytes: the size at which its files stop growing, as on a full disk.
    """
    reading, telling = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _be_child(work, telling, max_bytes)
    os.close(telling)
    with os.fdopen(reading, encoding="utf-8") as pipe:
        first = pipe.readline()
        if seconds is not None:
            time.sleep(seconds)
            os.kill(child, signal.SIGKILL)
        lines = [first, *pipe]
    _, status = os.waitpid(child, 0)
    told = [json.loads(line) for line in lines if line.endswith("\n")]
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, FAILED, -signal.SIGKILL) or (code == FAILED and max_bytes is None):
        raise SystemExit(f"a process ended with status {code}: {told[-1] if told else 'nothing'}")
    return Ended(told, killed=code == -signal.SIGKILL, failed=code == FAILED)


def random_bytes(chance: random.Random) -> int:
    """A size from 100 bytes to 300 kilobytes, each magnitude as likely as the others."""
    return int(10 ** chance.uniform(2, 5.5))


def _be_child(work: Callable[[Tell], object], telling: int, max_bytes: int | None) -> None:
    """Run ``work``, and never return."""
    code = 1

    def tell(what: Any) -> None:
        os.write(telling, f"{json.dumps(what)}\n".encode())  # at once: no buffer is lost with the process

    try:
        tell("ready")
        if max_bytes is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (max_bytes, max_bytes))
        work(tell)
        code = 0
    except TercetError as error:
        tell({"error": str(error)})
        code = FAILED
    except BaseException:
        tell({"error": traceback.format_exc()})
    finally:
        os._exit(code)
