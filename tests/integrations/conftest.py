"""Texts of the sample FAQ and the models that rank them."""

import os

import pytest

import tercet
from tercet.data.sample import questions

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # before haystack is imported
os.environ["LANGSMITH_TRACING"] = "false"

TEXTS = [entry.question for entry in questions("en")[:30]]
TOPICS = [entry.topic for entry in questions("en")[:30]]
QUERY = "My card was declined"


@pytest.fixture(scope="session")
def cross() -> tercet.CrossEncoder:
    """The packaged cross-encoder."""
    scorer = tercet.load("cross", device="cpu")
    assert isinstance(scorer, tercet.CrossEncoder)
    return scorer
