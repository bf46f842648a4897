"""Generates docs/api.md from the comments of the protos: `make api`.

    python proto/reference.py OUTPUT

A message is listed below the first service that uses it. Services that users do not call come last.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from declarations import Protos, read_protos
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    MethodDescriptorProto,
    ServiceDescriptorProto,
)

PACKAGE = ".winnow.v1."
_INTRO = """# API

Generated from `proto/winnow/v1/*.proto` by `make api`: edit the protos. The package is `winnow.v1`.
Every server also has `grpc.health.v1.Health` and gRPC reflection.

An *optional* field may be unset. Any other field that is not set has the default of its type: 0,
false, an empty text, an empty list.
"""
_INNER = """# Between the nodes

Front nodes and content nodes call these services. They may change in every version.
"""
_NOT_FOR_USERS = "users do not"
_STATUS = re.compile(r" {2,}([A-Z_]+) {2,}(.*)")


def reference(protos: Protos) -> str:
    """Returns the page."""
    written: set[str] = set()
    parts = [_INTRO]
    for inner in (False, True):
        parts += [_INNER] * inner
        for file, service in protos.services:
            if _for_nodes(protos.comments[service.name]) is inner:
                parts += _service(protos, file, service, written)
    return "\n".join(parts)


def _for_nodes(comment: str) -> bool:
    return _NOT_FOR_USERS in " ".join(comment.lower().split())


def _service(
    protos: Protos, file: str, service: ServiceDescriptorProto, written: set[str]
) -> Iterator[str]:
    yield f"## {service.name}\n\n[`{file}`](../proto/{file})\n"
    yield from _text(protos.comments[service.name])
    needed: list[str] = []
    for method in service.method:
        name = f"{service.name}.{method.name}"
        yield f"### {name}\n\n`{_signature(method)}`\n"
        yield from _text(protos.comments[name])
        for kind in (method.input_type, method.output_type):
            needed += _needed(protos, kind.removeprefix(PACKAGE))
    for name in dict.fromkeys(needed):
        if name not in written:
            written.add(name)
            yield from _type(protos, name)


def _signature(method: MethodDescriptorProto) -> str:
    asked, given = (kind.removeprefix(PACKAGE) for kind in (method.input_type, method.output_type))
    asked = f"stream {asked}" * method.client_streaming or asked
    given = f"stream {given}" * method.server_streaming or given
    return f"rpc {method.name}({asked}) returns ({given})"


def _needed(protos: Protos, name: str, known: tuple[str, ...] = ()) -> list[str]:
    """Returns a type, then the types of its fields, in the order of first mention."""
    found = protos.types.get(name)
    if found is None or name in known:
        return []
    names = [name]
    if isinstance(found, DescriptorProto):
        for each in found.field:
            names += _needed(protos, each.type_name.removeprefix(PACKAGE), (*known, name))
    return names


def _type(protos: Protos, name: str) -> Iterator[str]:
    found = protos.types[name]
    yield f"### {name}\n"
    yield from _text(protos.comments[name])
    if isinstance(found, EnumDescriptorProto):
        rows = [("value", "number", "meaning")]
        parts = [(each.name, str(each.number)) for each in found.value]
    else:
        rows = [("field", "type", "meaning")]
        parts = [(each.name, _kind(protos, found, each)) for each in found.field]
    for part, kind in parts:
        rows.append((f"`{part}`", kind, _line(protos.comments[f"{name}.{part}"])))
    yield _table(rows) if parts else "It has no fields.\n"


def _kind(protos: Protos, message: DescriptorProto, each: FieldDescriptorProto) -> str:
    name = each.type_name.removeprefix(PACKAGE)
    shown = name.removeprefix(".") or FieldDescriptorProto.Type.Name(each.type)[5:].lower()
    if name in protos.types:
        shown = f"[{name}](#{name.lower().replace('.', '')})"
    if each.label == FieldDescriptorProto.LABEL_REPEATED:
        return f"list of {shown}"
    if each.proto3_optional:
        return f"{shown}, optional"
    if each.HasField("oneof_index"):
        return f"{shown}, one of *{message.oneof_decl[each.oneof_index].name}*"
    return shown


def _text(comment: str) -> Iterator[str]:
    """Yields paragraphs, then a table of the listed statuses."""
    plain: list[str] = []
    statuses: list[tuple[str, str]] = []
    for line in comment.splitlines():
        if status := _STATUS.match(line):
            statuses.append((f"`{status[1]}`", status[2]))
        elif statuses and line.startswith("   "):
            name, meaning = statuses[-1]
            statuses[-1] = name, f"{meaning} {line.strip()}"
        else:
            plain.append(line.strip())
    if plain:
        yield "\n".join(plain) + "\n"
    if statuses:
        yield _table([("status", "when"), *statuses])


def _line(comment: str) -> str:
    return " ".join(comment.split()).replace("|", r"\|")


def _table(rows: Sequence[tuple[str, ...]]) -> str:
    head, *rest = (f"| {' | '.join(row)} |" for row in rows)
    return "\n".join([head, "|---" * len(rows[0]) + "|", *rest]) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(reference(read_protos()), encoding="utf-8")
