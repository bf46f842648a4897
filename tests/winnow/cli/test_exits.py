"""How commands end."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typer

from winnow.cli.commands import main
from winnow.cli.exits import exit_code
from winnow.errors import (
    InvalidRequestError,
    UnauthenticatedError,
    UnavailableError,
    Violation,
)
from winnow.settings.errors import SettingsError

CRASHED = 99
"""The exit code of a stand-in for a crash while the interpreter ends."""


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """An interrupted command removes the handlers of the process."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in kept.items():
        signal.signal(number, handler)


def failing(error: BaseException) -> Callable[[], None]:
    def run() -> None:
        raise error

    return run


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UnavailableError("nobody is there"), 1, "error: nobody is there\n"),
        (
            UnauthenticatedError("no key was sent"),
            1,
            "error: no key was sent; give a token with --token-file or WINNOW_TOKEN\n",
        ),
        (
            InvalidRequestError(Violation("filter", "is odd"), Violation("ids[1]", "is empty")),
            1,
            "error: --where: is odd; ids[1]: is empty\n",
        ),
        (SettingsError("--x: no"), 2, "error: --x: no\ntry 'winnow up --help'\n"),
        (
            typer.BadParameter("Is not a number.", param_hint="'--x'"),
            2,
            "error: invalid value for '--x': Is not a number\ntry 'winnow up --help'\n",
        ),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (typer.Abort(), 130, ""),
        (UnavailableError("[bold]x[/bold] " + "long " * 40), 1, None),
    ],
)
def test_errors_have_one_style(
    error: BaseException, code: int, said: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(failing(error), "winnow up") == code
    assert capsys.readouterr().err == (f"error: {error}\n" if said is None else said)


@pytest.mark.parametrize("is_child", [False, True])
@pytest.mark.parametrize("kind", ["raised", "aborted", "returned"])
def test_an_interrupted_command_says_so_in_all_versions_of_typer(
    kind: str, is_child: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command that runs another one says it for both."""

    def run() -> int:
        if kind == "raised":
            raise KeyboardInterrupt
        if kind == "aborted":
            raise typer.Abort from KeyboardInterrupt()
        return 130

    assert exit_code(run, "winnow up", is_child=is_child) == 130
    assert capsys.readouterr().err == ("" if is_child else "interrupted\n")


@pytest.mark.parametrize(("returned", "code"), [(None, 0), (0, 0), (1, 1), (3, 3)])
def test_a_command_says_its_code(returned: int | None, code: int) -> None:
    assert exit_code(lambda: returned, "winnow up") == code


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["publish", "x"], "try 'winnow heads publish --help'\n"),
        (["heads", "states"], "try 'winnow index states --help'\n"),
        (["index", "ask"], "try 'winnow ask --help'\n"),
        (["pull"], "try 'winnow index pull --help' or 'winnow bundle pull --help'\n"),
        (["keys", "nothing"], "try 'winnow keys --help'\n"),
    ],
)
def test_a_command_of_another_group_is_named(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    error, hint = capsys.readouterr().err.splitlines(keepends=True)
    assert error.startswith("error: no such command '")
    assert hint == said


def test_other_errors_are_bugs_and_keep_their_stack() -> None:
    with pytest.raises(ZeroDivisionError):
        exit_code(failing(ZeroDivisionError()), "winnow up")


@pytest.mark.parametrize("ends", ["raise KeyboardInterrupt", "raise typer.Abort", "return 130"])
def test_a_signal_while_an_interrupted_command_ends_shows_no_stack(ends: str) -> None:
    code = (
        "import signal, typer; from winnow.cli.exits import exit_code\n"
        f"def run(): {ends}\n"
        "assert exit_code(run, 'winnow') == 130; signal.raise_signal(signal.SIGINT)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == -signal.SIGINT
    assert "Traceback" not in ran.stderr


@pytest.mark.parametrize(("module", "code"), [("ray", 130), ("another", CRASHED)])
def test_an_interrupted_command_is_not_ended_by_the_native_threads_of_ray(
    module: str, code: int
) -> None:
    program = (
        "import atexit, os, sys, types; from winnow.cli import commands\n"
        "def interrupted(_words): print('some output'); raise KeyboardInterrupt\n"
        "commands.build_app = interrupted\n"
        f"sys.modules[{module!r}] = types.ModuleType({module!r})\n"
        f"atexit.register(lambda: [sys.stdout.flush(), os._exit({CRASHED})])\n"
        "commands.main(['index', 'build'])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (code, "some output\n", "interrupted\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("module", ["typer", "onnxruntime"])
def test_a_signal_while_a_command_is_imported_ends_it_at_once(
    module: str, number: signal.Signals
) -> None:
    code = (
        "import signal, sys\n"
        "class Sending:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}: signal.raise_signal({int(number)})\n"
        "sys.meta_path.insert(0, Sending())\n"
        "from winnow.__main__ import main\n"
        "main(['node', '--shard', 'missing'])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "", "")


def test_a_command_looks_after_signals_before_it_imports_much() -> None:
    root = str(Path(__file__).parents[3])
    code = (
        f"import sys; sys.path.insert(0, {root!r}); import winnow.__main__;"
        "print(*sorted({'asyncio', 'pydantic', 'typer', 'typing'} & set(sys.modules)))"
    )
    # without `site`, which imports what installed packages ask for
    command = [sys.executable, "-I", "-S", "-c", code]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ran.stdout == "\n"
