"""Checks of the project's language: unique class names, and plain words."""

import re
from collections import defaultdict
from pathlib import Path

import pytest
from sources import PACKAGES, ROOT, importers, positional_parameters, sources

_CLIENT = "the client's value and the domain's value: both are public and mean the same"
TWICE = {
    "Answer": _CLIENT,
    "Coverage": _CLIENT,
    "HeadPrediction": _CLIENT,
    "Passage": _CLIENT,
    "PredictTimings": _CLIENT,
    "ShardCall": _CLIENT,
    "ShardCoverage": _CLIENT,
    "ShardTimings": _CLIENT,
    "RankedText": _CLIENT,
    "ReadingReport": _CLIENT,
    "TextPrediction": _CLIENT,
    "TextReading": _CLIENT,
    "Timings": _CLIENT,
}
"""Class names that two serving packages have, and why."""
RETIRED = frozenset(
    [
        "Arrivals",
        "Asked",
        "Attention",
        "Boundary",
        "Committing",
        "Crowd",
        "Deciding",
        "Doors",
        "Ebb",
        "Edition",
        "Formation",
        "Intake",
        "Kept",
        "Known",
        "Lane",
        "Looks",
        "Patience",
        "Piece",
        "Placing",
        "Race",
        "ReadingAhead",
        "RememberedAnswers",
        "Residency",
        "Ring",
        "Served",
        "Shelf",
        "Try",
        "Turns",
        "WarmHeads",
        "Way",
    ]
)
"""Class names that the glossary has replaced."""
SMALL_FILES = {"bench/positive.py": "`simulation`, which is not checked here, imports it, too"}
"""Files below 30 lines that only one other file imports, and why they stay."""
LONG_CONSTRUCTORS: dict[str, str] = {}
"""Classes with more than four positional parameters, and why."""
RIDDLES = re.compile(
    r"\b(?:whoever|whatever|anew|so many|as it may|it is said that|such as are|also those"
    r"|of those that|of its own|what there is|what is there)\b",
    re.IGNORECASE,
)
"""Words that make people read a sentence twice."""
PROTOS = sorted((ROOT / "proto").rglob("*.proto"))
PAGES = sorted(
    {
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "deploy").rglob("*.md"),
        *(ROOT / "deploy").rglob("*.y*ml"),
        *(ROOT / "deploy").rglob("NOTES.txt"),
        ROOT / "Makefile",
        ROOT / "deploy" / "Dockerfile",
        *PROTOS,
    }
)
LONGEST_SENTENCE = 25
"""Largest number of words in a sentence of help and of proto comments."""


def test_a_class_name_stands_for_one_thing() -> None:
    files = defaultdict(list)
    for source in sources():
        if source.package in PACKAGES:
            for each in source.classes():
                if not each.name.startswith("_"):
                    files[each.name].append(source.path)
    twice = {name: where for name, where in files.items() if len(where) > 1}
    assert {name: where for name, where in twice.items() if name not in TWICE} == {}
    assert set(TWICE) <= set(twice), "remove the names that are unique by now"


def test_no_class_has_a_name_that_the_glossary_replaced() -> None:
    retired = [
        f"{source.path}:{each.lineno}: {each.name}"
        for source in sources()
        for each in source.classes()
        if each.name.lstrip("_") in RETIRED
    ]
    assert retired == []


def test_a_small_file_with_one_importer_is_part_of_that_importer() -> None:
    users = importers()
    small = [
        source.path
        for source in sources()
        if len(source.lines) < 30
        and len(users[source.module] - {source.path}) == 1
        and not source.path.endswith(("__init__.py", "__main__.py"))
        and source.path not in SMALL_FILES
    ]
    assert small == []


def test_a_constructor_takes_at_most_four_parameters_by_position() -> None:
    long = [
        f"{source.path}:{each.lineno}: {each.name}"
        for source in sources()
        for each in source.classes()
        if positional_parameters(each) > 4 and each.name not in LONG_CONSTRUCTORS
    ]
    assert long == []


def test_code_has_no_riddles_of_pronouns() -> None:
    """Checks docstrings, comments and messages; names cannot match."""
    files = [*(ROOT / source.path for source in sources()), *(ROOT / "tests").rglob("*.py")]
    found = [
        f"{file.relative_to(ROOT)}:{number}: {match[0]}"
        for file in files
        if file != Path(__file__)
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        for match in RIDDLES.finditer(line)
    ]
    assert found == []


def test_sentences_of_help_are_short() -> None:
    assert [
        f"{source.path}:{line}: {sentence}"
        for source in sources()
        for line, text in source.help_texts()
        for sentence in sentences(text)
        if len(sentence.split()) > LONGEST_SENTENCE
    ] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_has_no_riddles_of_pronouns(page: Path) -> None:
    lines = page.read_text(encoding="utf-8").splitlines()
    assert [
        f"{page.name}:{n}: {line}" for n, line in enumerate(lines, 1) if RIDDLES.search(line)
    ] == []


@pytest.mark.parametrize("proto", PROTOS, ids=lambda proto: proto.name)
def test_sentences_of_protos_are_short(proto: Path) -> None:
    assert [
        sentence
        for sentence in comment_sentences(proto.read_text(encoding="utf-8"))
        if len(sentence.split()) > LONGEST_SENTENCE
    ] == []


def comment_sentences(proto: str) -> list[str]:
    """Returns the sentences of a proto's comments; a comment ends where code follows."""
    comments, block = [], []
    for line in [*proto.splitlines(), ""]:
        _, mark, comment = line.partition("//")
        if mark and not line.lstrip().startswith("//"):
            comments.append(comment)
        elif mark:
            row = re.match(r"\s+[A-Z_]+\s{2,}", comment)
            block.append(("\n" if row else "") + comment.strip())
        else:
            comments.append(" ".join(block))
            block = []
    return [each for text in comments for each in sentences(text)]


def sentences(text: str) -> list[str]:
    return [each for each in re.split(r"(?<=[.!?])\s+|\n", text) if each]
