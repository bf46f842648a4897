"""Finding answers in passages by their words.

Pure string functions. Normalisation is SQuAD's (Rajpurkar et al. 2016, section 6.1) and lives in
`winnow.text.scores`; here it is only applied to whole passages.
"""

import re
from collections.abc import Iterable

from models.data.rows import Passage
from winnow.text.scores import normalise

__all__ = ["contains_answer", "find_answer", "normalise"]


def contains_answer(passage: Passage, answers: Iterable[str]) -> bool:
    """Whether the title or the text contains any answer as whole normalised words."""
    words = f" {normalise(passage.title)} {normalise(passage.text)} "
    return any(f" {answer} " in words for answer in map(normalise, answers) if answer)


def find_answer(text: str, answers: Iterable[str]) -> tuple[str, int] | None:
    """The first answer that stands in `text` as whole words: as written there, and where."""
    for answer in answers:
        words = [re.escape(word) for word in re.findall(r"\w+|[^\w\s]", answer)]
        if not words:
            continue
        found = re.search(r"(?<!\w)" + r"\s*".join(words) + r"(?!\w)", text, re.IGNORECASE)
        if found is not None:
            return found.group(), found.start()
    return None
