"""Up to which line everything is durable, while batches end in any order. Pure."""


class Ledger:
    """Batches that were begun, in the order of their lines."""

    def __init__(self, line: int = 0) -> None:
        """`line`: up to which everything was durable before."""
        self.line = line
        """Up to which everything is durable."""
        self._open: dict[int, int | None] = {}
        """By their numbers: the last line that ends in each once it is stored, else None."""
        self._next = 0

    def begin(self) -> int:
        """A further batch is sent; its number."""
        self._next += 1
        self._open[self._next] = None
        return self._next

    def end(self, number: int, through: int) -> None:
        """A batch is stored, which goes through that line."""
        self._open[number] = through
        for first, stored in list(self._open.items()):
            if stored is None:
                break
            self.line = max(self.line, stored)
            del self._open[first]
