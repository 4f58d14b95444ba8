"""How products are computed on a GPU, and in blocks of which sizes. Nothing here needs a GPU."""

from typing import Literal, NamedTuple, TypeAlias

import torch

Arithmetic: TypeAlias = Literal["native", "split_codes", "split", "tf32", "ieee"]

HALVES = (torch.bfloat16, torch.float16)
FLOATS = (*HALVES, torch.float32)
CANDIDATE_TYPES = (*FLOATS, torch.int8)

SMALL_SHARED_MEMORY = 160 * 1024
"""Bytes per multiprocessor below which less is loaded in advance; consumer cards have about 100 KB."""

FEW_PROGRAMS = 512
"""With fewer programs than this, smaller ones occupy more of the GPU."""


class Blocks(NamedTuple):
    """The sizes of a program: candidates, codes and width of a block, warps, and blocks loaded in advance."""

    candidates: int
    codes: int
    width: int
    warps: int
    stages: int


def choose_arithmetic(codes: torch.dtype, candidates: torch.dtype, *, tf32: bool = False) -> Arithmetic:
    """The fastest arithmetic whose products are exact, or those of float32.

    Numbers in half precision are multiplied exactly by tensor cores. Float32 is split into three parts of
    bfloat16, so that tensor cores multiply it too; ``tf32`` rounds it to 11 bits instead.
    """
    if codes in HALVES and candidates in (codes, torch.int8):
        return "native"
    if candidates in (torch.bfloat16, torch.int8):
        return "split_codes"
    return "tf32" if tf32 else "split"


def choose_blocks(
    contexts: int, codes: int, candidates: int, *, candidate_bytes: int, shared_memory: int = 2**18
) -> Blocks:
    """The sizes of the programs for so many contexts, codes of each, and candidates.

    Args:
        candidate_bytes: bytes of one number of a candidate.
        shared_memory: bytes of a multiprocessor.
    """
    columns = next((size for size in (16, 32, 64) if codes <= size), 128)
    width = 32 if candidate_bytes == 4 else 64
    rows = 128 if contexts * candidates >= 128 * FEW_PROGRAMS else 64
    stages = 4 if columns <= 64 else 3
    if shared_memory < SMALL_SHARED_MEMORY:
        stages = 2
    return Blocks(rows, columns, width, warps=8 if rows * columns >= 128 * 128 else 4, stages=stages)
