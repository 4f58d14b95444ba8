"""All figures of a GPU in one command: ``match`` beside its limits, single requests, throughput.

python benchmarks/gpu.py                      # needs torch for CUDA with Triton; a few minutes
python benchmarks/gpu.py --only match         # one part: match, tune, single, throughput
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product

import numpy as np
import torch
from machine import machine
from texts import mixed_pairs, mixed_texts
from torch import Tensor

import tercet
from tercet.data.sample import questions
from tercet.evaluate.bench.limits import Limits, match_seconds, measure_limits, seconds_of
from tercet.evaluate.bench.rounds import Action, in_turn, ratio
from tercet.formats.backbone import backbone_folder
from tercet.scorers.gpu.arithmetic import Blocks, choose_blocks
from tercet.scorers.gpu.choice import match_kind
from tercet.scorers.gpu.formula import plain_scores
from tercet.scorers.gpu.vectors import DeviceVectors

DEVICE = torch.device("cuda")
PEER = "sentence-transformers"
LAUNCHES = 10
"""Launches that are timed together, so that the wait for the GPU hardly counts."""
SIZES = (100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000)
MOST_BYTES = 2**34
CHECKED = 2_000
"""Candidates whose scores are compared with float64."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    print(f"{machine()}; {torch.cuda.get_device_name()}; match by {match_kind(DEVICE)}\n")
    for name, part in PARTS.items():
        if options.only in (None, name):
            part(options.rounds)


def match_table(rounds: int) -> None:
    """``match`` at all sizes, beside the paper's formula and the limit."""
    limits = {dtype: measure_limits(DEVICE, dtype) for dtype in (torch.bfloat16, torch.float32)}
    for dtype, found in limits.items():
        rates = f"{found.bandwidth / 1e12:.2f} TB/s, products {found.matrix_rate / 1e12:.0f} TFLOP/s"
        print(f"{dtype}: copies {rates}")
    columns = "type | candidates | width | codes | limit, ms | match, ms | of the limit | paper's formula, ms"
    print(f"\n| {columns} | paper / match (spread) | largest error |\n|---|" + "---:|" * 9)
    for dtype, width, codes, count in cases():
        print(match_row(limits[dtype], dtype, width, codes, count, rounds), flush=True)
        torch.cuda.empty_cache()


def cases() -> Iterator[tuple[torch.dtype, int, int, int]]:
    """Types, widths, codes and candidates that fit into memory."""
    for dtype, width, codes, count in product(
        (torch.bfloat16, torch.float32), (384, 768), (16, 64, 360), SIZES
    ):
        if count * width * dtype.itemsize <= MOST_BYTES:
            yield dtype, width, codes, count


def match_row(limits: Limits, dtype: torch.dtype, width: int, codes: int, count: int, rounds: int) -> str:
    """One row: times of launches of both functions in turn, and the error against float64."""
    y, c = inputs(dtype, width, codes, count)
    actions: dict[str, Callable[[], Tensor]] = {"match": partial(tercet.match, y, c, scale=10.0)}
    if count * codes * dtype.itemsize <= MOST_BYTES:
        actions["paper"] = partial(paper_formula, y, c)
    with torch.inference_mode():
        times = in_turn(
            {name: Action(partial(launched, action), times=1 / LAUNCHES) for name, action in actions.items()},
            rounds=rounds,
        )
        expected = plain_scores(y.double(), c[:CHECKED].double(), None, 10.0)
        error = (tercet.match(y, c, scale=10.0)[:, :CHECKED] - expected).abs().max() / expected.abs().max()
    limit = match_seconds(
        limits, contexts=1, codes=codes, candidates=count, width=width, candidate_bytes=dtype.itemsize
    )
    ours = times["match"].median
    paper = f"{1e3 * times['paper'].median:.3f}" if "paper" in times else "no memory"
    spread = ratio(times["paper"], times["match"]).spread if "paper" in times else ""
    return (
        f"| {str(dtype)[6:]} | {count:,} | {width} | {codes} | {1e3 * limit:.3f} | {1e3 * ours:.3f} "
        f"| {ours / limit:.2f} | {paper} | {spread} | {float(error):.1e} |"
    )


def inputs(dtype: torch.dtype, width: int, codes: int, count: int) -> tuple[Tensor, Tensor]:
    """Codes ``[1, M, D]`` and candidates ``[C, D]`` of about norm 1."""
    rng = torch.Generator(DEVICE).manual_seed(0)
    y = torch.randn(1, codes, width, generator=rng, device=DEVICE) * width**-0.5
    return y.to(dtype), torch.randn(count, width, generator=rng, device=DEVICE).mul_(width**-0.5).to(dtype)


def paper_formula(codes: Tensor, candidates: Tensor) -> Tensor:
    """``[1, C]``: a context vector for each candidate, in the type of the candidates."""
    weights = (10.0 * (candidates @ codes[0].T)).softmax(dim=-1)
    return ((weights @ codes[0]) * candidates).sum(dim=-1).unsqueeze(0)


def launched(action: Callable[[], Tensor]) -> None:
    """Several launches, and the wait for them."""
    for _ in range(LAUNCHES):
        action()
    torch.cuda.synchronize()


def tune(rounds: int) -> None:
    """Times of the kernel with other sizes of programs, for a million candidates."""
    from tercet.scorers.gpu.match import KernelOptions, kernel_scores

    print("\n| type | width | codes | sizes: candidates, codes, width, warps, stages | ms | |")
    print("|---|---:|---:|---|---:|---|")
    for dtype, width, codes in product((torch.bfloat16, torch.float32), (384, 768), (16, 64, 360)):
        y, c = inputs(dtype, width, codes, 1_000_000)
        default = choose_blocks(1, codes, len(c), candidate_bytes=dtype.itemsize)
        found = []
        for blocks in {default, *variants(default)}:
            run = partial(kernel_scores, y, c, scale=10.0, options=KernelOptions(blocks=blocks))
            try:
                found.append((seconds_of(partial(launched, run), DEVICE, rounds=rounds) / LAUNCHES, blocks))
            except Exception as error:  # too much shared memory
                print(
                    f"| {str(dtype)[6:]} | {width} | {codes} | {tuple(blocks)} | {type(error).__name__} | |"
                )
        for seconds, blocks in sorted(found)[:4] + [each for each in found if each[1] == default]:
            mark = "default" if blocks == default else ""
            print(
                f"| {str(dtype)[6:]} | {width} | {codes} | {tuple(blocks)} | {1e3 * seconds:.3f} | {mark} |"
            )


def variants(default: Blocks) -> Iterator[Blocks]:
    """Sizes near the default."""
    for rows, width, warps, stages in product((64, 128, 256), (32, 64, 128), (4, 8), (2, 3, 4, 5)):
        yield Blocks(rows, default.codes, width, warps, stages)
        if default.codes == 128:
            yield Blocks(rows, 64, width, warps, stages)


def single(rounds: int) -> None:
    """Public calls for one request: text in, result out."""
    print("\n| request | precision | ms |\n|---|---|---:|")
    random = np.random.default_rng(0).standard_normal((1_000_000, 384), dtype=np.float32)
    random /= np.linalg.norm(random, axis=1, keepdims=True)
    vectors = DeviceVectors(random, device=DEVICE)
    question = questions()[0]
    pairs = ([question.context] * 50, [other.answer for other in questions()[:50]])
    for precision in ("fp32", "bf16"):
        bi, poly, cross = (
            tercet.load(name, precision=precision, device="cuda", runtime="torch")  # type: ignore[arg-type]
            for name in ("bi", "poly", "cross")
        )
        requests: dict[str, Callable[[], object]] = {
            "one text to a vector (bi)": lambda bi=bi: bi.encode_candidates([question.context]),
            "text to the best 10 of 1,000,000 vectors (poly)": lambda poly=poly: vectors.search(
                poly.encode_contexts([question.context]), 10, scale=poly.attention_scale
            ),
            "50 pairs (cross)": lambda cross=cross: cross.score_pairs(*pairs),
        }
        for name, request in requests.items():
            for _ in range(5):  # graphs are captured after some uses
                request()
            print(f"| {name} | {precision} | {1e3 * seconds_of(request, DEVICE, rounds=10 * rounds):.2f} |")


def throughput(rounds: int) -> None:
    """Encoding and reranking, beside sentence-transformers in the same rounds."""
    from sentence_transformers import SentenceTransformer

    _, some = mixed_texts()
    texts = [some[position % len(some)] + f" {position}" for position in range(32_000)]
    scorers = {
        precision: tercet.load("bi", precision=precision, device="cuda", runtime="torch")  # type: ignore[arg-type]
        for precision in ("fp32", "bf16")
    }
    actions = {
        f"tercet, {name}": Action(partial(scorer.encode_candidates, texts))
        for name, scorer in scorers.items()
    }
    actions["tercet, tokenizing alone"] = Action(partial(scorers["fp32"].token_ids, texts, "candidate"))
    for batch, half in product((256, 1024), (False, True)):
        peer = SentenceTransformer(str(backbone_folder()), device="cuda")
        peer = peer.bfloat16() if half else peer
        name = f"{PEER}, {'bf16' if half else 'fp32'}, batches of {batch}"
        actions[name] = Action(partial(peer.encode, texts, batch_size=batch))
    times = in_turn(actions, rounds=max(2, rounds // 2))
    best = min((each for name, each in times.items() if name.startswith(PEER)), key=lambda each: each.median)
    print(f"\n| encoding {len(texts):,} texts | per second | against the best of {PEER} (spread) |")
    print("|---|---:|---:|")
    for name, taken in times.items():
        print(f"| {name} | {len(texts) / taken.median:,.0f} | {ratio(best, taken).spread} |")
    _, pairs = mixed_pairs(count=5_000)
    left, right = (list(column) for column in zip(*pairs, strict=True))
    print("\n| reranking 5,000 pairs | per second |\n|---|---:|")
    for precision in ("fp32", "bf16"):
        cross = tercet.load("cross", precision=precision, device="cuda", runtime="torch")  # type: ignore[arg-type]
        taken = seconds_of(partial(cross.score_pairs, left, right), DEVICE, rounds=2)
        print(f"| tercet, {precision} | {len(pairs) / taken:,.0f} |")


PARTS: dict[str, Callable[[int], None]] = {
    "match": match_table,
    "tune": tune,
    "single": single,
    "throughput": throughput,
}

if __name__ == "__main__":
    main()
