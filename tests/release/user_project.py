"""What a typed program of a user looks like; mypy and pyright check it in their strict modes."""

import tercet
from tercet.errors import TercetError
from tercet.records import Certainty, Hits


def best_answer(question: str, answers: list[str]) -> tuple[str, float]:
    scorer = tercet.load("bi")
    ranked = scorer.rank(question, answers, k=1)[0]
    return ranked.text, ranked.score


def is_proven(folder: str, question: str) -> bool:
    retriever = tercet.Retriever.open(folder)
    hits: Hits = retriever.search(question, k=3)
    return hits.certainty is Certainty.CERTIFIED and [hit.id for hit in hits] != []


async def from_server(address: str, question: str, answers: list[str]) -> list[str]:
    async with tercet.AsyncClient(address) as client:
        return [ranked.text for ranked in await client.rank(question, answers, k=2)]


def settings() -> tercet.PolyConfig:
    try:
        return tercet.PolyConfig(codes=16, similarity="cosine")
    except TercetError as error:
        raise SystemExit(str(error)) from error
