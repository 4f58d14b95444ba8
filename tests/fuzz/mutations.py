"""Damaged and hostile variants of valid files, drawn by a random generator."""

import gzip
import json
from random import Random
from typing import Any

MAX_CHANGES = 4
"""Changes of one file."""

HOSTILE = (
    b"",
    b"\x00",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\r",
    b"\n" * 50,
    b'"',
    b"\\",
    b"[" * 200,
    b"{" * 200,
    b'{"a":' * 2000,
    b"a." * 5000 + b"a = 1\n",
    b"[" + b"x." * 3000 + b"x]\n",
    b"9" * 5000,
    b"1e999",
    b"NaN",
    b"-Infinity",
    b"null",
    b"true",
    b"\\ud800",
    b"\xed\xa0\x80",
    b"\x1b[31m",
    b'"""',
    b"'''",
    b"k" * 20_000,
    b"\xe2\x80\xa8",
    b"../../x",
    b"1979-05-27T07:32:00.999Z",
)
"""Bytes that readers have stumbled over."""

VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1,
    2**31,
    2**64,
    10**400,
    0.5,
    -0.0,
    1e308,
    float("nan"),
    float("inf"),
    "",
    " ",
    "text",
    "\ud800",
    "\0",
    "../..",
    "/dev/zero",
    "a" * 5000,
    [],
    [[]],
    ["a", 1, None],
    {},
    {"a": {"b": [1]}},
    json.loads("[" * 90 + "]" * 90),
)
"""Values for a setting or a cell."""


def damaged(content: bytes, random: Random) -> bytes:
    """The bytes with a few flipped, inserted, deleted, repeated or replaced."""
    for _ in range(random.randint(1, MAX_CHANGES)):
        start = random.choice((0, random.randint(0, len(content))))  # much is decided at the start
        end = min(len(content), start + random.choice((1, 1, 4, 50, 1000)))
        kind = random.randrange(6)
        if kind == 0 and start < len(content):
            flipped = content[start] ^ (1 << random.randrange(8))
            content = content[:start] + bytes([flipped]) + content[start + 1 :]
        elif kind == 1:
            content = content[:start] + random.choice(HOSTILE) + content[start:]
        elif kind == 2:
            content = content[:start] + content[end:]
        elif kind == 3:
            content = content[:end] + content[start:end] * random.choice((1, 2, 50)) + content[end:]
        elif kind == 4:
            content = content[:start] + random.choice(HOSTILE) + content[end:]
        else:
            content = content[:start]
    return content


def restructured(value: Any, random: Random) -> Any:
    """A JSON value with one part replaced, removed, repeated or moved one level down."""
    if isinstance(value, dict) and value and random.random() < 0.8:
        key = random.choice(sorted(value))
        kind = random.randrange(5)
        if kind == 0:
            return {name: part for name, part in value.items() if name != key}
        if kind == 1:
            return value | {random.choice(("", "x", "\0", "k" * 20_000, "__class__")): value[key]}
        return value | {key: restructured(value[key], random)}
    if isinstance(value, list) and value and random.random() < 0.8:
        position = random.randrange(len(value))
        return [*value[:position], restructured(value[position], random), *value[position + 1 :]]
    return [value] if random.random() < 0.1 else random.choice(VALUES)


def damaged_json(content: bytes, random: Random) -> bytes:
    """JSON with another structure, or with damaged bytes."""
    if random.random() < 0.3:
        return damaged(content, random)
    value = json.loads(content)
    for _ in range(random.randint(1, MAX_CHANGES)):
        value = restructured(value, random)
    return json.dumps(value).encode()


def damaged_rows(content: bytes, random: Random) -> bytes:
    """JSON Lines with damaged bytes, or with another structure in one line."""
    if random.random() < 0.5:
        return damaged(content, random)
    lines = content.splitlines()
    position = random.randrange(len(lines))
    lines[position] = damaged_json(lines[position], random)
    return b"\n".join(lines)


def damaged_toml(content: bytes, random: Random) -> bytes:
    """TOML with damaged bytes, or with other values."""
    if random.random() < 0.3:
        return damaged(content, random)
    lines = content.split(b"\n")
    for _ in range(random.randint(1, MAX_CHANGES)):
        position = random.randrange(len(lines))
        key, equals, _value = lines[position].partition(b"=")
        if equals:
            lines[position] = key + b"= " + toml_value(random.choice(VALUES)).encode(errors="surrogatepass")
        else:
            lines.insert(position, random.choice((lines[position], *lines)))
    return b"\n".join(lines)


def toml_value(value: Any) -> str:
    """A value in TOML, nearly: some strings are not valid there."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml_value(part)}" for key, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return "nan" if value is None else json.dumps(value).replace("Infinity", "inf").replace("NaN", "nan")


def damaged_gzip(content: bytes, random: Random) -> bytes:
    """A gzip file of damaged bytes, or a damaged gzip file."""
    if random.random() < 0.5:
        return gzip.compress(damaged(gzip.decompress(content), random))
    return damaged(content, random)
