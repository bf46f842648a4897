"""Finds the sentence, list item, table row or list that contains a span. Pure.

Lists answer questions that ask for several things, which this module recognises.
"""

import re

from winnow.text.lines import MAX_LINES, TextRange, block_around, blocks_of, units_of
from winnow.text.sentences import sentence_range, sentence_spans

_MAX_ITEM = 200
"""Maximum characters of a list item or table row that is shown as a sentence. In a longer one,
sentences are found.
"""
_MAX_LISTED = 300
"""Maximum characters of an item of a list. Longer lines are paragraphs."""
_MAX_BEFORE = 20
"""Maximum characters before a span that is the beginning of its list item."""
_MAX_LIST = 2_000
"""Maximum characters of a list with its lead-in. A longer list is not an answer."""
_LEADS_IN = re.compile(r":$|\b(?:following|these|below)\b", re.IGNORECASE)

_PREPOSITION = r"(?:(?:about|at|by|for|from|in|of|on|to|under|with)\s+)?"
_COUNT = r"(?:the\s+)?(?:all|both|some|two|three|four|five|six|seven|eight|nine|ten|\d{1,3})"
_ASKS_FOR_SEVERAL = re.compile(
    rf"""\s*(?:
        {_PREPOSITION}(?:what|which|who)\s+(?:are|were)\b
      | {_PREPOSITION}(?:what|which)\s+(?:{_COUNT}|\w{{2,}}[^\Wsui]s\s+of)\b
      | {_PREPOSITION}(?:what|which)\s+(?:\w+\s+){{0,2}}\w*[^\Wsui]s\s+
        (?:are|were|can|could|do|did|does|exist|have|may|might|must|shall|should|will|would)\b
      | (?:please\s+)?(?:list|enumerate)\b
      | (?:please\s+)?(?:name|give(?:\s+me)?|tell\s+me)\s+{_COUNT}\b
      | (?:please\s+)?(?:name|give(?:\s+me)?|tell\s+me)\s+the\s+\w+s\b
    )""",
    re.IGNORECASE | re.VERBOSE,
)


def asks_for_several(question: str) -> bool:
    """Whether a question asks for several things: "what are the …", "list …", "name three …"."""
    return _ASKS_FOR_SEVERAL.match(question) is not None


def sentence_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Returns the range of the sentence, list item or table row that contains [start, end).

    If the span crosses a boundary, the range contains the sentences or lines on both sides.
    """
    units = units_of(text, block_around(text, start, end))
    overlapped = [unit for unit in units if unit.start < end and start < unit.end]
    if not overlapped:
        return start, end
    whole = TextRange(overlapped[0].start, overlapped[-1].end)
    is_item = len(units) > 1 and _is_short(whole)
    if len(overlapped) > 1 or is_item:
        return whole.start, whole.end
    return sentence_range(text, start, end, (whole.start, whole.end))


def all_sentences(text: str) -> list[tuple[int, int]]:
    """Returns the ranges of all sentences, list items and table rows of a text, in its order."""
    found = []
    for block in blocks_of(text):
        units = units_of(text, block)
        for unit in units:
            if len(units) > 1 and _is_short(unit):
                found.append((unit.start, unit.end))
            else:
                spans = sentence_spans(text[unit.start : unit.end])
                found += [(unit.start + start, unit.start + end) for start, end in spans]
    return found


def list_around(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Returns the range of the list or table that contains [start, end), with its lead-in.

    The lead-in is the sentence before the list, if it announces the list. The span may be in it.
    None if the span neither is in a lead-in nor stands for an item, or if the list is long.
    """
    block = block_around(text, start, end)
    units = units_of(text, block)
    if not units:
        return None
    lead_in = _last_sentence(text, units[0])
    is_led_in = lead_in.start <= start < lead_in.end and _announces_list(text, lead_in)
    if is_led_in and len(units) == 1:  # the list is the next block
        after = block.end + len(text[block.end :]) - len(text[block.end :].lstrip())
        block = block_around(text, after, after + 1)
    elif not is_led_in and not any(_stands_for(unit, start, end) for unit in units):
        return None
    found = _whole_list(text, block)
    return found if found is not None and found[0] <= start else None


def _whole_list(text: str, block: TextRange) -> tuple[int, int] | None:
    """Returns the range of the list in a block, with its lead-in; None if there is no list."""
    if text.count("\n", block.start, block.end) > MAX_LINES:
        return None
    units = units_of(text, block)
    items = units[1:]
    if not items or any(item.end - item.start > _MAX_LISTED for item in items):
        return None
    has_item_first = units[0].end - units[0].start <= _MAX_LISTED
    first = units[0].start if has_item_first else _last_sentence(text, units[0]).start
    lead_in = _sentence_before(text, block.start)
    if lead_in is not None and first == block.start:
        first = lead_in.start
    return (first, block.end) if block.end - first <= _MAX_LIST else None


def _stands_for(item: TextRange, start: int, end: int) -> bool:
    """Whether the span [start, end) is the beginning or at least half of a list item."""
    if not item.start <= start < item.end:
        return False
    return start - item.start <= _MAX_BEFORE or 2 * (end - start) >= item.end - item.start


def _is_short(unit: TextRange) -> bool:
    return unit.end - unit.start <= _MAX_ITEM


def _last_sentence(text: str, unit: TextRange) -> TextRange:
    return TextRange(*sentence_range(text, unit.end - 1, unit.end, (unit.start, unit.end)))


def _sentence_before(text: str, index: int) -> TextRange | None:
    """Returns the last sentence before a list that begins at `index`, if it announces the list."""
    end = len(text[:index].rstrip())
    if not end:
        return None
    units = units_of(text, block_around(text, end - 1, end))
    sentence = _last_sentence(text, units[-1])
    return sentence if _announces_list(text, sentence) else None


def _announces_list(text: str, sentence: TextRange) -> bool:
    return _LEADS_IN.search(text[sentence.start : sentence.end]) is not None
