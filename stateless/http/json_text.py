"""JSON to messages and back, by the mapping that protobuf defines (https://protobuf.dev/programming-guides/json).

Names of fields are lowerCamelCase; a request may also have those of the proto. Fields that have
their default are written, too, but for those that are optional and not set.
"""

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from google.protobuf import descriptor_pool, json_format
from google.protobuf.message import Message

from winnow.errors import InvalidRequestError, Violation
from winnow.inference.fair_threads import FairThreads
from winnow.quoting import quoted, shortened

AnyMessage = TypeVar("AnyMessage", bound=Message)
_ASIDE = 8 * 1024
"""Bytes from which a text is read or written in a thread; as many take some 0.3 ms."""
_SPACE = b" \t\r\n"
_OF_FIELD = re.compile(r"Failed to parse (\w+) field: (.*)", re.DOTALL)
_UNKNOWN = re.compile(r'.* has no field named "(.*)" at ', re.DOTALL)
_AT = re.compile(r" at \w+((?:\.\w+)*)$")
_ENUM = re.compile(r"Invalid enum value (.*) for enum type ([\w.]+)", re.DOTALL)
_WORDS = (
    (r"expected string or bytes-like object, got '\w+'", "is no string: give it in quotes"),
    (r"invalid literal for int\(\) with base \d+: (?P<value>.*)", "is no whole number"),
    (r"Couldn't parse integer: (?P<value>.*)", "is no whole number"),
    (r"Bool value \w+ is not acceptable for integer field", "is no whole number"),
    (r"int\(\) argument must be .*", "is no whole number"),
    (r"Couldn't parse float: (?P<value>.*)", "is no number"),
    (r"float\(\) argument must be .*", "is no number"),
    (r"repeated field \w+ must be in \[\] .*", "is no list: put it in [ ]"),
    (r"Expected true or false without quotes", "is neither true nor false"),
)
"""What the library says, in words for those who do not know Python."""
Result = TypeVar("Result")


class JsonText:
    """Reads and writes; what is long, in a thread, or questions would wait for it."""

    def __init__(self, aside: FairThreads) -> None:
        """`aside`: where long texts are read and written."""
        self._aside = aside

    async def message(self, kind: type[AnyMessage], data: bytes, client: str) -> AnyMessage:
        """What a caller sent; raises InvalidRequestError if it is no such message."""
        return await self._run(len(data), client, lambda: read(kind, data))

    async def text(self, message: Message, client: str) -> bytes:
        """What a caller is sent."""
        return await self._run(message.ByteSize(), client, lambda: written(message))

    async def _run(self, size: int, client: str, work: Callable[[], Result]) -> Result:
        return work() if size < _ASIDE else await self._aside.run(client, work)


def read(kind: type[AnyMessage], data: bytes) -> AnyMessage:
    """The message that a text says.

    Raises:
        InvalidRequestError: it says none; names the field that is wrong.

    """
    if not data.lstrip(_SPACE).startswith(b"{"):
        raise _wrong("request", "is no JSON object: send one, such as {}")
    try:
        return json_format.Parse(data, kind())
    except UnicodeDecodeError as error:
        raise _wrong("request", f"is not UTF-8 ({error.reason} at byte {error.start})") from error
    except (json_format.ParseError, ValueError, RecursionError) as error:
        raise _violation(str(error)) from error


def written(message: Message) -> bytes:
    """The text of a message."""
    return json.dumps(object_of(message), ensure_ascii=False, separators=(",", ":")).encode()


def object_of(message: Message) -> dict[str, Any]:
    """A message as `json` has objects."""
    return json_format.MessageToDict(message, always_print_fields_with_no_presence=True)


def _violation(said: str) -> InvalidRequestError:
    """Which field is wrong, out of what the library says."""
    if unknown := _UNKNOWN.match(said):
        wrong = f"{quoted(unknown[1])} is no field of this request: see /openapi.json"
        return _wrong(shortened(unknown[1]) or "request", wrong)
    path = []
    while nested := _OF_FIELD.match(said):
        path.append(nested[1])
        said = nested[2]
    said = said.rstrip(".")
    if place := _AT.search(said):
        said = said[: place.start()]
        path = path or place[1].split(".")[1:]
    return _wrong(".".join(path) or "request", shortened(_plainly(said)))


def _plainly(said: str) -> str:
    if enum := _ENUM.fullmatch(said):
        names = [each.name for each in descriptor_pool.Default().FindEnumTypeByName(enum[2]).values]
        return f"{quoted(enum[1])} is none of {', '.join(names[1:])}"  # the first is 'not set'
    for pattern, words in _WORDS:
        if found := re.fullmatch(pattern, said, re.DOTALL):
            return f"{found.groupdict().get('value', '')} {words}".lstrip()
    return said


def _wrong(field: str, description: str) -> InvalidRequestError:
    return InvalidRequestError(Violation(field, description))
