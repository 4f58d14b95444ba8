"""Keep trained weights in few bits, and restore them.

python research/bilingual/checkpoint.py pack --work WORK     # WORK to research/bilingual/checkpoint
python research/bilingual/checkpoint.py unpack --work WORK   # and back

The new pieces are a list, from which the tokenizer is made again. Their vectors have 8 bits. Other weights
of the backbone are 4-bit differences from MiniLM, those of the scorers 4-bit differences from the backbone.
"""

import argparse
from pathlib import Path

import torch
from model import Weights, from_bert
from safetensors.torch import load_file, save_file
from torch import Tensor
from vocabulary import ENGLISH_PIECES, MINILM, write_tokenizer

from tercet.formats.quantization import Quantized, can_quantize, dequantize, quantize

FOLDER = Path(__file__).parent / "checkpoint"
KINDS = ("backbone", "bi", "poly", "cross")
WORDS = "word.weight"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("pack", "unpack"))
    parser.add_argument("--work", type=Path, required=True, help="folder of the whole weights")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="folder of the small weights")
    options = parser.parse_args()
    (pack if options.action == "pack" else unpack)(options.work, options.folder)


def pack(work: Path, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    vocabulary = (work / "tokenizer" / "vocab.txt").read_text(encoding="utf-8").splitlines()
    (folder / "pieces.txt").write_text("\n".join(vocabulary[ENGLISH_PIECES:]) + "\n", encoding="utf-8")
    for kind in KINDS:
        weights, base = load_file(work / f"{kind}.safetensors"), base_of(kind, folder)
        small: Weights = {}
        for name, weight in weights.items():
            small |= packed_words(weight) if name == WORDS else packed(name, weight, base.get(name_in(name)))
        save_file(small, folder / f"{kind}.safetensors")
        print(kind, f"{(folder / f'{kind}.safetensors').stat().st_size / 1e6:.1f} MB")


def unpack(work: Path, folder: Path) -> None:
    pieces = (folder / "pieces.txt").read_text(encoding="utf-8").splitlines()
    write_tokenizer(pieces, work / "tokenizer")
    for kind in KINDS:
        save_file(restored(kind, folder), work / f"{kind}.safetensors")


def base_of(kind: str, folder: Path) -> Weights:
    """The weights that a kind is a difference from."""
    if kind == "backbone":
        return from_bert(load_file(MINILM / "model.safetensors"))
    return restored("backbone", folder)


def restored(kind: str, folder: Path) -> Weights:
    """The weights of a kind, in float32."""
    small, base = load_file(folder / f"{kind}.safetensors"), base_of(kind, folder)
    weights: Weights = {}
    for name in dict.fromkeys(key.rpartition("/")[0] for key in small):
        parts = {key.rpartition("/")[2]: value for key, value in small.items() if key.startswith(f"{name}/")}
        if name == WORDS:
            new = parts["levels"].float() * parts["scales"].float()
            weights[name] = torch.cat([base[WORDS][:ENGLISH_PIECES], new])
        elif "exact" in parts:
            weights[name] = parts["exact"]
        else:
            weights[name] = base[name_in(name)] + dequantize(Quantized(**parts), 4)
    return {name: weight.contiguous() for name, weight in weights.items()}


def packed(name: str, weight: Tensor, base: Tensor | None) -> Weights:
    if base is None or not can_quantize(weight):
        return {f"{name}/exact": weight.contiguous()}
    return {f"{name}/{part}": value for part, value in quantize(weight - base, 4)._asdict().items()}


def packed_words(weight: Tensor) -> Weights:
    """The vectors of the new pieces, with a scale for each."""
    new = weight[ENGLISH_PIECES:]
    scales = (new.abs().amax(dim=1, keepdim=True) / 127).half()
    return {
        f"{WORDS}/levels": (new / scales.float()).round().clamp(-127, 127).to(torch.int8),
        f"{WORDS}/scales": scales,
    }


def name_in(name: str) -> str:
    """The name of a scorer's weight in the backbone."""
    for prefix in ("encoder.", "context.", "candidate."):
        name = name.removeprefix(prefix)
    return name


if __name__ == "__main__":
    main()
