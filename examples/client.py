"""Start a server with the packaged bi-encoder, and call it from Python."""

import socket
import subprocess
import sys
import time

import tercet

with socket.create_server(("127.0.0.1", 0)) as free:
    port = free.getsockname()[1]
command = [sys.executable, "-m", "tercet", "-q", "serve", "--model", "bi", "--port", str(port)]
server = subprocess.Popen(command)  # usually a process of its own: tercet serve
try:
    with tercet.Client(f"http://127.0.0.1:{port}") as client:  # needs no torch
        while not client.ready() and server.poll() is None:
            time.sleep(0.2)
        print([model.id for model in client.models()])
        answers = ["It arrives on Tuesday.", "Water it once a week.", "The shop opens at nine."]
        for ranked in client.rank("When will my parcel be delivered?", answers, k=2):
            print(f"{ranked.score:.2f}", ranked.text)
        print(client.embed(answers).shape)
finally:
    server.terminate()
    server.wait()
