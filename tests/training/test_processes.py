"""Two processes train like one process with the joined batch."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from tests.conftest import SENTENCES

import tercet
from tercet.records import Example
from tercet.settings.training import ObjectiveConfig
from tercet.training.objectives import make_objective
from tercet.training.tokenized import tokenize

FolderOf = Callable[[str], Path]

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = [  # rows, and therefore processes, have different numbers of negatives
    Example(left, (right, *["old bread", "new tree", "red river"][: position % 3]))
    for position, (left, right) in enumerate(zip(SENTENCES, SENTENCES[::-1], strict=True))
]

HALF_A_BATCH = """
import sys
from pathlib import Path
import torch
from torch import distributed
from tests.training import test_processes
distributed.init_process_group("gloo")
rank = distributed.get_rank()
gradients = test_processes.gradients(Path(sys.argv[1]), test_processes.EXAMPLES[4 * rank : 4 * rank + 4])
for gradient in gradients.values():
    distributed.all_reduce(gradient)
    gradient /= 2  # as the trainer does
if rank == 0:
    torch.save(gradients, sys.argv[2])
distributed.destroy_process_group()
"""

TRAIN = """
import sys
from pathlib import Path
import torch
from torch import distributed
from tests.training import test_trainer
scorer, log = test_trainer.run(Path(sys.argv[1]), Path(sys.argv[2]))
torch.save(test_trainer.weights_of(scorer), f"{sys.argv[2]}-{distributed.get_rank()}.pt")
"""


def gradients(folder: Path, examples: list[Example]) -> dict[str, torch.Tensor]:
    scorer = tercet.PolyEncoder.from_backbone(folder, config=tercet.PolyConfig(codes=3), device="cpu")
    objective = make_objective(ObjectiveConfig(kind="in_batch", score_scale=0.1), scorer)
    objective(scorer, tokenize(scorer, examples)).backward()
    return {name: weight.grad for name, weight in scorer.named_parameters() if weight.grad is not None}


def run_in_two_processes(script: str, *arguments: str) -> None:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = os.environ | {
        "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    file = Path(arguments[-1]).with_suffix(".py")
    file.write_text(script)
    done = subprocess.run(
        [*launch, str(file), *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]


def test_two_processes_have_the_gradient_of_the_joined_batch(tiny_folder: FolderOf, tmp_path: Path) -> None:
    run_in_two_processes(HALF_A_BATCH, str(tiny_folder("bert")), str(tmp_path / "gradients.pt"))
    averaged = torch.load(tmp_path / "gradients.pt", weights_only=True)
    joined = gradients(tiny_folder("bert"), EXAMPLES)
    assert averaged.keys() == joined.keys()
    largest = max(float(gradient.abs().max()) for gradient in joined.values())
    for name, gradient in joined.items():
        torch.testing.assert_close(averaged[name], gradient, rtol=1e-4, atol=1e-5 * largest, msg=name)


def test_two_processes_end_with_the_same_weights(tiny_folder: FolderOf, tmp_path: Path) -> None:
    run_in_two_processes(TRAIN, str(tiny_folder("bert")), str(tmp_path / "run"))
    left, right = (torch.load(tmp_path / f"run-{rank}.pt", weights_only=True) for rank in (0, 1))
    for name, weight in left.items():
        assert torch.equal(weight, right[name]), name
