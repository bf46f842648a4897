"""Joins lines, and the words that ends of lines divide. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

HYPHEN = "\x02"
"""A hyphen at the end of a line whose rest follows in the next line, as PDFium marks it."""
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_URL_END = re.compile(r"https?://\S*[/._?&=-]$")


class LineJoiner:
    """Joins lines, and words that the ends of lines divide, by the words of the file."""

    def __init__(self, lines: Iterable[str]) -> None:
        """`lines`: all lines of the file, whose words show which ones have a hyphen."""
        self._words = Counter(word.lower() for line in lines for word in _WORD.findall(line))

    def joined(self, lines: Sequence[str]) -> str:
        """Returns a paragraph."""
        text = ""
        for line in lines:
            if text.endswith(("-", "\u00ad")) and text[-2:-1].isalpha() and line[:1].islower():
                text = text[:-1] + HYPHEN + line
            else:
                # an address goes on in the next line
                joins = not text or _URL_END.search(text)
                text += line if joins else f" {line}"
        return re.sub(rf"([^\W\d_]*){HYPHEN}\s*([^\W\d_]*)", self._word, text)

    def _word(self, divided: re.Match[str]) -> str:
        """Returns a divided word, with a hyphen if the file has it so more often."""
        begin, end = divided[1], divided[2]
        hyphenated, whole = f"{begin}-{end}", f"{begin}{end}"
        counts = self._words[hyphenated.lower()], self._words[whole.lower()]
        if counts[0] == counts[1]:
            return whole if begin and end[:1].islower() else hyphenated
        return max(zip(counts, (hyphenated, whole), strict=True))[1]
