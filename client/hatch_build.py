"""What the client's wheel holds: `winnow.client`, and the modules of `winnow` that it imports."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_FIRST = "winnow.client"
_BESIDE = ("py.typed", "v1/*.pyi")
"""What type checkers read."""


class ClientHook(BuildHookInterface[Any]):
    """Adds the client's modules, as they are in the checkout, to the wheel."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called before the wheel is built; an editable one holds the same."""
        root = Path(self.root).parent
        modules = needed(root)
        files = {module_file(root, name) for name in modules}
        stubs = {path for form in _BESIDE for path in (root / "winnow").glob(form)}
        files |= {
            path for path in stubs if path.suffix != ".pyi" or path.with_suffix(".py") in files
        }
        for path in sorted(files):
            build_data["force_include"][str(path)] = path.relative_to(root).as_posix()


def needed(root: Path) -> set[str]:
    """The client, what it imports from `winnow`, what that imports, and the packages of all."""
    found, waiting = set[str](), [_FIRST]
    while waiting:
        name = waiting.pop()
        if name in found or not (file := module_file(root, name)).is_file():
            continue
        found.add(name)
        package = name.rpartition(".")[0]
        waiting += [*([package] if package else []), *_imported(file)]
    return found


def module_file(root: Path, name: str) -> Path:
    """Where a module would be."""
    place = root.joinpath(*name.split("."))
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


def _imported(file: Path) -> Iterator[str]:
    """Names that may be modules of `winnow`; those for type checkers alone are left out."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for statement in tree.body:
        if isinstance(statement, ast.If) and getattr(statement.test, "id", "") == "TYPE_CHECKING":
            statement.body = []
    for each in ast.walk(tree):
        if isinstance(each, ast.ImportFrom) and (each.module or "").split(".")[0] == "winnow":
            yield each.module or ""
            yield from (f"{each.module}.{name.name}" for name in each.names)
