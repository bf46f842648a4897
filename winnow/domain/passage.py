"""Passages and where the retriever found them."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of text that can be read and cited."""

    id: str
    title: str
    text: str
    metadata: str = ""
    """A JSON object, as it was indexed; empty if there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A passage by its row in a shard, and how far it lies from the question."""

    row: int
    passage_id: str
    distance: float
    """Squared Euclidean distance of unit vectors: 0 to 4, smaller is nearer."""
    hybrid_distance: float
    """The same less what the question's words in the passage are worth: what passages are chosen
    and read in the order of.
    """
    generation: str = ""
    """Of the shard's rows: in another one the row may be another passage. Empty if not known."""
    words: float = 0.0
    """BM25 of the question's words in the passage."""
    sequence: int = 0
    """The write that put the passage: with its id it names the text in every generation. 0 if the
    passage was there when the index was built.
    """
