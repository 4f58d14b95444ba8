"""The faults that a mutation run plants."""

from pathlib import Path

import pytest
from tests.mutants.mutate import Mutant, mutants_of, sample_of


def mutants(tmp_path: Path, source: str) -> list[Mutant]:
    (tmp_path / "file.py").write_text(source, encoding="utf-8")
    return mutants_of(tmp_path, "file.py")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("x = a < b", ["x = (a <= b)", "x = (a >= b)"]),
        ("x = a * (b + c)", ["x = (a / (b + c))", "x = a * ((b - c))"]),
        ("x = a and b", ["x = (a or b)"]),
        ("x = 20", ["x = 21", "x = 19"]),
        ("x = 1e-9", ["x = 2e-09"]),
        ("f(keep=True)", ["pass", "f(keep=False)"]),
        ("x = a if b else c", ["x = a if (not b) else c"]),
        ("x = not a", ["x = a"]),
        ("x[0] = y", ["pass", "x[1] = y", "x[-1] = y"]),
        ("def f(x='a'): return x", ["def f(x='ax'): return x", "def f(x='a'): return None"]),
    ],
)
def test_faults_worked_out_by_hand(source: str, expected: list[str], tmp_path: Path) -> None:
    found = [mutant.after for mutant in mutants(tmp_path, source)]
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize(
    "source",
    [
        '"""A text with 3 numbers."""',
        "x: int | None",
        "if TYPE_CHECKING:\n    import a",
        "x = f'{a + 1}'",
        "for x in zip(a, b, strict=True): y = x",
        "@f(3)\ndef g(): ...",
    ],
)
def test_types_texts_and_decorators_are_left_alone(source: str, tmp_path: Path) -> None:
    assert mutants(tmp_path, source) == []


def test_a_mutant_names_its_function_and_differs_in_one_place(tmp_path: Path) -> None:
    source = "# Σ, as two bytes\nclass A:\n    def f(self):\n        é = 1; return é\n"
    found = [(mutant.function, mutant.line, mutant.after) for mutant in mutants(tmp_path, source)]
    assert found == [
        ("A.f", 4, "é = 2; return é"),
        ("A.f", 4, "é = 0; return é"),
        ("A.f", 4, "é = 1; return None"),
    ]


SOURCE = "".join(f"def f{number}(a, b):\n    return a < b + {number}\n" for number in range(40))


def test_a_sample_stays_the_same_when_other_lines_change(tmp_path: Path) -> None:
    before = sample_of(mutants(tmp_path, SOURCE), 20, seed=3)
    after = sample_of(mutants(tmp_path, f"x = 1\n\n{SOURCE}"), 20, seed=3)
    assert len(before) == 20
    assert len({(m.function, m.after) for m in before} & {(m.function, m.after) for m in after}) >= 18


def test_another_seed_draws_another_sample(tmp_path: Path) -> None:
    found = mutants(tmp_path, SOURCE)
    assert sample_of(found, 20, seed=3) != sample_of(found, 20, seed=4)
    assert sorted(m.after for m in sample_of(found, 999, seed=3)) == sorted(m.after for m in found)
