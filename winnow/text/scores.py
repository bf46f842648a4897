"""How right an answer is: exact match and F1, as SQuAD defines them.

Pure functions on strings (Rajpurkar et al. 2016, section 6.1).
"""

import re
import string
from collections import Counter
from collections.abc import Iterable

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalise(text: str) -> str:
    """Lower case, without ASCII punctuation and English articles, single spaces."""
    bare = text.lower().translate(_PUNCTUATION)
    return " ".join(_ARTICLES.sub(" ", bare).split())


def exact_match(answer: str, accepted: Iterable[str]) -> bool:
    """Whether `answer` equals any accepted answer once both are normalised."""
    return normalise(answer) in set(map(normalise, accepted))


def f1(answer: str, accepted: Iterable[str]) -> float:
    """The best overlap in words with any accepted answer, from 0 to 1."""
    return max((_overlap(answer, other) for other in accepted), default=0.0)


def _overlap(answer: str, other: str) -> float:
    said, meant = normalise(answer).split(), normalise(other).split()
    if not said or not meant:
        return float(said == meant)
    common = sum((Counter(said) & Counter(meant)).values())
    if common == 0:
        return 0.0
    precision, recall = common / len(said), common / len(meant)
    return 2 * precision * recall / (precision + recall)
