"""Training on two nodes, each with its own agent of torchrun, as on two machines that share a folder."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
import torch
from safetensors.torch import load_file
from tests.training.test_processes import EXAMPLES, HALF_A_BATCH, ROOT, gradients

FolderOf = Callable[[str], Path]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TRAIN = """
import sys
from pathlib import Path
from tests.training.small_recipes import tables
from tercet.settings.recipe import make_recipe
from tercet.training.run import run_recipe
table = tables(Path(sys.argv[1]), training={"epochs": 6, "learning_rate": 1e-3, "evals_per_epoch": 2})
run_recipe(make_recipe(table, name="nodes"), Path(sys.argv[2]), resume="resume" in sys.argv, device="cpu")
"""


def start(script: Path, *arguments: str) -> list["subprocess.Popen[bytes]"]:
    """The agents of two nodes that run a script with one process each."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{free.getsockname()[1]}"
    launch = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1"]
    meeting = [
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint={endpoint}",
        "--rdzv-id=nodes",
        "--local-addr=127.0.0.1",
    ]
    environment = os.environ | {
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "GLOO_SOCKET_IFNAME": "lo",
    }
    command = [*launch, *meeting, str(script), *arguments]
    with script.with_suffix(".log").open("wb") as log:
        return [subprocess.Popen(command, cwd=ROOT, env=environment, stderr=log) for _ in range(2)]


def finish(agents: list["subprocess.Popen[bytes]"], script: Path) -> None:
    ended = [agent.wait(timeout=600) for agent in agents]
    assert ended == [0, 0], script.with_suffix(".log").read_text()[-5000:]


def kill(agent: "subprocess.Popen[bytes]") -> None:
    """Kill a node: its agent and all its processes."""
    node = psutil.Process(agent.pid)
    for process in [*node.children(recursive=True), node]:
        process.kill()
    agent.wait()


def test_two_nodes_have_the_gradient_of_the_joined_batch(tiny_folder: FolderOf, tmp_path: Path) -> None:
    script = tmp_path / "half.py"
    script.write_text(HALF_A_BATCH)
    finish(start(script, str(tiny_folder("bert")), str(tmp_path / "gradients.pt")), script)
    averaged = torch.load(tmp_path / "gradients.pt", weights_only=True)
    joined = gradients(tiny_folder("bert"), EXAMPLES)
    largest = max(float(gradient.abs().max()) for gradient in joined.values())
    assert averaged.keys() == joined.keys()
    for name, gradient in joined.items():
        torch.testing.assert_close(averaged[name], gradient, rtol=1e-4, atol=1e-5 * largest, msg=name)


@pytest.fixture(scope="module")
def whole(tiny_folder: FolderOf, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that no node interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    (folder / "train.py").write_text(TRAIN)
    finish(start(folder / "train.py", str(tiny_folder("bert")), str(folder / "run")), folder / "train.py")
    return folder / "run"


@pytest.mark.parametrize("dead", [0, 1])
def test_a_run_goes_on_after_a_node_has_died(
    dead: int, whole: Path, tiny_folder: FolderOf, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(TRAIN)
    agents = start(script, str(tiny_folder("bert")), str(tmp_path / "run"))
    until = time.monotonic() + 300
    while not list((tmp_path / "run").glob("**/trainer_state.json")) and time.monotonic() < until:
        assert agents[0].poll() is None
        time.sleep(0.01)
    kill(agents[dead])
    kill(agents[1 - dead])  # which would wait for the dead one
    assert not (tmp_path / "run" / "model").exists()
    finish(start(script, str(tiny_folder("bert")), str(tmp_path / "run"), "resume"), script)
    left, right = (load_file(run / "model" / "model.safetensors") for run in (whole, tmp_path / "run"))
    assert left.keys() == right.keys()
    for name, weight in left.items():
        assert torch.equal(weight, right[name]), name
