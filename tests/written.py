"""Finds code blocks, commands, paths and links in documents."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parent.parent
PAGES = tuple(
    str(path.relative_to(ROOT))
    for path in (
        *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "SECURITY.md")),
        ROOT / "deploy" / "demo" / "README.md",
        *sorted((ROOT / "integrations").glob("*/README.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
    )
)
PROGRAMS = {
    "claude",
    "curl",
    "docker",
    "export",
    "for",
    "grpcurl",
    "helm",
    "kubectl",
    "make",
    "nats-server",
    "openssl",
    "pip",
    "printf",
    "promtool",
    "pytest",
    "python",
    "python3",
    "python3.11",
    "source",
    "winnow",
}
"""First words of shell lines, apart from assignments of variables."""
_SHELL = {"sh", "bash", "shell", "console"}
_DATA = {"json", "toml", "yaml", "ini", "text"}
_SHOWN = (
    *("all rows up to line", "filter: ", "files/SHA-256", "winnow.v1.AnswerService/Answer"),
    *("S · (", "question + "),
)
"""Starts of blocks with output, files or formulae."""
_VARIABLE = re.compile(r"[A-Z_]+=\S*$")
_FENCE = re.compile(r"( *)```(\w*)")
_INDENT = "    "
_SPAN = re.compile(r"`((?:winnow|python|make) [^`\n]+)`(?!\s+at\s+commit\s+`)")


_FOLDERS = "winnow|stateless|content_node|encoder_node|head_node|models|bench|simulation|deploy|tests|proto|client|docs|integrations"
_NAME = re.compile(rf"((?:{_FOLDERS})/[\w./*-]*)|\b(\w+\.(?:py|md|yml))\b|`(\w+)`")
_PATH = re.compile(rf"`((?:{_FOLDERS}|bundles|docs)/[\w./*{{}},-]*)`(?!\s+at\s+commit\s+`)")
_LINK = re.compile(r"\]\(([^)#\s:]*)(?:#([\w-]+))?\)")
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


class Kind(Enum):
    SHELL = "shell"
    PYTHON = "Python"
    DATA = "data"
    SHOWN = "shown"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Block:
    """A fenced or an indented block."""

    page: str
    line: int
    language: str
    text: str

    @property
    def kind(self) -> Kind:
        """The kind of the block, by its fence's language or its first word."""
        first = self.text.split(maxsplit=1)[0]
        if self.language in _SHELL or first == "$" or first in PROGRAMS or _VARIABLE.match(first):
            return Kind.SHELL
        if self.language == "python" or first in ("from", "import"):
            return Kind.PYTHON
        if self.text.startswith(_SHOWN):
            return Kind.SHOWN
        other = first == "FROM" or self.text.splitlines()[0].endswith(":")  # Dockerfile, YAML
        return Kind.DATA if other or self.is_json or self.language in _DATA else Kind.UNKNOWN

    @property
    def is_json(self) -> bool:
        return self.language == "json" or (not self.language and self.text[0] in "{[")


@dataclass(frozen=True)
class Command:
    """A shell command, without comments, redirections and ellipses."""

    page: str
    line: int
    words: tuple[str, ...]
    says: str = ""
    """The first line of its output on the page."""

    @property
    def text(self) -> str:
        return " ".join(self.words)

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"


def blocks(page: str) -> Iterator[Block]:
    """Yields the blocks of a page, in order."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        start, fence = number, _FENCE.match(lines[number])
        if fence:
            number = _end_of_fence(lines, number)
            body = lines[start + 1 : number - 1]
            yield Block(page, start + 2, fence[2], dedent("\n".join(body)).strip())
        elif lines[number].startswith(_INDENT) and (number == 0 or not lines[number - 1].strip()):
            number = _end_of_indented(lines, number)
            body = lines[start:number]
            yield Block(page, start + 1, "", dedent("\n".join(body)).strip())
        else:
            number += 1


def _end_of_fence(lines: list[str], start: int) -> int:
    closing = (n for n in range(start + 1, len(lines)) if lines[n].strip() == "```")
    return next(closing) + 1


def _end_of_indented(lines: list[str], start: int) -> int:
    end = start
    for number in range(start, len(lines)):
        if lines[number].startswith(_INDENT):
            end = number + 1
        elif lines[number].strip():
            break
    return end


def commands(block: Block) -> Iterator[Command]:
    """Yields the commands of a shell block, in order."""
    lines = block.text.splitlines()
    prompted = lines[0].startswith("$ ")
    number = 0
    while number < len(lines):
        start, line = number, lines[number]
        while line.endswith("\\"):
            number += 1
            line = line[:-1] + lines[number].strip()
        number += 1
        if prompted and not line.startswith("$ "):
            continue
        says = lines[number] if prompted and number < len(lines) else ""
        if words := _words(line.removeprefix("$ ")):
            shown = "" if says.startswith("$ ") else says
            yield Command(block.page, block.line + start, words, shown)


def spans(page: str) -> Iterator[Command]:
    """Yields commands in the sentences of a page, except those `at commit`; they may be partial."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for span in _SPAN.finditer(text):
        yield Command(page, text.count("\n", 0, span.start()) + 1, _words(span[1]))


def named_paths(page: str) -> list[str]:
    """Returns the repository paths in the sentences of a page, except those `at commit`."""
    return _PATH.findall((ROOT / page).read_text(encoding="utf-8"))


def named_by_architecture() -> list[str]:
    """Returns the paths in ARCHITECTURE.md. A bare file name is beside the line's last full path."""
    found = []
    for line in (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines():
        folder = ""
        for path, file, module in _NAME.findall(line):
            if path:
                folder = path.rpartition("/")[0]
                found.append(path)
            elif folder:
                found.append(f"{folder}/{file or module + '.py'}")
    return found


def alternatives(path: str) -> list[str]:
    """Expands braces in a path as a shell does."""
    before, brace, rest = path.partition("{")
    if not brace:
        return [path]
    choices, _, after = rest.partition("}")
    return [f"{before}{choice}{after}" for choice in choices.split(",")]


def links(page: str) -> list[tuple[str, str]]:
    """Returns the path and the heading of each link to a repository file."""
    return _LINK.findall((ROOT / page).read_text(encoding="utf-8"))


def headings(page: Path) -> set[str]:
    """Returns the anchors of a page's headings."""
    found = _HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in found}


def _words(line: str) -> tuple[str, ...]:
    words = shlex.split(line, comments=True)
    cut = next((n for n, word in enumerate(words) if word in (">", "&", "|")), len(words))
    return tuple(word for word in words[:cut] if word != "…")


def written(kind: Kind) -> list[Block]:
    """Returns all blocks of a kind on all pages."""
    return [block for page in PAGES for block in blocks(page) if block.kind is kind]


def written_commands() -> list[Command]:
    """Returns all commands on all pages."""
    return [command for block in written(Kind.SHELL) for command in commands(block)]
