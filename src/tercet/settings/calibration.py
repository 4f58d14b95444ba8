"""How scores become probabilities."""

from typing import Literal, TypeAlias, get_args

Method: TypeAlias = Literal["platt", "isotonic"]
METHODS: tuple[Method, ...] = get_args(Method)
