"""Extends spans that cut an address, a path, a number with its unit or a quotation. Pure.

A tokenizer divides `submit@bugs.debian.org` into nine tokens, so a reader may choose only some of
them. Only expressions that people would never cut are taken in whole
(`docs/decisions/0030-sizes-of-an-answer.md`). Dates are cut: a year may be all that was asked for.
"""

import re
from collections.abc import Iterator

_MAX_REACH = 120
"""Maximum number of characters that are searched before and after a span."""
_MAX_SPAN = 500
"""Maximum number of characters of a span that is extended. A word of more than 100 characters is
one token, and some expressions take quadratic time.
"""
_MAX_QUOTED = 60
"""Maximum number of characters of a quotation or bracket that is not cut."""
_AFTER_BREAK = r"""(?<![^\s("'\[{<“‘«`,;|=])"""  # noqa: RUF001
_NUMBER = r"\d(?:[\d.,]*\d)?"
_UNIT = (
    r"(?:[kKMGTPE]i?B|[kMGT]?bit/s|[kMG]bps|[kMG]?Hz|[mµμn]s|[kcmµμn]?m|[km]g|[kMG]Wh?|km/h|mph"
    r"|°\s?[CF]?|%|percent|per\scent|px|dpi)"
)
_SUFFIX = "(?:alpha|beta|rc|pre|dev|deb|dfsg|ubuntu)"
_MAGNITUDE = r"(?:hundred|thousand|million|billion|trillion)"
_WHOLE = re.compile(
    rf"""{_AFTER_BREAK}(?:
        [-−]?{_NUMBER}[\s-]?(?:{_UNIT}(?!\w)|(?<=[\s-]){_MAGNITUDE}\b)      # number with unit
      | [A-Z]{{0,3}}[$€£¥]\s?{_NUMBER}(?:[\s-]{_MAGNITUDE}\b)?
      | [A-Za-z][\w+.-]*://[^\s<>"]*[\w/]                                # URL
      | (?:www\.|mailto:)[^\s<>"]*[\w/]
      | [\w.+-]*@[\w-]+(?:\.[\w-]+)+                                     # e-mail address
      | (?:~|\.\.?)?/[\w.][\w.@%+~-]*(?:/[\w.@%+~-]*)*(?<![.,])          # path
      | [\w.+~-]+(?:/[\w.+~-]+){{2,}}(?<![.,])
      | [A-Za-z]:\\[^\s<>"]*\w
      | --[A-Za-z][\w-]*(?:=[^\s,;)]*\w)?                                # option
      | -[A-Za-z](?!\w)
      | \$\{{?[A-Za-z_]\w*\}}?                                           # variable
      | v?\d+(?:\.\d+)+(?:[-+~](?:\d|{_SUFFIX})(?:[\w.+~-]*\w)?)?       # version
      | \w[\w-]+(?:\.[a-z_][\w-]+)+(?:\(\))?                            # host, file, module
      | \w[\w-]+\.[cho](?!\w)
      | \.[a-z]\w{{2,}}
      | [a-z][\w+.-]*[a-z]\d[\w+.-]*-[\w+.-]*\w                         # package
      | [a-z][\w+.-]*-[\w+.-]*[a-z]{{2}}\d[\w+.-]*(?<![.-])
      | [a-z]+(?:-[a-z]+)+(?![\w-])                                      # compound
      | \w+_[\w.-]*\w
      | [\w-]+\+\+\w*|[A-Z]\#
      | [-−]{_NUMBER}
    )""",  # noqa: RUF001
    re.VERBOSE,
)
_QUOTED = re.compile(
    rf"""(?<!\w)(?:
        "(?!\s)[^"\n]{{1,{_MAX_QUOTED}}}(?<!\s)"(?!\w)
      | “[^“”\n]{{1,{_MAX_QUOTED}}}”
      | «[^«»\n]{{1,{_MAX_QUOTED}}}»
      | `[^`\n]{{1,{_MAX_QUOTED}}}`
    )""",
    re.VERBOSE,
)
_BRACKETED = re.compile(
    rf"\([^()\n]{{1,{_MAX_QUOTED}}}\)|\[[^\[\]\n]{{1,{_MAX_QUOTED}}}\]|\{{[^{{}}\n]{{1,{_MAX_QUOTED}}}\}}"
)


def snap(text: str, start: int, end: int) -> tuple[int, int]:
    """Extends the non-empty span [start, end) so that it cuts no expression; never shrinks it.

    Expressions are e-mail addresses, URLs, paths, names of hosts, files and packages, options,
    versions, numbers with their units, and short quotations and brackets. Spans of more than
    `_MAX_SPAN` characters stay as they are.
    """
    if end - start > _MAX_SPAN:
        return start, end
    first, last = max(0, start - _MAX_REACH), min(len(text), end + _MAX_REACH)
    settled = False
    while not settled:
        before = start, end
        for begin, stop in _word_ranges(_WHOLE, text, first, last):
            if begin < start < stop:
                start = begin
            if begin < end < stop:
                end = stop
        for begin, stop in _word_ranges(_QUOTED, text, first, last):
            start, end = _with_quotation(start, end, begin, stop)
        for begin, stop in _word_ranges(_BRACKETED, text, first, last):
            if start < begin < end < stop:
                end = stop
            elif begin < start < stop < end:
                start = begin
        settled = (start, end) == before
    return start, end


def _word_ranges(
    pattern: re.Pattern[str], text: str, first: int, last: int
) -> Iterator[tuple[int, int]]:
    """Yields the matches in text[first:last], without a last one that may be longer."""
    for match in pattern.finditer(text, first, last):
        if match.end() < last or last == len(text):
            yield match.span()


def _with_quotation(start: int, end: int, begin: int, stop: int) -> tuple[int, int]:
    """Extends the span [start, end) if it cuts the quotation [begin, stop).

    The marks belong to the span only if it also has words outside of the quotation.
    """
    if end <= begin or stop <= start or (begin < start and end < stop):
        return start, end  # apart, or inside
    return min(start, begin) if start < stop else start, max(end, stop)
