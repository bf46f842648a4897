"""A sequence that converts values of a message on first use, so that a thread can do so."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Value = TypeVar("Value")


class LazySequence(Sequence[Value]):
    """A sequence that converts all its values when the first one is accessed.

    If `convert` raises an error, each access calls it again. The length needs no conversion.
    """

    def __init__(self, count: int, convert: Callable[[], Sequence[Value]]) -> None:
        self._count, self._convert = count, convert
        self._values: Sequence[Value] | None = None

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: Any) -> Any:
        if self._values is None:
            self._values = self._convert()
        return self._values[index]
