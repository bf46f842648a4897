"""What the protos beside this file declare, with their comments."""

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
"""Numbers of descriptor.proto, of which the places of comments are made. The parts of messages, of
enums and of services have the same one."""

Place = tuple[int, ...]
Said = dict[Place, str]
Type = DescriptorProto | EnumDescriptorProto


@dataclass
class Protos:
    """Everything that was declared, with its comments."""

    services: list[tuple[str, ServiceDescriptorProto]] = field(default_factory=list)
    """With the file of each."""
    types: dict[str, Type] = field(default_factory=dict)
    """By name, without the package."""
    comments: dict[str, str] = field(default_factory=dict)
    """By the name of what they are about."""

    def add(self, file: FileDescriptorProto) -> None:
        """Adds what a file declares."""
        said = {tuple(each.path): each.leading_comments for each in file.source_code_info.location}
        for number, message in enumerate(file.message_type):
            self._message("", message, (_MESSAGES, number), said)
        for number, values in enumerate(file.enum_type):
            self._enum("", values, (_ENUMS, number), said)
        for number, service in enumerate(file.service):
            self.services.append((file.name, service))
            self._parts(service.name, (_SERVICES, number), service.method, said)

    def _message(self, outer: str, message: DescriptorProto, at: Place, said: Said) -> None:
        name = outer + message.name
        self.types[name] = message
        self._parts(name, at, message.field, said)
        for number, inner in enumerate(message.nested_type):
            self._message(f"{name}.", inner, (*at, _NESTED, number), said)
        for number, values in enumerate(message.enum_type):
            self._enum(f"{name}.", values, (*at, _NESTED_ENUMS, number), said)

    def _enum(self, outer: str, values: EnumDescriptorProto, at: Place, said: Said) -> None:
        self.types[outer + values.name] = values
        self._parts(outer + values.name, at, values.value, said)

    def _parts(self, name: str, at: Place, parts: Iterable[object], said: Said) -> None:
        """The comments of something and of its fields, methods or values."""
        self.comments[name] = said.get(at, "")
        for number, part in enumerate(parts):
            comment = said.get((*at, _PARTS, number), "")
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
