"""Whether sentence-transformers loads a saved folder; its ``README.md`` and a warning say it."""

import warnings
from dataclasses import dataclass
from pathlib import Path

from tercet.errors import CompatibilityWarning
from tercet.settings.models import ScorerKind

NAME = "README.md"

CARD = """\
---
library_name: tercet
tags: [{kind}-encoder]
---

# A {kind}-encoder of tercet

```python
import tercet

scorer = tercet.load("FOLDER")
```

## In sentence-transformers

{hand_over}
"""


@dataclass(frozen=True, kw_only=True)
class HandOver:
    """How sentence-transformers loads a folder."""

    code: str = ""
    """Python that loads it there; empty if that is impossible."""
    limit: str = ""
    """Why it does not load, or what differs there."""
    note: str = ""
    """What its user there should know."""

    def warn(self, kind: ScorerKind) -> None:
        """Issue a warning if the scores are not the same there."""
        if self.limit:
            warnings.warn(f"this {kind}-encoder {self._verdict()}", CompatibilityWarning, stacklevel=4)

    def text(self) -> str:
        """The section of the card."""
        parts = [f"```python\n{self.code}\n```" if self.code else "", self.note]
        if self.limit:
            parts.append(f"The model {self._verdict()}.")
        return "\n\n".join(part for part in parts if part)

    def _verdict(self) -> str:
        where = "scores differently in" if self.code else "does not load in"
        return f"{where} sentence-transformers: {self.limit}"


def write_card(folder: Path, kind: ScorerKind, hand_over: HandOver) -> None:
    """Write the ``README.md`` of a model folder."""
    text = CARD.format(kind=kind, hand_over=hand_over.text())
    (folder / NAME).write_text(text, encoding="utf-8")


def partial_folder(contents: str) -> HandOver:
    """The hand-over of a folder that is not a complete model."""
    return HandOver(
        limit=f"the folder contains {contents}, not a complete model; write one with "
        'tercet.load("FOLDER").save("COMPLETE")'
    )
