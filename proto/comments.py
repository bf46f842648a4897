"""Writes the comments of the protos as JSON, by the full names of the declarations.

    python proto/comments.py DESCRIPTORS OUT

DESCRIPTORS is what protoc writes with `--include_source_info`. Descriptors in generated stubs carry
no comments, and the description of the HTTP interface needs them.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from google.protobuf import descriptor_pb2

_NAMED = {
    descriptor_pb2.FileDescriptorProto: {4: "message_type", 5: "enum_type", 6: "service"},
    descriptor_pb2.DescriptorProto: {2: "field", 3: "nested_type", 4: "enum_type"},
    descriptor_pb2.EnumDescriptorProto: {2: "value"},
    descriptor_pb2.ServiceDescriptorProto: {2: "method"},
}
"""Named parts of a declaration, by their numbers in descriptor.proto."""


def comments(files: descriptor_pb2.FileDescriptorSet) -> dict[str, str]:
    """Returns all comments by full name, each as one paragraph."""
    return dict(sorted(each for file in files.file for each in _of_file(file)))


def _of_file(file: descriptor_pb2.FileDescriptorProto) -> Iterator[tuple[str, str]]:
    for location in file.source_code_info.location:
        name = _name(file, location.path)
        if name and location.leading_comments:
            yield f"{file.package}.{name}", " ".join(location.leading_comments.split())


def _name(holder: Any, path: Sequence[int]) -> str:
    """Returns the name at a path; empty if the declaration there has none."""
    names = []
    for kind, number in zip(path[::2], path[1::2], strict=False):
        if kind not in _NAMED.get(type(holder), {}):
            return ""
        holder = getattr(holder, _NAMED[type(holder)][kind])[number]
        names.append(holder.name)
    return ".".join(names) if len(path) % 2 == 0 else ""


if __name__ == "__main__":
    described = descriptor_pb2.FileDescriptorSet.FromString(Path(sys.argv[1]).read_bytes())
    text = json.dumps(comments(described), indent=1, ensure_ascii=False)
    Path(sys.argv[2]).write_text(f"{text}\n", encoding="utf-8")
