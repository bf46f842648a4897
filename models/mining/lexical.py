"""BM25 over many passages, to find candidates without encoding them all.

Knows tantivy; offline only.
"""

import re
from collections.abc import Iterable
from pathlib import Path

import tantivy

from models.data.rows import Passage


class LexicalIndex:
    """Passages by the words of their title and text."""

    def __init__(self, passages: Iterable[Passage], directory: Path | None = None) -> None:
        builder = tantivy.SchemaBuilder()
        for field in ("title", "text"):
            builder.add_text_field(field, stored=True, tokenizer_name="en_stem")
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
        self._index = tantivy.Index(builder.build(), path=str(directory) if directory else None)
        writer = self._index.writer(heap_size=512_000_000)
        for passage in passages:
            writer.add_document(tantivy.Document(title=passage.title, text=passage.text))
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()
        self._searcher = self._index.searcher()

    def search(self, question: str, k: int) -> list[Passage]:
        """The best `k` passages for any of the question's words."""
        words = " ".join(re.findall(r"\w+", question.lower()))
        query = self._index.parse_query(words, ["title", "text"])
        found = self._searcher.search(query, k).hits
        documents = [self._searcher.doc(address) for _, address in found]
        return [Passage(str(d.get_first("title")), str(d.get_first("text"))) for d in documents]
