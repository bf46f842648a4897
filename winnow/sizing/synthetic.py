"""Synthetic questions and passages for measurements, made from the demo passages.

Costs depend on lengths and words, so these are those of real questions and of passages of 100
words. Whether the questions have answers does not matter.
"""

from dataclasses import replace

from winnow.domain.write import Put
from winnow.packaged import demo_corpus
from winnow.passages.rows import Row, read_rows

_TEMPLATES = (
    "What is known about {}?",
    "When was {} first mentioned?",
    "Who was the first to describe {}?",
    "Where can {} be found today?",
    "How many people have heard of {}?",
)
_PASSAGE_WORDS = 100
"""Number of words of a passage, as when the index builder cuts documents."""


def synthetic_passages() -> list[Put]:
    """Returns a passage of 100 words for each demo passage, filled up with the following ones."""
    rows = _demo_rows()
    texts = [row.passage.text.split() for row in rows]
    passages = []
    for start, row in enumerate(rows):
        following = (*texts[start:], *texts[:start])[:_PASSAGE_WORDS]
        words = [word for text in following for word in text][:_PASSAGE_WORDS]
        passages.append(Put(replace(row.passage, text=" ".join(words))))
    return passages


def synthetic_questions() -> list[str]:
    """Returns distinct questions, which are the same in every run."""
    titles = dict.fromkeys(row.passage.title for row in _demo_rows())
    return [template.format(title) for template in _TEMPLATES for title in titles]


def _demo_rows() -> list[Row]:
    return [row for row in read_rows(demo_corpus() / "passages.jsonl") if isinstance(row, Row)]
