"""How long a log line may be, and what may stand in it: much of it is what others sent. Pure."""

import re

from structlog.typing import EventDict, Processor, WrappedLogger

LONGEST = 8_192
"""Characters of a line."""
_LONGEST_VALUES = (4_000, 400, 40)
"""Characters that each value may have: the first that makes the line short enough."""
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_STACK = "exception"


def bounded(render: Processor) -> Processor:
    """Renders a line with its values cut until it is short enough; JSON stays whole."""

    def rendered(logger: WrappedLogger, name: str, event: EventDict) -> str:
        line = ""
        for longest in _LONGEST_VALUES:
            short = {key: _shortened(value, longest) for key, value in event.items()}
            line = str(render(logger, name, short))
            if len(line) <= LONGEST:
                return line
        return line[:LONGEST]

    return rendered


def escaped(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    """Shows control characters as Python writes them, as JSON does anyway: a terminal would obey
    them, and a reader would take one line for two. The lines of a stack stay apart.
    """
    texts = {key: value for key, value in event.items() if isinstance(value, str)}
    return {
        **event,
        **{
            key: "\n".join(map(_escaped, text.split("\n"))) if key == _STACK else _escaped(text)
            for key, text in texts.items()
        },
    }


def _escaped(text: str) -> str:
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _shortened(value: object, longest: int) -> object:
    """A stack's end says most, so the middle is left out."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else repr(value)
    if len(text) <= longest:
        return value
    half = longest // 2
    return f"{text[:half]} … ({len(text) - 2 * half:,} characters) … {text[-half:]}"
