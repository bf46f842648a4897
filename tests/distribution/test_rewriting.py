"""Modules of the services are imported in forms that the wheel's build can rewrite."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hatch_build import MOVED, rewritten

ROOT = Path(__file__).parents[2]
MODULE = re.compile(rf"^(?:{'|'.join(MOVED)})(?:\.\w+)+")


@pytest.mark.parametrize(
    ("checkout", "wheel"),
    [
        ("from stateless.cli import front", "from winnow.stateless.cli import front"),
        ("from stateless import cli", "from winnow.stateless import cli"),
        ("    from content_node.a.b import (", "    from winnow.content_node.a.b import ("),
        ('"content_node.build.cli:app"', '"winnow.content_node.build.cli:app"'),
        ('get_logger("stateless.scatter")', 'get_logger("stateless.scatter")'),
        ("from stateless_other import front", "from stateless_other import front"),
        ("from head_node.cli import serve", "from winnow.head_node.cli import serve"),
        ("from winnow.searcher import Searcher", "from winnow.searcher import Searcher"),
    ],
)
def test_imports_and_places_are_rewritten_and_nothing_else_is(checkout: str, wheel: str) -> None:
    assert rewritten(checkout) == wheel


def test_what_is_rewritten_stays_as_it_is_when_rewritten_again() -> None:
    source = (ROOT / "winnow" / "__main__.py").read_text(encoding="utf-8")
    assert rewritten(rewritten(source)) == rewritten(source) != source


@pytest.mark.parametrize("folder", ["winnow", *MOVED])
def test_no_module_is_named_in_a_form_that_is_not_rewritten(folder: str) -> None:
    """Such as `import stateless.cli`, or its name as text; names of loggers may stay."""
    for file in sorted((ROOT / folder).rglob("*.py")):
        left = [*named(rewritten(file.read_text(encoding="utf-8")))]
        assert not left, f"{file}: write `from MODULE import NAME` instead of {left}"


@pytest.mark.parametrize(
    "source",
    ["import stateless", "import stateless.cli as cli", 'run_module("content_node.cli")'],
)
def test_the_other_forms_are_seen(source: str) -> None:
    assert [*named(rewritten(source))]


def named(source: str) -> Iterator[str]:
    """Modules of moved folders that a source still imports, or names as text."""
    tree = ast.parse(source)
    loggers = {id(text) for call in ast.walk(tree) for text in logger_names(call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if moved(each.name))
        elif isinstance(node, ast.ImportFrom) and moved(node.module or ""):
            yield node.module or ""
        elif isinstance(node, ast.Constant) and id(node) not in loggers:
            yield from MODULE.findall(str(node.value))


def moved(module: str) -> bool:
    return module.partition(".")[0] in MOVED


def logger_names(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.args if node.func.attr == "get_logger" else []
    return []
