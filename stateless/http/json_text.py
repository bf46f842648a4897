"""JSON to messages and back, by the mapping that protobuf defines (https://protobuf.dev/programming-guides/json).

Names of fields are lowerCamelCase. A request may also use the names of the proto, and short names
of enum values (`json_fields`). Fields with their default are written, except optional ones that are
not set.
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

from google.protobuf import descriptor_pool, json_format
from google.protobuf.message import Message

from winnow.errors import InvalidRequestError, OverloadedError, Violation
from winnow.inference.fair_threads import FairThreads
from winnow.quoting import quoted, shortened
from winnow.stateless.http.call import LongReply
from winnow.stateless.http.json_fields import misplaced_boolean, short_names, with_full_names

AnyMessage = TypeVar("AnyMessage", bound=Message)
_ASIDE = 8 * 1024
"""Bytes from which a text is read or written in a thread; that many take some 0.3 ms."""
_PIECES = 64
"""Parts from which it is, too, even if they are short: one takes up to 7 microseconds."""
_MOST_OBJECTS = 20_000
"""Most objects of a request, nested or not. Reading that many takes some 0.2 s; the objects of a
body of 2 MB could take 10 s."""
_WAITING = 64 << 20
"""Most bytes of texts that wait to be read, or are being read."""
_SPACE = b" \t\r\n"
# an error of the library may be as long as the request and quote it anywhere: each pattern looks at
# a place once, so that repeated words do not make it slow
_OF_FIELD = re.compile(r"Failed to parse (\w+) field: ")
_UNKNOWN = re.compile(r'[^"]*"[^"]*" has no field named "(.*)" at ', re.DOTALL)
_PLACE = re.compile(r"\w+((?:\.\w+)*)")
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
"""Errors of the library, and their words for callers who do not know Python."""
Result = TypeVar("Result")


class JsonText:
    """Reads and writes JSON; long texts in a thread, or questions would wait for them."""

    def __init__(self, aside: FairThreads) -> None:
        """`aside`: where long texts are read and written."""
        self._aside = aside
        self._waiting = 0

    async def message(self, kind: type[AnyMessage], data: bytes, client: str) -> AnyMessage:
        """The message that a caller sent.

        Raises:
            InvalidRequestError: the text is no such message.
            OverloadedError: too many texts wait to be read.

        """
        if self._waiting + len(data) > _WAITING:
            raise OverloadedError("too many requests wait to be read; send it again", 1.0)
        pieces = data.count(b"{") + data.count(b",")
        self._waiting += len(data)
        try:
            return await self._run(len(data), pieces, client, lambda: read(kind, data))
        finally:
            self._waiting -= len(data)

    async def text(self, message: Message, client: str) -> bytes:
        """The text of a reply."""
        pieces = sum(len(value) for field, value in message.ListFields() if field.is_repeated)
        return await self._run(message.ByteSize(), pieces, client, lambda: written(message))

    async def long_text(self, reply: LongReply, client: str) -> bytes:
        """The text of a long reply."""
        return await self._aside.run(client, reply.text)

    async def _run(self, size: int, pieces: int, client: str, work: Callable[[], Result]) -> Result:
        if size < _ASIDE and pieces < _PIECES:
            return work()
        return await self._aside.run(client, work)


def read(kind: type[AnyMessage], data: bytes) -> AnyMessage:
    """The message that a text is the JSON of.

    Raises:
        InvalidRequestError: it is of none; names the field that is wrong.

    """
    if not data.lstrip(_SPACE).startswith(b"{"):
        raise _wrong("request", "is no JSON object: send one, such as {}")
    value = _loaded(data)
    if wrong := misplaced_boolean(kind, value):
        raise InvalidRequestError(wrong)
    try:
        return json_format.ParseDict(with_full_names(kind.DESCRIPTOR, value), kind())
    except Exception as error:  # the library has errors of many kinds for what a caller sends
        raise _violation(str(error)) from error


def written(message: Message) -> bytes:
    """The text of a message."""
    return text_of(object_of(message))


def text_of(value: object) -> bytes:
    """A value as JSON: without spaces, and with all characters as they are."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def object_of(message: Message) -> dict[str, Any]:
    """A message as an object for `json`."""
    return json_format.MessageToDict(message, always_print_fields_with_no_presence=True)


def _loaded(data: bytes) -> dict[str, Any]:
    objects = 0

    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal objects
        objects += 1
        if objects > _MOST_OBJECTS:
            raise _wrong("request", f"has more than {_MOST_OBJECTS} objects: send several requests")
        found = dict(pairs)
        if len(found) < len(pairs):
            ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
            raise _wrong("request", f"has {quoted(twice)} twice in an object")
        return found

    try:
        value: dict[str, Any] = json.loads(data.decode(), object_pairs_hook=made)
    except UnicodeDecodeError as error:
        raise _wrong("request", f"is not UTF-8 ({error.reason} at byte {error.start})") from error
    except (ValueError, RecursionError) as error:
        raise _wrong("request", f"cannot be read as JSON: {shortened(str(error))}") from error
    return value


def _violation(said: str) -> InvalidRequestError:
    """The error of a request, from the library's text."""
    path, at = list[str](), 0
    while nested := _OF_FIELD.match(said, at):
        path.append(nested[1])
        at = nested.end()
    if unknown := _UNKNOWN.match(said, at):
        wrong = f"{quoted(unknown[1])} is no field of this request: see /openapi.json"
        return _wrong(shortened(unknown[1]) or "request", wrong)
    said = said[at:].rstrip(".")
    before, _, place = said.rpartition(" at ")
    if before and (named := _PLACE.fullmatch(place)):
        said, path = before, path or named[1].split(".")[1:]
    return _wrong(".".join(path) or "request", shortened(_plainly(said)))


def _plainly(said: str) -> str:
    if enum := _ENUM.fullmatch(said):
        names = short_names(descriptor_pool.Default().FindEnumTypeByName(enum[2]))
        return f"{quoted(enum[1])} is none of {', '.join(names)}"
    for pattern, words in _WORDS:
        if found := re.fullmatch(pattern, said, re.DOTALL):
            return f"{found.groupdict().get('value', '')} {words}".lstrip()
    return said


def _wrong(field: str, description: str) -> InvalidRequestError:
    return InvalidRequestError(Violation(field, description))
