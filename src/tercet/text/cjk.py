"""Word splitting for Korean, Japanese and Chinese, which lexical matching needs."""

import re

HAN = "\u3400-\u9fff\uf900-\ufaff"
"""The ranges of Han characters, for a regular expression."""

UNSPACED = f"\u3040-\u30ff{HAN}"
"""Kana and Han characters: Japanese and Chinese put no spaces between words. Korean does."""

CJK = re.compile("[\u1100-\u11ff\u3040-\u30ff\u3130-\u318f\u3400-\u9fff\uac00-\ud7a3]+")
"""Runs of Hangul, kana and Han characters: Korean words carry endings, the others have no spaces.

Stored lexical indexes are built with these ranges, so other ones need new indexes.
"""


def split_cjk(text: str) -> str:
    """``text`` with each run of Korean, Japanese or Chinese characters replaced by its character bigrams."""
    return CJK.sub(lambda run: f" {' '.join(bigrams(run.group()))} ", text)


def bigrams(run: str) -> list[str]:
    """The pairs of neighbouring characters of a run; a single character is its own pair."""
    return [run[position : position + 2] for position in range(max(1, len(run) - 1))]
