"""A passage in the form in which a reader reads it."""

from dataclasses import dataclass, field

from winnow.domain.passage import Passage
from winnow.reading.passage_states import PassageStates
from winnow.text.tokenizer import Tokens


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage with its tokens and precomputed states."""

    passage: Passage
    title_ids: tuple[int, ...]
    tokens: Tokens
    """Tokens of the text."""
    states: PassageStates | None = None
    tenant: str = field(default="", kw_only=True)
    """Tenant of the caller who sent the text; empty for a stored passage, and without a tenant."""
