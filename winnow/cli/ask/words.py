"""Words of passages on a terminal: harmless, and with every offset where it was."""

import unicodedata
from collections.abc import Iterator

from rich.text import Text

from winnow.client import Answer

MARK = "bold reverse"
_MARK_PLAIN = "**"
_NO_STYLE = ""


def harmless(text: str, lines: bool = False) -> str:
    """The text with one printable character for every control character.

    A passage may hold escape sequences, which a terminal would obey, and returns, which rich drops:
    then offsets behind them would point elsewhere. `lines` keeps line breaks.
    """
    return "".join(_harmless(text, lines))


def highlighted(answer: Answer, plain: bool) -> Text:
    """The passage with the answer's words marked; by asterisks where there are no styles."""
    words = harmless(answer.passage.text, lines=True)
    if answer.start >= answer.end:
        return Text(words)
    before, found, after = (
        words[: answer.start],
        words[answer.start : answer.end],
        words[answer.end :],
    )
    mark = _MARK_PLAIN if plain else ""
    style = _NO_STYLE if plain else MARK
    return Text.assemble(before, mark, (found, style), mark, after)


def _harmless(text: str, lines: bool) -> Iterator[str]:
    for character in text:
        if unicodedata.category(character) not in {"Cc", "Cs"} or (lines and character == "\n"):
            yield character
        else:
            yield " " if character.isspace() else "\N{REPLACEMENT CHARACTER}"
