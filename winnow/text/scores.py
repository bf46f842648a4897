"""Exact match and F1 of an answer, as SQuAD defines them (Rajpurkar et al., 2016, section 6.1).

Pure.
"""

import re
import string
from collections import Counter
from collections.abc import Iterable

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> str:
    """Lowers the case, and removes ASCII punctuation, English articles and repeated spaces."""
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact_match(answer: str, accepted: Iterable[str]) -> bool:
    """Returns whether `answer` equals any accepted answer after normalisation."""
    return normalise(answer) in set(map(normalise, accepted))


def f1(answer: str, accepted: Iterable[str]) -> float:
    """Returns the best F1 of words with any accepted answer, from 0 to 1."""
    return max((_overlap(answer, other) for other in accepted), default=0.0)


def _overlap(answer: str, other: str) -> float:
    words, accepted_words = normalise(answer).split(), normalise(other).split()
    if not words or not accepted_words:
        return float(words == accepted_words)
    common = sum((Counter(words) & Counter(accepted_words)).values())
    if common == 0:
        return 0.0
    precision, recall = common / len(words), common / len(accepted_words)
    return 2 * precision * recall / (precision + recall)
