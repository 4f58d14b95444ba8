"""``tercet export``: a model folder for one precision, with what the precision costs."""

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from tercet.data.sample import LANGUAGES
from tercet.data.sample import texts as sample_texts
from tercet.encoders.openvino.graphs import Transformer
from tercet.encoders.openvino.ranges import Recorder
from tercet.encoders.openvino.sensitivity import chosen_ranges
from tercet.errors import InputError, ModelError
from tercet.files.atomic import check_free, new_folder
from tercet.formats.compile import compiled_scorer, read_weights
from tercet.formats.export_cost import Cost, measured_cost, run_texts
from tercet.formats.exported import MODEL, write_export
from tercet.formats.int8 import Ranges, with_ranges, with_transformers, write_ranges
from tercet.formats.kinds_of_folders import kind_of
from tercet.formats.manifest import EXPORT, INT8, read_manifest
from tercet.formats.sources import names_of, resolve_model
from tercet.scorers.compiled.base import Origin
from tercet.settings.encoding import EncodingConfig
from tercet.text.readable import find_unreadable

MIN_TEXTS = 50
"""Fewer texts say too little about the range of an activation."""

HELD_OUT = 5
"""One text in this many is held out to measure the cost."""

MOST_MEASURED = 200
"""Maximum number of texts that measure the cost."""

CALIBRATION_BATCHES = EncodingConfig(cpu_tokens=512)
"""Small batches, so that each recorded one has texts of another length."""


@dataclass(frozen=True, kw_only=True)
class Exported:
    """What ``export_int8`` wrote: the folder, what int8 costs, and the share of weights in int8."""

    path: Path
    cost: Cost
    share: float


def export_int8(
    source: str | PathLike[str], path: str | PathLike[str], texts: Sequence[str] | None = None
) -> Exported:
    """Write a folder that ``tercet.load`` opens as an int8 model.

    Args:
        texts: set the ranges of the activations; a cross-encoder reads each together with the next one.
            Default: the sample texts in the languages that the model can read.
    """
    target, model = Path(path), resolve_model(source)
    check_free(target)
    if EXPORT in (read_manifest(model) or {}):
        raise InputError(f"{model} is an export itself: export the model that it was made from")
    if texts is None:
        texts = readable_samples(model)
    if len(texts) < MIN_TEXTS:
        raise InputError(f"int8 needs at least {MIN_TEXTS} texts for its ranges, got {len(texts)}")
    measured = [text for number, text in enumerate(texts) if number % HELD_OUT == 0][:MOST_MEASURED]
    ranges, share = calibrated_ranges(model, [text for number, text in enumerate(texts) if number % HELD_OUT])
    cost = _cost(model, ranges, measured)
    names = names_of(model)
    with new_folder(target) as folder:
        base = names[0] if names else MODEL
        if not names:
            shutil.copytree(model, folder / MODEL)
        write_ranges(folder / INT8, ranges, model)
        write_export(folder, base=base, kind=kind_of(model), cost=cost, share=share)
    return Exported(path=target, cost=cost, share=share)


def readable_samples(model: Path) -> list[str]:
    """The sample texts in the languages that a model can read."""
    tokenizer = read_weights(model, kind_of(model)).tokenizer
    found = {language: sample_texts(language) for language in LANGUAGES}
    return [
        text
        for samples in found.values()
        if find_unreadable(samples, tokenizer.spans) is None
        for text in samples
    ]


def calibrated_ranges(model: Path, texts: Sequence[str]) -> tuple[Ranges, float]:
    """The ranges for a model folder, and the share of the weights of linear layers that they cover."""
    recorders: dict[str, Recorder] = {}
    weights = read_weights(model, kind_of(model))

    def recorded(part: str, transformer: Transformer) -> Transformer:
        recorders[part] = Recorder(transformer.weights)
        return transformer._replace(recorder=recorders[part])

    scorer = compiled_scorer(with_transformers(weights, recorded), _origin(model))
    scorer.encoding = CALIBRATION_BATCHES
    run_texts(scorer, texts)
    parts = scorer.graph_parts()
    found = {part: chosen_ranges(parts[part], recorder) for part, recorder in recorders.items()}
    sizes = [
        (recorder.size(name), name in found[part])
        for part, recorder in recorders.items()
        for name in recorder.readers
    ]
    if not any(quantized for _, quantized in sizes):
        raise ModelError("no linear layer of this model bears int8: use bf16")
    return found, sum(size for size, quantized in sizes if quantized) / sum(size for size, _ in sizes)


def _cost(model: Path, ranges: Ranges, texts: Sequence[str]) -> Cost:
    weights = read_weights(model, kind_of(model))
    exact = compiled_scorer(weights, _origin(model))
    quantized = compiled_scorer(with_ranges(weights, ranges, model), _origin(model), precision="int8")
    return measured_cost(exact, quantized, texts)


def _origin(model: Path) -> Origin:
    return Origin(folder=model, fingerprint="", with_torch=lambda: None)
