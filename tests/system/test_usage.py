"""Behaviour of all commands: help, completion, one style of error, closed pipes."""

import subprocess
import sys

import pytest
from in_process import InProcess
from tenacious import LONG

COMMANDS = ["ask", "predict", "up", "front", "node", "evaluate", "bench", "demo"]
GROUPS = ["index", "index build", "index inspect", "index verify", "pareto", "pareto run", "heads"]
GROUPS += [
    f"heads {command}" for command in ("list", "publish", "pin", "unpin", "rollback", "verify")
]


@pytest.fixture
def winnow(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> InProcess:
    return InProcess(capsys, monkeypatch, columns=120)


@pytest.mark.parametrize("command", ["", *COMMANDS, *GROUPS])
def test_every_command_prints_help_for_the_short_flag(winnow: InProcess, command: str) -> None:
    shown = winnow(*command.split(), "-h")
    assert shown.returncode == 0, shown.stderr
    assert f"Usage: winnow {command}".rstrip() in shown.stdout


def test_winnow_without_arguments_prints_its_help(winnow: InProcess) -> None:
    alone = winnow()
    assert "Start here" in alone.stdout + alone.stderr
    assert "error" not in alone.stderr


def completions(winnow: InProcess, line: str) -> set[str]:
    """Returns the completions that bash would offer for the last word."""
    words = line.split(" ")
    shown = winnow(
        _WINNOW_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(len(words) - 1)
    )
    assert (shown.returncode, shown.stderr) == (0, "")
    return set(shown.stdout.split())


def test_completion_knows_commands_options_and_values(winnow: InProcess) -> None:
    assert {*COMMANDS, "index", "pareto"} <= completions(winnow, "winnow ")
    assert completions(winnow, "winnow ev") == {"evaluate"}
    assert completions(winnow, "winnow index ver") == {"verify"}
    assert completions(winnow, "winnow index build --ou") == {"--out"}
    assert completions(winnow, "winnow ask --pass") == {"--passages-to-read"}
    assert completions(winnow, "winnow ask --retriever ") == {"dense", "hybrid", "sparse"}
    assert completions(winnow, "winnow front --max-lo") == {"--max-loss"}


def test_completion_works_in_zsh_and_fish(winnow: InProcess) -> None:
    zsh = winnow(_WINNOW_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="winnow ask --pass")
    assert "--passages-to-read" in zsh.stdout
    fish = winnow(
        _WINNOW_COMPLETE="complete_fish", _TYPER_COMPLETE_ARGS="winnow ask --pass",
        _TYPER_COMPLETE_FISH_ACTION="get-args", _TYPER_COMPLETE_WORD_TO_COMPLETE="--pass",
    )  # fmt: skip
    assert "--passages-to-read" in fish.stdout


def test_the_completion_script_is_shown(winnow: InProcess) -> None:
    shown = winnow("--show-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert "_WINNOW_COMPLETE=complete_bash" in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("indx", "no such command 'indx'. Did you mean 'index', 'indexes'?|try 'winnow --help'"),
        ("index bild", "no such command 'bild'. Did you mean 'build'?|try 'winnow index --help'"),
        ("ask ? --adress x", "(Possible options: --address|try 'winnow ask --help'"),
        ("evaluate", "missing option '--questions'|try 'winnow evaluate --help'"),
        ("evaluate --questions", "'--questions' requires an argument|try 'winnow evaluate --help'"),
        ("bench --questions x --clients y", "integer, not 'y'|try 'winnow bench --help'"),
        ("index build --shards 0", "equal to 1, not '0'|try 'winnow index build --help'"),
        ("ask ? --retriever words", "': 'words' is not one of|try 'winnow ask --help'"),
        (
            "pareto run --index x --questions x --max-p95 soon",
            "'--max-p95': 'soon' is|try 'winnow pareto run --help'",
        ),
        ("front", "WINNOW_FRONT_SHARDS|try 'winnow front --help'"),
    ],
)
def test_wrong_usage_looks_the_same_everywhere(
    winnow: InProcess, arguments: str, said: str
) -> None:
    result = winnow(*arguments.split())
    assert (result.returncode, result.stdout) == (2, "")
    wrong, hint = result.stderr.splitlines()
    expected, expected_hint = said.split("|")
    assert wrong.startswith("error: ")
    assert expected in wrong
    assert hint == expected_hint


def test_closing_a_pipe_early_is_no_error() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "winnow", "evaluate", "--help"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        process.wait(LONG)
