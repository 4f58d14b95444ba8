"""The requirements of tercet. In a checkout, packages/minilm has the weights; a release asks the index."""

import os
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

WEIGHTS = "tercet-minilm"
RELEASE = "TERCET_RELEASE"
"""Set by ``make dist``: what is uploaded must not name a folder of this machine."""


class Requirements(MetadataHookInterface):  # type: ignore[misc]
    """Reads the requirements from the table of this hook in ``pyproject.toml``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the requirements. pip then builds the weights along with tercet, without a step before it."""
        local = Path(self.root) / "packages" / "minilm"
        reference = f"{WEIGHTS} @ {local.as_uri()}"
        in_checkout = local.is_dir() and not os.environ.get(RELEASE)
        metadata["dependencies"] = [
            reference if in_checkout and requirement.startswith(WEIGHTS) else requirement
            for requirement in self.config["dependencies"]
        ]
