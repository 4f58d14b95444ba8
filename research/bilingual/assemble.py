"""Write the trained weights as model folders.

python research/bilingual/assemble.py --work WORK --out OUT
python research/bilingual/assemble.py --work WORK --out OUT --check --data DATA

backbone, bi and bi-half are folders of sentence-transformers, poly and cross are folders of tercet;
``tercet.load`` reads all of them. ``--check`` compares the scores of poly and cross with those of the trained
models, and measures all folders on STSb dev, KorSTS dev and the sample FAQs.
"""

import argparse
import json
import shutil
from pathlib import Path

import numpy as np
import torch
from cross_training import CrossSettings
from dual_training import DualSettings
from model import DEVICE, EVAL_TOKENS, Packed, Weights, to_bert
from poly_teacher import read_poly
from safetensors.torch import load_file, save_file
from scipy.stats import spearmanr
from scorer_models import Cross, read_weights
from texts import DataFolder, TokenFile, TokenWriter
from tokenizers import Tokenizer
from vocabulary import MINILM

import tercet
from tercet.data.sample import LANGUAGES, questions

COPIED = (
    "modules.json",
    "config_sentence_transformers.json",
    "sentence_bert_config.json",
    "special_tokens_map.json",
    "1_Pooling/config.json",
)
TOKENIZER = ("tokenizer.json", "vocab.txt", "tokenizer_config.json")
SCALES = {"code_scale": DualSettings.code_scale, "candidate_scale": DualSettings.candidate_scale}
TOLERANCE = 1e-3 if DEVICE.type == "cpu" else 0.1
"""Largest difference of scores; on a GPU, the trained model computes in bfloat16."""
NAMES = ("backbone", "bi", "bi-half", "poly", "cross")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", type=Path, required=True, help="folder of intermediate files and results")
    parser.add_argument("--out", type=Path, required=True, help="folder of the model folders")
    parser.add_argument("--data", type=Path, help="folder of the data sets, for --check")
    parser.add_argument("--check", action="store_true", help="measure the folders")
    parser.add_argument("--small", action="store_true", help="check few pairs")
    options = parser.parse_args()
    if options.check and options.data is None:
        parser.error("--check needs --data")
    for name in ("backbone", "bi", "bi-half"):
        write_folder(read_weights(options.work, name), options.work / "tokenizer", options.out / name)
    write_poly(options.work, options.out)
    write_cross(options.work, options.out)
    print(f"wrote {', '.join(NAMES)} to {options.out}")
    if options.check:
        check_formulas(options.work, options.out)
        measure(options.out, DataFolder(options.data, small=options.small))


def write_folder(weights: Weights, tokenizer: Path, folder: Path) -> None:
    """A folder of MiniLM with other weights and the bilingual tokenizer."""
    (folder / "1_Pooling").mkdir(parents=True, exist_ok=True)
    for name in COPIED:
        shutil.copy(MINILM / name, folder / name)
    for name in TOKENIZER:
        shutil.copy(tokenizer / name, folder / name)
    config = json.loads((MINILM / "config.json").read_text(encoding="utf-8"))
    config["vocab_size"] = len(weights["word.weight"])
    (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
    minilm = load_file(MINILM / "model.safetensors")
    pooler = {name: weight for name, weight in minilm.items() if name.startswith("pooler.")}
    save_file(to_bert(weights) | pooler, folder / "model.safetensors", metadata={"format": "pt"})


def part(weights: Weights, prefix: str) -> Weights:
    """The weights of one module."""
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}


def load_bert(transformer: torch.nn.Module, weights: Weights) -> None:
    """Replace all weights but those of the pooler, which no scorer here uses."""
    missing, unexpected = transformer.load_state_dict(to_bert(weights), strict=False)
    wrong = [*unexpected, *(name for name in missing if not name.startswith("pooler."))]
    if wrong:
        raise ValueError(f"the weights do not fit the transformer: {', '.join(wrong)}")


def write_poly(work: Path, out: Path) -> None:
    config = tercet.PolyConfig(similarity="cosine", **SCALES)
    poly = tercet.PolyEncoder.from_backbone(out / "backbone", config=config, max_tokens=256)
    load_poly(poly, work)
    save(poly, out / "poly")


def load_poly(poly: tercet.PolyEncoder, work: Path) -> None:
    """Give a poly-encoder the trained weights."""
    weights = load_file(work / "poly.safetensors")
    words = {"word.weight": read_weights(work, "backbone")["word.weight"]}
    load_bert(poly.context_encoder.transformer, words | part(weights, "context."))
    load_bert(poly.candidate_tower.encoder.transformer, words | part(weights, "candidate."))
    with torch.no_grad():
        poly.code_layer.codes.copy_(weights["codes"])


def write_cross(work: Path, out: Path) -> None:
    config = tercet.CrossConfig(
        head="compare", cross_text_weight=CrossSettings.cross_text_weight, candidate_segment=True
    )
    cross = tercet.CrossEncoder.from_backbone(out / "backbone", config=config, max_tokens=512)
    load_cross(cross, work)
    save(cross, out / "cross")


def load_cross(cross: tercet.CrossEncoder, work: Path) -> None:
    """Give a cross-encoder the trained weights."""
    weights = load_file(work / "cross.safetensors")
    words = {"word.weight": read_weights(work, "backbone")["word.weight"]}
    load_bert(cross.encoder.transformer, words | part(weights, "encoder."))
    cross.head.linear.load_state_dict(part(weights, "linear."))


def save(scorer: tercet.PolyEncoder | tercet.CrossEncoder, folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    scorer.save(folder)


@torch.no_grad()
def check_formulas(work: Path, out: Path) -> None:
    """Raise an error if tercet's scores of the folders are not those of the models that were trained."""
    entries = questions("en")[:3] + questions("ko")[:3]
    contexts, candidates = [entry.context for entry in entries], [entry.answer for entry in entries]
    writer = TokenWriter(Tokenizer.from_file(str(work / "tokenizer" / "tokenizer.json")))
    left, right = writer.spans(contexts, EVAL_TOKENS), writer.spans(candidates, EVAL_TOKENS)
    writer.save(work / "check.npz")
    file, words = TokenFile(work / "check.npz"), read_weights(work, "backbone")
    poly = read_poly(work)
    packed = [Packed(*file.sequences(spans, EVAL_TOKENS)) for spans in (left, right)]
    cross = Cross(words, CrossSettings.cross_text_weight)
    cross.load_state_dict(load_file(work / "cross.safetensors"), strict=False)
    pairs = np.stack([np.repeat(left, len(right), axis=0), np.tile(right, (len(left), 1))], axis=1)
    expected = {
        "poly": poly.match(*poly(*packed)),
        "cross": cross.score(file, pairs, False).view(len(left), len(right)),
    }
    for name, scores in expected.items():
        found = tercet.load(out / name, device="cpu").score_many(contexts, candidates)
        difference = float(np.abs(found - scores.float().cpu().numpy()).max())
        print(f"{name}: scores differ by at most {difference:.1e} from those of the trained model")
        if difference > TOLERANCE:
            raise ValueError(f"the scores of {name} differ by {difference}, at most {TOLERANCE} is expected")


def measure(out: Path, data: DataFolder) -> None:
    """Print Spearman's correlation on the STS dev sets and recall at 1 on the sample FAQs."""
    for name in NAMES:
        scorer = tercet.load(out / name)
        for file in ("stsb/dev", "kor_sts/dev"):
            rows = list(data.rows(file))
            scores = scorer.score_pairs([row["text_a"] for row in rows], [row["text_b"] for row in rows])
            correlation = spearmanr(scores, [row["score"] for row in rows]).statistic
            print(f"{name} {file} {100 * correlation:.2f}", flush=True)
        for language in LANGUAGES:
            entries = questions(language)[: 10 if data.small else None]
            scores = scorer.score_many(
                [entry.context for entry in entries], [entry.answer for entry in entries]
            )
            recall = (scores.argmax(axis=1) == np.arange(len(entries))).mean()
            print(f"{name} faq.{language} {100 * recall:.1f}", flush=True)


if __name__ == "__main__":
    main()
