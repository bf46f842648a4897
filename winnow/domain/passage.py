"""Passages, and hits of the retriever."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of text that can be read and cited."""

    id: str
    title: str
    text: str
    metadata: str = ""
    """The JSON object that was indexed, as text; empty without metadata."""

    @property
    def content_bytes(self) -> int:
        """Size of title, text and metadata, in bytes of UTF-8."""
        return sum(len(each.encode()) for each in (self.title, self.text, self.metadata))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A retrieved passage by its row in a shard, and its distance to the question."""

    row: int
    passage_id: str
    distance: float
    """Squared Euclidean distance of unit vectors: 0 to 4, smaller is nearer."""
    hybrid_distance: float
    """The distance, reduced by the weight of the question's words in the passage, and by the
    weighted score of late interaction if it is used.

    Passages are chosen and read in ascending order of this value.
    """
    generation: str = ""
    """Generation of the shard in which `row` is valid; empty if not known."""
    words: float = 0.0
    """BM25 of the question's words in the passage."""
    sequence: int = 0
    """Number of the write that stored the passage; 0 if the passage is from the build.

    Passage id and sequence together identify the text in every generation.
    """
    late_interaction: bool = False
    """Whether `hybrid_distance` includes the score of late interaction."""
