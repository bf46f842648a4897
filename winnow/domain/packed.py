"""Answers in the forms in which they are sent, made once for all who get them."""

from dataclasses import dataclass


@dataclass(slots=True, eq=False)
class Packed:
    """The answers of a reply; its other fields differ from caller to caller."""

    wire: bytes
    """An `AnswerResponse` that has nothing but its answers, serialised."""
    json: bytes = b""
    """The same answers as a JSON array; empty until the first caller needs it."""

    @property
    def weight(self) -> int:
        """Bytes of both forms, about: it is not known yet how long the second is."""
        return 3 * len(self.wire)
