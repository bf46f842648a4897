"""A request for predictions as it is made, before anybody has looked at it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PredictRequest:
    """Texts, and the heads to apply to each; not validated."""

    text: str = ""
    """One text; empty where `texts` are given."""
    texts: tuple[str, ...] = ()
    head_ids: tuple[str, ...] = ()
    group: str = ""
    """The encoder group that holds the heads; empty for the server's default."""
