"""Questions and passages to measure with, made of the demo passages.

Nobody looks at the answers. Lengths and words are those of questions and of passages of 100 words,
which is what costs.
"""

from dataclasses import replace
from pathlib import Path

from winnow.packaged import demo_corpus
from winnow.passages.rows import Row, read_rows

_FORMS = (
    "What is known about {}?",
    "When was {} first mentioned?",
    "Who was the first to describe {}?",
    "Where can {} be found today?",
    "How many people have heard of {}?",
)


_WORDS = 100
"""Of a passage, as the builder cuts documents."""


def made_up_passages() -> list[Row]:
    """As many as there are demo passages, each with those that follow it, up to 100 words."""
    rows = _demo_rows()
    texts = [row.passage.text.split() for row in rows]
    found = []
    for place, row in enumerate(rows):
        words = [word for text in (*texts[place:], *texts[:place])[:_WORDS] for word in text]
        passage = replace(row.passage, text=" ".join(words[:_WORDS]))
        found.append(replace(row, passage=passage))
    return found


def made_up_questions() -> list[str]:
    """Different questions, always the same."""
    titles = dict.fromkeys(row.passage.title for row in _demo_rows())
    return [form.format(title) for form in _FORMS for title in titles]


def _demo_rows() -> list[Row]:
    return [row for row in read_rows(_demo_passages()) if isinstance(row, Row)]


def _demo_passages() -> Path:
    return demo_corpus() / "passages.jsonl"
