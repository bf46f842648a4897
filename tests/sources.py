"""Parsed Python files of the project outside tests, for the checks of language."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
SERVICES = ("stateless", "content_node", "encoder_node", "head_node")
PACKAGES = ("winnow", *SERVICES, "standalone")
FOLDERS = (*PACKAGES, "models", "bench", "client", "deploy", "proto", "integrations")


@dataclass(frozen=True)
class Source:
    """A parsed file."""

    path: str
    lines: list[str]
    tree: ast.Module
    statements: list[ast.AST]

    @property
    def package(self) -> str:
        return self.path.split("/")[0]

    @property
    def module(self) -> str:
        """The module name in imports of other files."""
        name = self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        return f"winnow.{name}" if self.package in SERVICES else name

    def classes(self) -> Iterator[ast.ClassDef]:
        return (node for node in self.statements if isinstance(node, ast.ClassDef))

    def imports(self) -> Iterator[str]:
        """Yields names of imported modules; `from a import b` yields both `a` and `a.b`."""
        for node in self.statements:
            if isinstance(node, ast.ImportFrom) and node.module:
                yield node.module
                yield from (f"{node.module}.{each.name}" for each in node.names)
            elif isinstance(node, ast.Import):
                yield from (each.name for each in node.names)

    def help_texts(self) -> Iterator[tuple[int, str]]:
        """Yields the line and the help text of each option and argument of commands."""
        if not any("typer" in name for name in self.imports()):
            return
        for node in ast.walk(self.tree):
            if isinstance(node, ast.keyword) and node.arg == "help":
                text = node.value.value if isinstance(node.value, ast.Constant) else None
                if isinstance(text, str):
                    yield node.value.lineno, text


@cache
def sources() -> list[Source]:
    """Returns every file except generated stubs; does not follow links between folders."""
    return [
        _parsed(path)
        for folder in FOLDERS
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not any(part in ("v1", "build", ".venv") for part in path.parts)
    ]


def _parsed(path: Path) -> Source:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    return Source(str(path.relative_to(ROOT)), text.splitlines(), tree, list(_statements(tree)))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yields all statements, including nested ones, without walking the expressions."""
    for part in ("body", "handlers", "orelse", "finalbody", "cases"):
        nested = getattr(node, part, ())
        for each in nested if isinstance(nested, list) else ():
            yield each
            yield from _statements(each)


def importers() -> dict[str, set[str]]:
    """Returns the files that import each module."""
    found = defaultdict(set)
    for source in sources():
        for name in source.imports():
            found[name].add(source.path)
    return found


def positional_parameters(node: ast.ClassDef) -> int:
    """Returns the number of positional parameters of a constructor, without `self`."""
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name == "__init__":
            return len(each.args.posonlyargs) + len(each.args.args) - 1
    decorators = [ast.unparse(each) for each in node.decorator_list]
    dataclasses = [each for each in decorators if each.split("(")[0].endswith("dataclass")]
    if not dataclasses or "kw_only=True" in dataclasses[0]:
        return 0
    return sum(1 for _ in _positional_fields(node))


def _positional_fields(node: ast.ClassDef) -> Iterator[str]:
    """Yields the fields of a dataclass before `KW_ONLY`."""
    for each in node.body:
        if not isinstance(each, ast.AnnAssign):
            continue
        kind, value = ast.unparse(each.annotation), each.value and ast.unparse(each.value)
        if kind.endswith("KW_ONLY"):
            return
        excluded = value and ("init=False" in value or "kw_only=True" in value)
        if not kind.startswith("ClassVar") and not excluded:
            yield ast.unparse(each.target)
