"""How texts are batched for inference."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class EncodingConfig:
    """How much is computed in one forward pass."""

    cpu_tokens: int = 2048
    """Tokens per forward pass on a CPU, without padding. More is not faster and uses more memory."""
    gpu_tokens: int = 32_768
    """Tokens per forward pass on a GPU. Fewer leave it idle, more add padding."""
    window_texts: int = 8192
    """Texts that are sorted by length together, and the most that a stream holds in memory."""
    window_characters: int = 4_000_000
    """Maximum number of characters per window, for long texts."""
