"""The dev sets: replies to choose from, questions among all answers, sentence similarity and SciFact."""

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tantivy
from texts import DataFolder, TokenWriter, held_out, sample

from tercet.data.sample import LANGUAGES, questions

NLI_SCORES = {"contradiction": 0, "neutral": 1, "entailment": 2}
BM25_DEPTH = 30


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Contexts, each with its own candidates, of which one is right."""

    name: str
    contexts: Sequence[str]
    candidates: Sequence[Sequence[str]]
    labels: Sequence[int]

    def texts(self) -> Iterator[str]:
        yield from self.contexts
        for candidates in self.candidates:
            yield from candidates

    def write(self, writer: TokenWriter) -> None:
        texts = [text for candidates in self.candidates for text in candidates]
        shape = len(self.contexts), len(self.candidates[0]), 2
        prefix = f"choice/{self.name}"
        writer.columns[f"{prefix}/context"] = writer.spans(self.contexts, 200, keep_end=True)
        writer.columns[f"{prefix}/candidate"] = writer.spans(texts, 96).reshape(shape)
        writer.columns[f"{prefix}/label"] = np.array(self.labels, np.int32)


@dataclass(frozen=True, kw_only=True)
class Answers:
    """Questions; the answers of all questions are the candidates of each."""

    name: str
    pairs: Sequence[tuple[str, str]]

    def texts(self) -> Iterator[str]:
        for pair in self.pairs:
            yield from pair

    def write(self, writer: TokenWriter) -> None:
        writer.columns[f"all/{self.name}/query"] = writer.spans([query for query, _ in self.pairs], 96)
        writer.columns[f"all/{self.name}/document"] = writer.spans([answer for _, answer in self.pairs], 128)


@dataclass(frozen=True, kw_only=True)
class Similarity:
    """Pairs of texts with a score."""

    name: str
    pairs: Sequence[tuple[str, str]]
    scores: Sequence[float]

    def texts(self) -> Iterator[str]:
        for pair in self.pairs:
            yield from pair

    def write(self, writer: TokenWriter) -> None:
        writer.columns[f"sts/{self.name}/left"] = writer.spans([left for left, _ in self.pairs], 128)
        writer.columns[f"sts/{self.name}/right"] = writer.spans([right for _, right in self.pairs], 128)
        writer.columns[f"sts/{self.name}/score"] = np.array(self.scores, np.float32)


@dataclass(frozen=True, kw_only=True)
class Retrieval:
    """Queries with relevant documents of a corpus, and the first documents by BM25."""

    name: str
    queries: Sequence[str]
    documents: Sequence[str]
    relevant: Sequence[Sequence[int]]

    def texts(self) -> Iterator[str]:
        yield from self.queries
        yield from self.documents

    def write(self, writer: TokenWriter) -> None:
        most = max(map(len, self.relevant))
        padded = [[*found, *[-1] * (most - len(found))] for found in self.relevant]
        writer.columns[f"{self.name}/query"] = writer.spans(self.queries, 96)
        writer.columns[f"{self.name}/document"] = writer.spans(self.documents, 200)
        writer.columns[f"{self.name}/relevant"] = np.array(padded, np.int32)
        writer.columns[f"{self.name}/bm25"] = bm25_positions(self.queries, self.documents)


DevSet = Choice | Answers | Similarity | Retrieval


def dev_sets(data: DataFolder) -> list[DevSet]:
    """All dev sets that have rows."""
    sets: list[DevSet] = [*choices(data), *answers(data), *similarities(data), scifact(data)]
    return [dev_set for dev_set in sets if any(True for _ in dev_set.texts())]


def choices(data: DataFolder) -> Iterator[Choice]:
    files = {
        "ubuntu": "ubuntu_irc/dev_10",
        "selfdialogue": "self_dialogue/valid",
        "dailydialog": "dailydialog/valid",
        "convai2": "convai2/valid",
    }
    for name, file in files.items():
        rows = list(data.rows(file))
        yield choice(name, rows if len(rows) <= 3000 else random.Random(1).sample(rows, 3000))
    yield choice("xpersona_ko", list(xpersona(data)))


def choice(name: str, rows: Sequence[dict[str, Any]]) -> Choice:
    return Choice(
        name=name,
        contexts=["\n".join(row["context"]) for row in rows],
        candidates=[row["candidates"] for row in rows],
        labels=[row["label"] for row in rows],
    )


def xpersona(data: DataFolder) -> Iterator[dict[str, Any]]:
    """XPersona with 19 replies of other dialogues beside the right one."""
    rng = random.Random(5)
    rows = list(data.rows("xpersona_ko/valid"))
    replies = [row["response"] for row in rows]
    for row in sample(random.Random(1), rows, 1200):
        candidates = rng.sample([reply for reply in replies if reply != row["response"]], 19)
        label = rng.randrange(20)
        candidates.insert(label, row["response"])
        yield {"context": row["context"], "candidates": candidates, "label": label}


def answers(data: DataFolder) -> Iterator[Answers]:
    for language in LANGUAGES:
        pairs = [(entry.context, entry.answer) for entry in questions(language)]
        yield Answers(name=f"faq_{language}", pairs=pairs)
    for name, size, pairs in held_out_answers(data):
        yield Answers(name=name, pairs=unique(pairs, size))


def held_out_answers(data: DataFolder) -> Iterator[tuple[str, int, list[tuple[str, str]]]]:
    """Name, largest size and pairs of the sets without a dev file."""
    files = (
        ("medquad", "medquad/train", "focus", 400),
        ("docs_en_faq", "docs_en_faq/train", "title", 350),
        ("docs_ko_faq", "docs_ko_faq/train", "title", 350),
    )
    for name, file, key, size in files:
        yield name, size, [(q, a) for q, a, row in data.answers(file) if held_out(name, row[key])]
    for name, file in (("headings_ko", "docs_ko_headings/train"), ("trivia", "open_trivia/train")):
        yield name, 400, [(q, a) for q, a, _ in data.answers(file) if held_out(name, q)]
    chats = [(row["context"][0], row["response"]) for row in data.rows("ko_chatbot/all")]
    yield "ko_chatbot", 400, [(q, a) for q, a in chats if held_out("ko_chatbot", q)]
    places = [
        (f"{row['entity'].title()}: {q}", a)
        for q, a, row in data.answers("dstc9_faq/train")
        if held_out("dstc9", row["entity"])
    ]
    yield "dstc9", 300, places
    groups = [group for key, group in data.style_groups().items() if held_out("stylekqc", key)]
    yield "stylekqc", 400, [(group[0], group[7]) for group in groups if len(group) > 7]
    groups = [group for key, group in data.paraphrase_groups().items() if held_out("parakqc", key)]
    yield "parakqc", 400, [(group[0], group[5]) for group in groups]
    translations = defaultdict(list)
    for english, korean, kind in data.translations():
        if kind != "korsts" and held_out(kind, english):
            translations[kind].append((korean, english))
    for kind, pairs in translations.items():
        yield f"enko_{kind}", 500, pairs


def unique(pairs: Iterable[tuple[str, str]], size: int) -> list[tuple[str, str]]:
    """At most ``size`` pairs, none of which shares a question or an answer with another."""
    left, right, kept = set(), set(), []
    for question, answer in pairs:
        if question not in left and answer not in right:
            left.add(question)
            right.add(answer)
            kept.append((question, answer))
    random.Random(2).shuffle(kept)
    return kept[:size]


def similarities(data: DataFolder) -> Iterator[Similarity]:
    for name, file in (("stsb", "stsb/dev"), ("korsts", "kor_sts/dev")):
        yield similarity(name, list(data.rows(file)), "score")
    nli = sample(random.Random(3), list(data.rows("klue_nli/dev")), 1500)
    yield similarity("kluenli", [{**row, "score": NLI_SCORES[row["label"]]} for row in nli], "score")
    pairs = [row for row in data.rows("ko_question_pair/train") if held_out("qpair_ko", row["text_a"])]
    yield similarity("qpair_ko", pairs, "label")


def similarity(name: str, rows: Sequence[dict[str, Any]], column: str) -> Similarity:
    pairs = [(row["text_a"], row["text_b"]) for row in rows]
    return Similarity(name=name, pairs=pairs, scores=[row[column] for row in rows])


def scifact(data: DataFolder) -> Retrieval:
    """300 training queries of SciFact (no model here is trained on it) over the whole corpus."""
    corpus = list(data.rows("beir_scifact/corpus", whole=True))
    position = {document["_id"]: number for number, document in enumerate(corpus)}
    queries = {row["_id"]: row["text"] for row in data.rows("beir_scifact/queries", whole=True)}
    relevant = defaultdict(list)
    for row in data.rows("beir_scifact/qrels_train", whole=True):
        if row["score"] > 0:
            relevant[row["query-id"]].append(position[row["corpus-id"]])
    keys = random.Random(0).sample(sorted(relevant), 300)
    return Retrieval(
        name="scifact",
        queries=[queries[key] for key in keys],
        documents=[f"{document['title']}\n{document['text']}" for document in corpus],
        relevant=[relevant[key] for key in keys],
    )


def bm25_positions(queries: Sequence[str], documents: Sequence[str]) -> np.ndarray:
    """``[Q, 30]`` positions of the best documents by BM25, -1 where there are fewer."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("text", stored=False, tokenizer_name="en_stem")
    builder.add_integer_field("position", stored=True)
    index = tantivy.Index(builder.build())
    writer = index.writer()
    for position, text in enumerate(documents):
        writer.add_document(tantivy.Document(text=text, position=position))
    writer.commit()
    index.reload()
    searcher = index.searcher()
    positions = np.full((len(queries), BM25_DEPTH), -1, np.int32)
    for row, query in enumerate(queries):
        parsed = index.parse_query(" ".join(re.findall(r"\w+", query)), ["text"])
        for rank, (_, address) in enumerate(searcher.search(parsed, BM25_DEPTH).hits):
            positions[row, rank] = searcher.doc(address)["position"][0]
    return positions
