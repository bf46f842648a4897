"""The declarations of the protos beside this file, with their comments."""

import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    ServiceDescriptorProto,
)

_HERE = Path(__file__).parent
_MESSAGES, _ENUMS, _SERVICES = 4, 5, 6
_NESTED, _NESTED_ENUMS, _PARTS = 3, 4, 2
"""Numbers of descriptor.proto that form the path of a comment. Fields of messages, values of enums
and methods of services have the same number.
"""

Place = tuple[int, ...]
Comments = dict[Place, str]
Type = DescriptorProto | EnumDescriptorProto


@dataclass
class Protos:
    """All declarations, with their comments."""

    services: list[tuple[str, ServiceDescriptorProto]] = field(default_factory=list)
    """Services, each with its file."""
    types: dict[str, Type] = field(default_factory=dict)
    """Messages and enums by name, without the package."""
    comments: dict[str, str] = field(default_factory=dict)
    """Comments by the name of the declaration."""

    def add(self, file: FileDescriptorProto) -> None:
        """Adds the declarations of a file."""
        comments = {
            tuple(each.path): each.leading_comments for each in file.source_code_info.location
        }
        for number, message in enumerate(file.message_type):
            self._message("", message, (_MESSAGES, number), comments)
        for number, values in enumerate(file.enum_type):
            self._enum("", values, (_ENUMS, number), comments)
        for number, service in enumerate(file.service):
            self.services.append((file.name, service))
            self._parts(service.name, (_SERVICES, number), service.method, comments)

    def _message(self, outer: str, message: DescriptorProto, at: Place, comments: Comments) -> None:
        name = outer + message.name
        self.types[name] = message
        self._parts(name, at, message.field, comments)
        for number, inner in enumerate(message.nested_type):
            self._message(f"{name}.", inner, (*at, _NESTED, number), comments)
        for number, values in enumerate(message.enum_type):
            self._enum(f"{name}.", values, (*at, _NESTED_ENUMS, number), comments)

    def _enum(self, outer: str, values: EnumDescriptorProto, at: Place, comments: Comments) -> None:
        self.types[outer + values.name] = values
        self._parts(outer + values.name, at, values.value, comments)

    def _parts(self, name: str, at: Place, parts: Iterable[object], comments: Comments) -> None:
        """Adds the comments of a declaration and of its fields, methods or values."""
        self.comments[name] = comments.get(at, "")
        for number, part in enumerate(parts):
            comment = comments.get((*at, _PARTS, number), "")
            self.comments[f"{name}.{getattr(part, 'name', '')}"] = comment


def read_protos() -> Protos:
    """Compiles the protos with their comments."""
    sources = sorted(_HERE.glob("winnow/v1/*.proto"))
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "all.binpb"
        command = [sys.executable, "-m", "grpc_tools.protoc", "-I", str(_HERE)]
        command += ["--include_source_info", f"--descriptor_set_out={out}"]
        subprocess.run([*command, *map(str, sources)], check=True)
        found = FileDescriptorSet.FromString(out.read_bytes())
    protos = Protos()
    for file in sorted(found.file, key=lambda each: each.name):
        protos.add(file)
    return protos
