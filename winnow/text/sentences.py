"""Finds the ends of sentences in prose. Pure.

A rule of our own, because callers find sentences between two steps of an event loop: pysbd 0.3.4
takes 13 ms for a passage of 130 words. The rule follows the golden rules of the Pragmatic Segmenter
(https://github.com/diasks2/pragmatic_segmenter) for English.
"""

import re
from collections import deque
from collections.abc import Iterator


def _word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_CANDIDATE = re.compile(
    r"""[.!?…。！？](?<![.!?…。！？].)[.!?…。！？]*+[\])}"'”’»」』）]*(?:\[[^\[\]\n]{1,40}\]){0,8}(?:(?=\s)|(?<=[。！？」』）]))"""  # noqa: RUF001
)
"""Marks that may end a sentence, with closing quotes, brackets and up to 8 notes such as `[1]`.

Without a maximum, a text of periods in brackets would take quadratic time.
"""
_WORD_BREAK = re.compile(r"""[\s("'\[{“‘«—–/]""")  # noqa: RUF001
_NEXT = re.compile(r"""\s+["'(\[{“‘«`]*(\S{0,30})""")  # noqa: RUF001
_ORDINARY = re.compile(r"[^\W\d_]{4,}")
_INITIAL = re.compile(r"[^\W\d_]")
_INITIAL_WITH_PERIOD = re.compile(r"[^\W\d_]\.")
_INITIALS = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]|Ph\.D|B\.Sc|M\.Sc")
_NUMBER = re.compile(r"\d{1,3}")
_NEVER_LAST = _word_set("""
    mr mrs ms messrs dr prof st gen sen rep rev hon lt col sgt capt cmdr maj gov pres fr mt ft
    vs cf viz e.g i.e ca approx incl esp resp fig figs eq eqs sec sect ch chap pp vol ed eds
""")
"""Abbreviations that a name, a number or an explanation follows, so that no sentence ends there."""
_BEFORE_NUMBER = _word_set("""
    no nos p c v art pt jan feb mar apr jun jul aug sep sept oct nov dec ver
""")
"""Abbreviations after which no sentence ends if a number follows."""
_SELDOM_LAST = _word_set("""
    inc ltd co corp bros jr sr etc al assn ave blvd rd jan feb mar apr jun jul aug sep sept oct nov
    dec mon tue wed thu fri sat sun a.m p.m est min max abbr
""")
"""Abbreviations at which a sentence ends only if a word that begins sentences follows."""
_STARTERS = _word_set("""
    a after all also although an and as at because before both but by during each for from he her
    here his how however if in it its many more most my no nor one other our several she since some
    such that the their there therefore these they this those to under we what when where which
    while who why with you your
""")
"""Words that begin sentences and are not names."""
_MAX_WORD = 30
"""Maximum number of characters of an abbreviation or number before a period."""
_MAX_SENTENCE = 2_000
"""Maximum number of characters that are searched before and after a span."""
_MAX_MARKS = 50
"""Maximum number of marks that are searched before and after a span, such as of initials."""


def sentence_range(text: str, start: int, end: int, within: tuple[int, int]) -> tuple[int, int]:
    """Returns the range of the sentences of text[within] that the span [start, end) overlaps."""
    first, last = max(within[0], start - _MAX_SENTENCE), min(within[1], end + _MAX_SENTENCE)
    before = deque[re.Match[str]](maxlen=_MAX_MARKS)
    after = 0
    for candidate in _CANDIDATE.finditer(text, first, last):
        if candidate.end() <= start:
            before.append(candidate)
        elif candidate.end() >= end:
            after += 1
            if after == _MAX_MARKS or _ends_sentence(text, candidate, within[0]):
                last = candidate.end()
                break
    if len(before) == _MAX_MARKS:
        first = before[0].end()
    for candidate in reversed(before):
        if _ends_sentence(text, candidate, within[0]):
            first = candidate.end()
            break
    while first < start and text[first].isspace():
        first += 1
    return first, last


def sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yields the range of each sentence of a paragraph, without the space between them."""
    begin, last = _first_visible(text, 0), len(text.rstrip())
    for candidate in _CANDIDATE.finditer(text):
        if candidate.start() >= begin and _ends_sentence(text, candidate, 0):
            yield begin, candidate.end()
            begin = _first_visible(text, candidate.end())
    if begin < last:
        yield begin, last


def _first_visible(text: str, start: int) -> int:
    """Returns the offset of the first character from `start` on that is no space."""
    while start < len(text) and text[start].isspace():
        start += 1
    return start


def _ends_sentence(text: str, candidate: re.Match[str], begin: int) -> bool:
    """Whether a sentence of a paragraph that begins at `begin` ends with the candidate."""
    marks = candidate[0]
    if marks[0] in "。！？":  # noqa: RUF001
        return True
    following = _NEXT.match(text, candidate.end())
    next_word = following[1] if following else ""
    if not next_word:
        return True
    if not marks.startswith(".") or marks.startswith(".."):
        return not next_word[0].islower()
    nearby = text[max(begin, candidate.start() - _MAX_WORD) : candidate.start()]
    word = _WORD_BREAK.split(nearby)[-1]
    is_first = begin + len(word) == candidate.start()
    return _period_ends_sentence(word, next_word, is_first=is_first)


def _period_ends_sentence(word: str, next_word: str, *, is_first: bool) -> bool:
    """Whether a sentence ends at the period between two words. `is_first`: `word` begins it."""
    lower = word.lower().strip(".")
    next_lower = next_word.rstrip(".,;:!?").lower()
    if lower in _NEVER_LAST or (lower in _BEFORE_NUMBER and next_word[0].isdigit()):
        return False
    if is_first and (_NUMBER.fullmatch(word) or _INITIAL.fullmatch(word)):  # 1. or a. of a list
        return False
    if next_word[0].islower():
        # a name that begins in lower case, such as that of a program, may begin a sentence
        return bool(_ORDINARY.fullmatch(word)) and word.islower() and lower not in _SELDOM_LAST
    if lower in _SELDOM_LAST or _INITIAL.fullmatch(word) or _INITIALS.fullmatch(word):
        return next_lower in _STARTERS and not _INITIAL_WITH_PERIOD.match(next_word)
    return True
