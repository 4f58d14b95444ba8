"""Contrasts: examples for distillation from scored pairs."""

from tercet.augment.contrasts import contrasts


def test_the_best_partner_is_contrasted_with_every_lower_one() -> None:
    found = list(contrasts([("a", "b", 1.0), ("a", "c", 3.0), ("d", "a", 2.0), ("e", "f", 1.0)]))
    assert [(row["context"], row["candidates"], row["scores"]) for row in found] == [
        ("a", ["c", "b"], [3.0, 1.0]),
        ("a", ["c", "d"], [3.0, 2.0]),
    ]
