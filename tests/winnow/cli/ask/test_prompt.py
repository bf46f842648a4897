"""The prompt, with a reader that follows a script, and what it remembers."""

import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import needs
import pytest

from winnow.cli.ask.prompt import History, history_path, run_prompt


def typed(*lines: str | type[BaseException]) -> Callable[[str], str]:
    """Reads the lines one after the other; what is an exception is raised."""
    script: Iterator[str | type[BaseException]] = iter((*lines, EOFError))

    def read(prompt: str) -> str:
        line = next(script)
        if isinstance(line, str):
            return line
        raise line

    return read


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def answered() -> list[str]:
    return []


def test_every_line_that_is_not_blank_is_answered_until_the_end(
    said: list[str], answered: list[str]
) -> None:
    kept: list[int] = []
    run_prompt(answered.append, said.append, lambda: kept.append(1), typed("one?", "  ", " two? "))
    assert answered == ["one?", "two?"]
    assert len(kept) == 2


def test_it_says_first_how_it_ends(said: list[str], answered: list[str]) -> None:
    run_prompt(answered.append, said.append, read=typed())
    assert "Ctrl-D or `exit` ends" in said[0]


@pytest.mark.parametrize("word", ["exit", "quit", " exit "])
def test_a_word_ends_it_too(word: str, said: list[str], answered: list[str]) -> None:
    run_prompt(answered.append, said.append, read=typed(word, "one?"))
    assert answered == []


def test_ctrl_c_gives_up_a_line_and_no_more(said: list[str], answered: list[str]) -> None:
    run_prompt(answered.append, said.append, read=typed(KeyboardInterrupt, "one?"))
    assert answered == ["one?"]


def test_ctrl_c_gives_up_a_question_and_no_more(said: list[str], answered: list[str]) -> None:
    def answer(question: str) -> None:
        if question == "long?":
            raise KeyboardInterrupt
        answered.append(question)

    run_prompt(answer, said.append, read=typed("long?", "one?"))
    assert answered == ["one?"]
    assert "given up" in said


def test_the_history_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "winnow" / "ask-history"
    History(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_questions_are_in_the_history_of_the_next_prompt(tmp_path: Path) -> None:
    readline = pytest.importorskip("readline", reason=needs.READLINE)
    path = tmp_path / "ask-history"
    for question in ("one?", "two?"):
        history = History(path)
        readline.add_history(question)
        history.save()
    History(path)
    entries = [
        readline.get_history_item(n + 1) for n in range(readline.get_current_history_length())
    ]
    assert entries == ["one?", "two?"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_history_is_in_the_state_directory_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert history_path({"XDG_STATE_HOME": "/state"}) == Path("/state/winnow/ask-history")
    for environment in ({}, {"XDG_STATE_HOME": ""}, {"XDG_STATE_HOME": "state"}):
        assert history_path(environment) == Path("/home/me/.local/state/winnow/ask-history")
