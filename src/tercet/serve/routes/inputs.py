"""Checks that the routes share."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Depends, Request

from tercet.errors import InputError
from tercet.inputs import check_context, check_text
from tercet.records import Context
from tercet.serve.problems import ProblemError
from tercet.serve.service import Service
from tercet.settings.serve import ServeLimits


async def ready_service(request: Request) -> Service:
    """The service, once its models are loaded. FastAPI would call a plain function in a thread."""
    service: Service = request.app.state.service
    if not service.ready:
        raise ProblemError(503, "loading", "the models are being loaded: try again soon", retry_after=2)
    return service


Ready = Annotated[Service, Depends(ready_service)]


async def writing_service(request: Request, service: Ready) -> Service:
    """The service, if the request may change indexes."""
    if service.config.serve.read_only:
        raise ProblemError(
            403, "read_only", "this server does not change indexes: start it without --read-only"
        )
    if request.state.scope != "write":
        raise ProblemError(
            403, "forbidden", "this API key may not change indexes: use one with the write scope"
        )
    return service


Writing = Annotated[Service, Depends(writing_service)]


def checked_context(context: str | Sequence[str], limits: ServeLimits, name: str = "context") -> Context:
    """The context, if it is neither empty nor too long."""
    checked = check_context(context, name)
    length = len(checked) if isinstance(checked, str) else sum(map(len, checked))
    check_length(length, limits, name)
    return checked


def checked_texts(texts: Sequence[str], limits: ServeLimits, name: str = "candidate") -> list[str]:
    """The texts, if there are not too many, and each is neither empty nor too long."""
    check_number(len(texts), limits)
    for position, text in enumerate(texts):
        check_text(text, f"{name} {position}")
        check_length(len(text), limits, f"{name} {position}")
    return list(texts)


def check_number(count: int, limits: ServeLimits) -> None:
    """Raise if a request has too many texts or pairs."""
    if count > limits.max_texts:
        raise ProblemError(
            413,
            "too_large",
            f"a request may have {limits.max_texts:,} texts or pairs (max_texts), and this one has "
            f"{count:,}: send less at a time",
            limit="max_texts",
        )


def check_k(k: int, limits: ServeLimits, *, name: str = "k") -> int:
    """``k``, if it is not too large."""
    if k > limits.max_k:
        raise ProblemError(
            422, "too_large", f"{name} may be {limits.max_k:,} (max_k), got {k:,}", limit="max_k", param=name
        )
    return k


def with_vectors(service: Service, model: str | None) -> str:
    """The name of a bi- or poly-encoder."""
    name = model or service.default_model(with_vectors=True)
    if getattr(service.scorer(name), "width", None) is None:
        raise InputError(
            f"the model {name} is a cross-encoder, which has no vectors: use a bi- or poly-encoder"
        )
    return name


def truncated(counts: Sequence[int]) -> list[dict[str, int]]:
    """The texts that were truncated."""
    return [{"index": index, "tokens": int(count)} for index, count in enumerate(counts) if count]


def usage(tokens: int) -> dict[str, Any]:
    """Counted tokens in OpenAI's form."""
    return {"prompt_tokens": tokens, "total_tokens": tokens}


def check_length(length: int, limits: ServeLimits, name: str) -> None:
    """Raise if a text has too many characters, or tokens."""
    if length > limits.max_text_characters:
        raise ProblemError(
            413,
            "too_large",
            f"{name} has {length:,} characters, and a text may have {limits.max_text_characters:,} "
            "(max_text_characters): split it",
            limit="max_text_characters",
        )
