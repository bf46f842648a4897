"""Converts JSON to messages and back, by the mapping that protobuf defines
(https://protobuf.dev/programming-guides/json).

Names of fields are lowerCamelCase. A request may also use the names of the proto, and short names
of enum values (`json_fields`). Replies also contain fields with default values, except optional
fields that are not set.
"""

import json
import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from google.protobuf import descriptor_pool, json_format
from google.protobuf.message import Message

from winnow.errors import InvalidRequestError, OverloadedError, invalid_field
from winnow.inference.fair_threads import FairThreads
from winnow.quoting import quoted, shortened
from winnow.stateless.http.call import LongReply
from winnow.stateless.http.json_fields import misplaced_value, no_choice, with_full_names

AnyMessage = TypeVar("AnyMessage", bound=Message)
_THREAD_BYTES = 8 * 1024
"""JSON of at least this size is converted in a thread. This size takes about 0.3 ms."""
_THREAD_ITEMS = 64
"""JSON with at least this number of items is converted in a thread, even if it is short. An item
takes up to 7 microseconds.
"""
_MAX_OBJECTS = 20_000
"""Maximum number of JSON objects in a request.

They take about 0.2 s to parse. Without the limit, the objects of a 2 MB body could take 10 s.
"""
_MAX_WAITING_BYTES = 64 << 20
"""Maximum size of all requests that wait to be parsed or are being parsed, in bytes."""
_SPACE = b" \t\r\n"
# an error of protobuf's parser quotes the request and may be as long: each pattern takes time
# linear in the text, so that no request makes it slow
_OF_FIELD = re.compile(r"Failed to parse (\w+) field: ")
_UNKNOWN = re.compile(r'[^"]*"([^"]*)" has no field named "(.*)" at ', re.DOTALL)
_FEW_FIELDS = 8
"""Number of fields up to which an error lists all fields of a message."""
_FIELD_PATH = re.compile(r"\w+((?:\.\w+(?:\[\d+\])?)*)")
_ENUM = re.compile(r"Invalid enum value (.*) for enum type ([\w.]+)", re.DOTALL)
_PLAIN_MESSAGES = (
    (r"null is not allowed to be used as an element in a repeated field", "is null: leave it out"),
    (
        r"Unpaired surrogate|'utf-8' codec can't encode character .*",
        "has a lone surrogate, which is not valid Unicode",
    ),
    (r"expected string or bytes-like object, got 'dict'", "is an object and not a string"),
    (r"expected string or bytes-like object, got '\w+'", "is not a string: give it in quotes"),
    (r"invalid literal for int\(\) with base \d+: (?P<value>.*)", "is not a whole number"),
    (r"Couldn't parse integer: (?P<value>.*)", "is not a whole number"),
    (r"Bool value \w+ is not acceptable for integer field", "is not a whole number"),
    (r"int\(\) argument must be .*", "is not a whole number"),
    (r"Value out of range: (?P<value>-.*)", "is less than 0"),
    (r"Value out of range: (?P<value>.*)", "is too large"),
    (r"Couldn't parse float: (?P<value>.*)", "is not a number"),
    (r"Couldn't parse (NaN|-?Infinity).*", "is not a number"),
    (r"Struct must be in a dict .*", "is not an object: put its fields in { }"),
    (r"float\(\) argument must be .*", "is not a number"),
    (r"repeated field \w+ must be in \[\] .*", "is not a list: put it in [ ]"),
    (r"maximum recursion depth exceeded.*", "has too many levels"),
    (r"Expected true or false without quotes", "is neither true nor false"),
    (
        r"Message type [\w.]+ does not have extensions",
        "has a name in [ ], which is not a field of this request",
    ),
)
"""Patterns of the errors of protobuf's parser, and plain messages to replace them."""
Result = TypeVar("Result")


class JsonText:
    """Converts JSON to messages and back. Long texts are converted in a thread, so that questions
    do not wait.
    """

    def __init__(self, threads: FairThreads) -> None:
        """`threads` convert long texts."""
        self._threads = threads
        self._waiting_bytes = 0

    async def parse(
        self, kind: type[AnyMessage], data: bytes, client: str, *, ignore_unknown: bool = False
    ) -> AnyMessage:
        """Parses a request. `ignore_unknown`: whether it may have fields that the message lacks.

        Raises:
            InvalidRequestError: the data is not valid JSON of a message of this kind.
            OverloadedError: too many requests wait to be parsed.

        """
        if self._waiting_bytes + len(data) > _MAX_WAITING_BYTES:
            raise OverloadedError("too many requests wait to be read; send the request again", 1.0)
        items = data.count(b"{") + data.count(b",")
        self._waiting_bytes += len(data)
        try:
            work = partial(parse_message, kind, data, ignore_unknown=ignore_unknown)
            return await self._run(len(data), items, client, work)
        finally:
            self._waiting_bytes -= len(data)

    async def to_json(self, message: Message, client: str) -> bytes:
        """Converts a reply to JSON."""
        items = sum(len(value) for field, value in message.ListFields() if field.is_repeated)
        return await self._run(message.ByteSize(), items, client, lambda: message_to_json(message))

    async def long_to_json(self, reply: LongReply, client: str) -> bytes:
        """Converts a long reply to JSON, in a thread."""
        return await self._threads.run(client, reply.to_json)

    async def _run(self, size: int, items: int, client: str, work: Callable[[], Result]) -> Result:
        if size < _THREAD_BYTES and items < _THREAD_ITEMS:
            return work()
        return await self._threads.run(client, work)


def parse_message(
    kind: type[AnyMessage], data: bytes, *, ignore_unknown: bool = False
) -> AnyMessage:
    """Parses the JSON of a message. `ignore_unknown`: whether to ignore unknown fields.

    Raises:
        InvalidRequestError: the JSON is invalid; the error names the invalid field.

    """
    data = data.removeprefix(BOM_UTF8)
    if not data.lstrip(_SPACE).startswith(b"{"):
        raise invalid_field("request", "is not a JSON object: send one, such as {}")
    value = _parse_object(data)
    if violation := misplaced_value(kind, value):
        raise InvalidRequestError(violation)
    try:
        named = with_full_names(kind.DESCRIPTOR, value)
        return json_format.ParseDict(named, kind(), ignore_unknown_fields=ignore_unknown)
    except Exception as error:  # protobuf's parser raises many types of errors
        raise _request_error(str(error)) from error


def message_to_json(message: Message) -> bytes:
    """Converts a message to JSON."""
    return value_to_json(object_of(message))


def value_to_json(value: object) -> bytes:
    """Converts a value to JSON without spaces or escapes of non-ASCII characters."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def object_of(message: Message) -> dict[str, Any]:
    """Converts a message to a dictionary, which `value_to_json` converts to JSON."""
    return json_format.MessageToDict(message, always_print_fields_with_no_presence=True)


def _parse_object(data: bytes) -> dict[str, Any]:
    objects = 0

    def to_dict(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal objects
        objects += 1
        if objects > _MAX_OBJECTS:
            raise invalid_field(
                "request", f"has more than {_MAX_OBJECTS} objects: send several requests"
            )
        result = dict(pairs)
        if len(result) < len(pairs):
            ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
            raise invalid_field("request", f"has {quoted(twice)} twice in an object")
        return result

    try:
        value: dict[str, Any] = json.loads(data.decode(), object_pairs_hook=to_dict)
    except UnicodeDecodeError as error:
        raise invalid_field(
            "request", f"is not UTF-8 ({error.reason} at byte {error.start})"
        ) from error
    except (ValueError, RecursionError) as error:
        raise invalid_field(
            "request", f"cannot be read as JSON: {shortened(str(error))}"
        ) from error
    return value


def _request_error(message: str) -> InvalidRequestError:
    """Converts an error message of protobuf's parser to an error for the caller."""
    path, at = list[str](), 0
    while nested := _OF_FIELD.match(message, at):
        path.append(nested[1])
        at = nested.end()
    if unknown := _UNKNOWN.match(message, at):
        kind, name = unknown.groups()
        problem = f"{quoted(name)} is not a field of this request: {_known_fields(kind)}"
        named = filter(None, (*path, shortened(name)))  # a name may be empty
        return invalid_field(".".join(named) or "request", problem)
    message = message[at:].rstrip(".")
    problem, _, location = message.rpartition(" at ")
    if problem and (field_path := _FIELD_PATH.fullmatch(location)):
        message, path = problem, path or field_path[1].split(".")[1:]
    return invalid_field(".".join(path) or "request", _plain_message(message))


def _known_fields(kind: str) -> str:
    """Lists the fields of a message if they are few, and otherwise says where they are listed."""
    try:
        fields = descriptor_pool.Default().FindMessageTypeByName(kind).fields
    except KeyError:  # a value of the request that looks like this error
        fields = ()
    if not 0 < len(fields) <= _FEW_FIELDS:
        return "see /openapi.json"
    return f"its fields are {', '.join(each.json_name for each in fields)}"


def _plain_message(message: str) -> str:
    if enum := _ENUM.fullmatch(message):
        return no_choice(descriptor_pool.Default().FindEnumTypeByName(enum[2]), enum[1])
    for pattern, plain in _PLAIN_MESSAGES:
        if match := re.fullmatch(pattern, message, re.DOTALL):
            return f"{shortened(match.groupdict().get('value', ''))} {plain}".lstrip()
    return shortened(message)
