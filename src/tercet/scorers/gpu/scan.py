"""The search of an index's segments on a GPU."""

import warnings
from threading import Lock
from weakref import WeakKeyDictionary

import numpy as np
import torch

from tercet.errors import DeviceMemoryError, SlowDeviceWarning
from tercet.index.scan import scan
from tercet.index.scoring import TopK
from tercet.index.segment import Segment
from tercet.records import Floats
from tercet.scorers.gpu.vectors import DeviceVectors
from tercet.settings.index import DeviceStorage

FEWEST_ROWS = 4096
"""Smaller segments are scanned on the CPU; new ones change too often to be copied."""


class DeviceScan:
    """Scans segments on a device, to which each is copied on first use.

    Results are those of a scan on the CPU, because the best candidates are scored there. A copy lives as
    long as the index has the segment.

    Args:
        storage: how the copies are stored.
        fewest_rows: smaller segments are scanned on the CPU.
    """

    def __init__(
        self,
        device: torch.device | str,
        *,
        storage: DeviceStorage = "bfloat16",
        fewest_rows: int = FEWEST_ROWS,
    ) -> None:
        self.device = torch.device(device)
        self.storage: DeviceStorage = storage
        self.fewest_rows = fewest_rows
        self._copies: WeakKeyDictionary[object, DeviceVectors | None] = WeakKeyDictionary()
        self._lock = Lock()

    def __call__(self, segment: Segment, contexts: list[Floats], tops: list[TopK], *, scale: float) -> None:
        """Offer the vectors of a segment to the top-k of each context, whose codes are ``[M, D]``."""
        copy = self._copy(segment) if len(segment) >= self.fewest_rows else None
        if copy is None:
            scan(segment, contexts, tops, scale=scale)
        else:
            copy.offer(segment.ids, contexts, tops, scale=scale, alive=segment.alive)

    def _copy(self, segment: Segment) -> DeviceVectors | None:
        """The segment's vectors on the device; None if they do not fit."""
        with self._lock:
            if segment.key not in self._copies:
                self._copies[segment.key] = self._copied(segment)
            return self._copies[segment.key]

    def _copied(self, segment: Segment) -> DeviceVectors | None:
        vectors = np.asarray(segment.vectors(slice(None)))
        try:
            return DeviceVectors(vectors, device=self.device, storage=self.storage)
        except DeviceMemoryError as error:
            warnings.warn(f"search runs on the CPU: {error}", SlowDeviceWarning, stacklevel=2)
            return None
