"""Questions and passages for measurements, made from the demo passages.

The answers do not matter. The costs depend on lengths and words, which are those of real questions
and of passages of 100 words.
"""

from dataclasses import replace

from winnow.domain.write import Put
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
"""Words of a passage, as the builder cuts documents."""


def made_up_passages() -> list[Put]:
    """One passage of 100 words for each demo passage, from it and the passages that follow."""
    rows = _demo_rows()
    texts = [row.passage.text.split() for row in rows]
    found = []
    for place, row in enumerate(rows):
        words = [word for text in (*texts[place:], *texts[:place])[:_WORDS] for word in text]
        found.append(Put(replace(row.passage, text=" ".join(words[:_WORDS]))))
    return found


def made_up_questions() -> list[str]:
    """Distinct questions, the same in every run."""
    titles = dict.fromkeys(row.passage.title for row in _demo_rows())
    return [form.format(title) for form in _FORMS for title in titles]


def _demo_rows() -> list[Row]:
    return [row for row in read_rows(demo_corpus() / "passages.jsonl") if isinstance(row, Row)]
