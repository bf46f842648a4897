"""Parses commands of documents with the commands' own parsers, without running them."""

import argparse
import contextlib
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import patch

import typer
from written import ROOT, Command

from winnow.cli.commands import build_app

_A_NUMBER = "N"


class _Parsed(BaseException):
    """Raised instead of running a command whose arguments were parsed."""


def needs_torch(command: Command) -> bool:
    """Whether importing the command's parser needs PyTorch."""
    listed = re.search(r"^NEEDS_TORCH\s*:=((?:.*\\\n)*.*)", (ROOT / "Makefile").read_text(), re.M)
    assert listed is not None
    words = command.words
    ours = words[:2] == ("winnow", "models") or words[:3] == ("winnow", "heads", "refit")
    return ours or bool(set(listed[1].split()) & set(words))


def parse(command: Command) -> None:
    """Raises if a command of this project cannot be parsed; ignores other commands."""
    words = list(_without_brackets(command))
    if words[0] == "winnow":
        _parse_winnow(words[1:])
    elif words[0].endswith("python") and words[1:3] == ["-m", "bench"]:
        _parse_script(ROOT / "bench" / "__main__.py", words[3:])
    elif words[0] == "pytest":
        missing = [place for place in words[1:] if not (ROOT / place).exists()]
        assert not missing
    elif words[0] == "make":
        subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def check_names(command: Command) -> None:
    """Raises if a command or one of its options does not exist; arguments may be missing."""
    program, *words = command.words
    if program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.M)
        assert {word for word in words if "=" not in word} <= set(targets)
    elif program == "winnow":
        _check_options(words, *_entry(words))
    else:
        place = words[1].replace(".", "/") if words[0] == "-m" else words[0]
        found = ROOT / place
        sources = found.rglob("*.py") if found.is_dir() else [found.with_suffix(".py")]
        text = "".join(source.read_text(encoding="utf-8") for source in sources)
        _check_options(words, place, set(re.findall(r"--[\w-]+", text)))


def _entry(words: list[str]) -> tuple[str, set[str]]:
    """Returns the name and the options of the command that `words` begin with."""
    found: Any = typer.main.get_command(build_app(words))
    for word in words:
        inner = getattr(found, "commands", {})
        if not inner or word.startswith("-"):
            break
        assert word in inner, f"there is no {word}"
        found = inner[word]
    return found.name, {name for each in found.params for name in (*each.opts, "--help")}


def _check_options(words: list[str], name: str, options: set[str]) -> None:
    unknown = {word for word in words if word.startswith("--")} - options
    assert not unknown, f"{name} has no {unknown}"


def _without_brackets(command: Command) -> Iterator[str]:
    """Yields the words of a command with its optional parts, except options with a NAME."""
    text = re.sub(r"\[\S+ NAME\] ?", "", command.text)
    if text == command.text and "[" not in text:
        yield from command.words
        return
    for word in text.split():
        bare = word.strip("[]")
        yield "5" if bare == _A_NUMBER else bare


def _parse_winnow(arguments: list[str]) -> None:
    given: list[dict[str, Any]] = []
    group_calls: list[dict[str, Any]] = []
    """Calls of groups, which also run by themselves."""
    command = typer.main.get_command(build_app(arguments))
    for leaf in _leaves(command):
        leaf.callback = lambda **options: given.append(options)
    for group in getattr(command, "commands", {}).values():
        if getattr(group, "invoke_without_command", False):
            group.callback = lambda **options: group_calls.append(options)
    command.main(args=arguments, prog_name="winnow", standalone_mode=False)
    assert len(given or group_calls) == 1, "no command was called"


def _leaves(command: Any) -> Iterator[Any]:
    inner = getattr(command, "commands", {}).values()
    if not inner or getattr(command, "invoke_without_command", False):
        yield from [] if inner else [command]
    for each in inner:
        yield from _leaves(each)


def _parse_script(script: Path, arguments: list[str]) -> None:
    parse_args = argparse.ArgumentParser.parse_args

    def parsed(parser: argparse.ArgumentParser, *given: Any, **named: Any) -> NoReturn:
        parse_args(parser, *given, **named)
        raise _Parsed

    with (
        contextlib.suppress(_Parsed),
        patch.object(argparse.ArgumentParser, "parse_args", parsed),
        patch.object(sys, "argv", [str(script), *arguments]),
    ):
        runpy.run_path(str(script.with_suffix(".py")), run_name="__main__")
        raise AssertionError(f"{script} parsed nothing")
