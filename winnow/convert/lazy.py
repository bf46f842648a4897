"""Values of a message that are converted by the thread that reads them, not by the event loop."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

Value = TypeVar("Value")


class LazySequence(Sequence[Value]):
    """Values that are all converted when the first of them is read.

    Reading raises what `convert` raises, each time. The length is known without it.
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
