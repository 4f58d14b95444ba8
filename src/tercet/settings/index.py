"""Choices of an index and of its search."""

from typing import Literal, TypeAlias, get_args

Storage: TypeAlias = Literal["float32", "float16", "bfloat16", "int8"]
"""How vectors are stored. A folder has no ``float16``; databases have only ``float32`` and ``float16``."""
DeviceStorage: TypeAlias = Literal["float32", "bfloat16", "float16", "int8"]
"""How vectors are stored on a GPU."""
Mode: TypeAlias = Literal["vectors", "lexical", "hybrid"]
"""Search by vectors, by BM25, or by both."""

STORAGE_KINDS: tuple[Storage, ...] = get_args(Storage)
DEVICE_STORAGES: tuple[DeviceStorage, ...] = get_args(DeviceStorage)
MODES: tuple[Mode, ...] = get_args(Mode)
