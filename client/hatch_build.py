"""Builds the client's wheel from the client's modules and those that they import."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_ROOT_MODULES = ("winnow.client", "winnow.client.frameworks.connection")
_TYPING_FILES = ("py.typed", "v1/*.pyi")


class ClientHook(BuildHookInterface[Any]):
    """Adds the client's modules to the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Adds the files to `build_data`. Hatch calls it before it builds a wheel."""
        root = Path(self.root).parent
        files = {module_file(root, name) for name in imported_modules(root)}
        stubs = {path for pattern in _TYPING_FILES for path in (root / "winnow").glob(pattern)}
        files |= {
            path for path in stubs if path.suffix != ".pyi" or path.with_suffix(".py") in files
        }
        for path in sorted(files):
            build_data["force_include"][str(path)] = path.relative_to(root).as_posix()


def imported_modules(root: Path) -> set[str]:
    """Names of the client's modules, the `winnow` modules that they import, and their packages."""
    modules, pending = set[str](), [*_ROOT_MODULES]
    while pending:
        name = pending.pop()
        if name in modules or not (file := module_file(root, name)).is_file():
            continue
        modules.add(name)
        package = name.rpartition(".")[0]
        pending += [*([package] if package else []), *_imported_names(file)]
    return modules


def module_file(root: Path, name: str) -> Path:
    """The path that a module has if it exists."""
    path = root.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _imported_names(file: Path) -> Iterator[str]:
    """Yields imported names that may be `winnow` modules, except imports for type checkers."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for statement in tree.body:
        if isinstance(statement, ast.If) and getattr(statement.test, "id", "") == "TYPE_CHECKING":
            statement.body = []
    for each in ast.walk(tree):
        if isinstance(each, ast.ImportFrom) and (each.module or "").split(".")[0] == "winnow":
            yield each.module or ""
            yield from (f"{each.module}.{name.name}" for name in each.names)
