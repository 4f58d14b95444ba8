"""Kills of a server while clients change its index: every change that was acknowledged is there."""

import http.client
import json
import os
import random
import signal
import socket
import threading
import time
from pathlib import Path

from tests.conftest import SENTENCES
from tests.kill.children import Ended

import tercet
from tercet.serve.run import listen, run_server
from tercet.settings.serve import ServeConfig, ServerConfig

CLIENTS = 4


class Serving:
    """An index that a server changes, again and again."""

    def __init__(self, folder: Path, scorer: tercet.BiEncoder) -> None:
        self._model, self._index = folder / "served", folder / "served.tercet"
        scorer.save(self._model)
        with tercet.Retriever(self._model, path=self._index) as retriever:
            retriever.add(SENTENCES)
        self._stored: set[str] = set()
        """Ids of which the last acknowledged change was an addition."""
        self._unknown: set[str] = set()
        """Ids whose last change was not acknowledged: they may be there or not."""
        self._round = 0

    def kill(self, chance: random.Random) -> Ended:
        """Kill a server under load, then check its index."""
        self._round += 1
        models, indexes = {"bi": str(self._model)}, {"killed": str(self._index)}
        config = ServerConfig(serve=ServeConfig(models=models, indexes=indexes, port=0))
        bound = listen(config)
        child = os.fork()
        if child == 0:
            _be_server(config, bound)
        port = bound.getsockname()[1]
        bound.close()
        _wait_until_it_listens(port)
        first = threading.Event()
        clients = [
            threading.Thread(target=self._change, args=(port, f"{self._round}-{number}", first))
            for number in range(CLIENTS)
        ]
        for client in clients:
            client.start()
        if not first.wait(60):
            raise SystemExit("the server acknowledged nothing for a minute")
        time.sleep(chance.uniform(0, 0.3))
        os.kill(child, signal.SIGKILL)
        for client in clients:
            client.join()
        os.waitpid(child, 0)
        self._check()
        return Ended([], killed=True, failed=False)

    def _change(self, port: int, name: str, first: threading.Event) -> None:
        """Add candidates, and remove every third one again, until the server is gone."""
        for number in range(100_000):
            id_ = f"{name}-{number}"
            self._unknown.add(id_)
            if not _acknowledged(port, "add", {"candidates": [{"id": id_, "text": f"the cat {id_}"}]}):
                return
            self._stored.add(id_)
            self._unknown.discard(id_)
            first.set()
            if number % 3 == 0:
                self._unknown.add(id_)
                if not _acknowledged(port, "remove", {"ids": [id_]}):
                    return
                self._stored.discard(id_)
                self._unknown.discard(id_)

    def _check(self) -> None:
        with tercet.Retriever.open(self._index, self._model) as retriever:
            there = {item.id for item in retriever} - {str(number) for number in range(len(SENTENCES))}
            problems = retriever.problems()
        lost, returned = self._stored - self._unknown - there, there - self._stored - self._unknown
        if lost or returned or problems:
            raise SystemExit(f"lost: {sorted(lost)}; returned: {sorted(returned)}; problems: {problems}")
        self._stored, self._unknown = there, set()


def _wait_until_it_listens(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise SystemExit("the server did not start within a minute")


def _acknowledged(port: int, action: str, body: object) -> bool:
    """Whether the server answers that a change is stored; it waits until the server is ready."""
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            written, headers = json.dumps(body), {"Content-Type": "application/json"}
            connection.request("POST", f"/v1/indexes/killed/{action}", written, headers)
            answer = connection.getresponse()
            answer.read()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
        if answer.status == 200:
            return True
        if answer.status != 503:
            raise SystemExit(f"the server answers {answer.status}")
        time.sleep(0.02)


def _be_server(config: ServerConfig, bound: socket.socket) -> None:
    """Serve, and never return."""
    try:
        run_server(config, bound, lambda _: None)
    finally:
        os._exit(1)
