"""Questions that Wikipedia asks itself: a sentence without one of its names, answered elsewhere.

There are few questions with marked answers and many sentences. A name, a year or a number is taken
out of a sentence, and another passage that tells of the same thing has to give it back (Lewis et
al. 2019, "Unsupervised question answering by cloze translation"; Glass et al. 2020, "Span selection
pre-training for question answering"). Worse questions than people ask, and as many as one likes.
"""

import random
import re
from collections.abc import Callable, Iterable, Sequence

from models.data.answers import contains_answer, find_answer
from models.data.rows import Passage
from models.mining.mine import NEGATIVES, TrainingQuestion

SOURCE = "cloze"
APART = 8
"""One passage in so many gives questions; the others give answers."""

_WORDS = range(8, 31)
"""Words of a sentence that becomes a question."""
_SENTENCE = re.compile(r"\S.*?[.!?](?=\s|$)")
_NAME = r"[A-Z][\w'\u2019-]+(?:\s(?:(?:of|the|de|von|van|and)\s)?[A-Z][\w'\u2019-]+)*"
_SPAN = re.compile(
    rf"(?P<year>\b1[0-9]{{3}}\b|\b20[0-9]{{2}}\b)|(?P<number>\b\d[\d,.]*\b)|(?P<name>{_NAME})"
)
_NO_NAMES = {"A", "An", "And", "But", "He", "Her", "His", "In", "It", "She", "The", "They", "This"}
_PLACE = re.compile(r"\b(?:in|at|near|from|to)\s*$")

Search = Callable[[str, int], Sequence[Passage]]
"""A question and how many passages, to the best of them."""


def cloze(passage: Passage, generator: random.Random) -> tuple[str, str] | None:
    """A question made of one sentence of `passage`, and its answer; none if no sentence will do."""
    sentences = [found.group().strip() for found in _SENTENCE.finditer(passage.text)]
    usable = [sentence for sentence in sentences if len(sentence.split()) in _WORDS]
    if not usable:
        return None
    sentence = generator.choice(usable)
    # the first word is capitalised whatever it is
    spans = [found for found in _SPAN.finditer(sentence) if found.start() > 0]
    spans = [s for s in spans if s.group() not in passage.title and s.group() not in _NO_NAMES]
    if not spans:
        return None
    span = generator.choice(spans)
    before, after = sentence[: span.start()], sentence[span.end() :]
    asked = f"{_asking(span, before, generator)} {before.strip()} {after.strip(' .')}"
    topic = "" if passage.title in sentence else f" {passage.title}"
    return f"{' '.join(asked.split())}{topic}?", span.group()


def mine_cloze(
    sources: Iterable[Passage], search: Search, seed: int
) -> tuple[list[Passage], list[TrainingQuestion]]:
    """Training questions out of `sources`, with passages that `search` finds: the best one with the
    answer is the positive, better and worse ones without it are negatives.

    `search` must not find the sources themselves.
    """
    generator = random.Random(seed)
    numbers: dict[Passage, int] = {}
    asked = []
    for source in sources:
        made = cloze(source, generator)
        if made is None:
            continue
        question, answer = made
        found = search(question, 2 * NEGATIVES)
        places = ((passage, find_answer(passage.text, [answer])) for passage in found)
        positive = next(((p, place) for p, place in places if place is not None), None)
        wrong = [passage for passage in found if not contains_answer(passage, [answer])]
        if positive is None or not wrong:
            continue
        passage, (written, start) = positive
        number, *others = (
            numbers.setdefault(each, len(numbers)) for each in [passage, *wrong[:NEGATIVES]]
        )
        asked.append(TrainingQuestion(question, written, start, SOURCE, number, tuple(others)))
    return list(numbers), asked


def _asking(span: re.Match[str], before: str, generator: random.Random) -> str:
    if span["year"]:
        return "when"
    if span["number"]:
        return "how many"
    if _PLACE.search(before):
        return generator.choice(["where", "what"])
    return generator.choice(["who", "what", "which"])
