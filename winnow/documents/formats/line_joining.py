"""Joins the lines of a paragraph, and words that are hyphenated at the end of a line. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

HYPHEN = "\x02"
"""The mark that PDFium sets for the hyphen of a word that continues in the next line."""
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W\d_]+)*")
_URL_END = re.compile(r"https?://\S*[/._?&=-]$")


class LineJoiner:
    """Joins the lines of a paragraph to one text.

    A word that is divided at the end of a line is joined. Its hyphen stays if the file has the word
    with a hyphen more often than without.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        """`lines`: all lines of the file. Their words are counted, with and without hyphens."""
        self._words = Counter(word.lower() for line in lines for word in _WORD.findall(line))

    def joined(self, lines: Sequence[str]) -> str:
        """Returns the text of a paragraph's lines, with a space between two lines."""
        text = ""
        for line in lines:
            if text.endswith(("-", "\u00ad")) and text[-2:-1].isalpha() and line[:1].islower():
                text = text[:-1] + HYPHEN + line
            else:
                # a web address continues in the next line, without a space
                joins = not text or _URL_END.search(text)
                text += line if joins else f" {line}"
        return re.sub(rf"([^\W\d_]*){HYPHEN}\s*([^\W\d_]*)", self._join_word, text)

    def _join_word(self, divided: re.Match[str]) -> str:
        """Returns a divided word as the file has it more often: with or without the hyphen."""
        begin, end = divided[1], divided[2]
        hyphenated, whole = f"{begin}-{end}", f"{begin}{end}"
        counts = self._words[hyphenated.lower()], self._words[whole.lower()]
        if counts[0] == counts[1]:
            return whole if begin and end[:1].islower() else hyphenated
        return max(zip(counts, (hyphenated, whole), strict=True))[1]
