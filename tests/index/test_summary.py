"""The summary of a store."""

from pathlib import Path

from tercet.index.store import Store


def test_the_summary_names_the_model_or_says_that_it_is_unknown(tmp_path: Path) -> None:
    model = {"model": "tiny", "kind": "bi", "fingerprint": "3f2a"}
    for name, given in (("named", model), ("unnamed", {})):
        summary = Store.create(tmp_path / name, 4, metadata=given).summary()
        assert {key: summary[key] for key in model} == {key: given.get(key, "unknown") for key in model}
