"""What a machine can see of the project's language: one name for one thing, and plain words."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SERVING = ("winnow", "stateless", "content_node", "encoder_node", "head_node")
_CLIENT = "the client's plain value, and the domain's: both are public, and mean the same"
TWICE = {
    "Answer": _CLIENT,
    "Coverage": _CLIENT,
    "HeadPrediction": _CLIENT,
    "Passage": _CLIENT,
    "PredictTimings": _CLIENT,
    "ShardCall": _CLIENT,
    "ShardCoverage": _CLIENT,
    "ShardTimings": _CLIENT,
    "TextPrediction": _CLIENT,
    "Timings": _CLIENT,
}
"""Class names that two serving packages have, and why."""
RIDDLES = re.compile(
    r"\b(?:whoever|whatever|anew|so many|as it may|it is said that|such as are|also those|of those that)\b",
    re.IGNORECASE,
)
"""Words that make people read a sentence twice."""
PAGES = sorted(
    {*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *ROOT.glob("deploy/*/README.md")}
)


def classes() -> dict[str, list[str]]:
    """The files of every public class of the serving packages, by its name."""
    found = defaultdict(list)
    for package in SERVING:
        for file in sorted((ROOT / package).rglob("*.py")):
            name = str(file.relative_to(ROOT))
            if name.startswith("winnow/v1/"):
                continue
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].append(name)
    return found


def test_a_class_name_stands_for_one_thing() -> None:
    twice = {name: files for name, files in classes().items() if len(files) > 1}
    assert {name: files for name, files in twice.items() if name not in TWICE} == {}
    assert set(TWICE) <= set(twice), "remove the names that are unique by now"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_no_riddles_of_pronouns(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert [
        f"{page.name}:{n}: {line}" for n, line in enumerate(lines, 1) if RIDDLES.search(line)
    ] == []
