"""Help texts: paragraphs flow, lists stay."""

import re

import pytest
import typer

from winnow.cli.commands import build_app
from winnow.cli.help_texts import unwrap_paragraphs, with_wrapped_help


def test_a_paragraph_becomes_one_line_and_a_list_stays() -> None:
    text = """First line.

    Broken where
    the source ends.

    Codes:
      0 good
      1 bad
    """
    assert unwrap_paragraphs(text) == (
        "First line.\n\nBroken where the source ends.\n\nCodes:\n  0 good\n  1 bad"
    )


def test_commands_of_groups_flow_too() -> None:
    def inner() -> None:
        """Says a.

        b
        c
        """

    group, root = typer.Typer(), typer.Typer()
    group.command("one")(inner)
    group.command("two")(inner)
    root.add_typer(group, name="group")
    root.command("three")(inner)
    command = with_wrapped_help(root)
    assert command.commands["group"].commands["one"].help == "Says a.\n\nb c"


@pytest.mark.parametrize("words", [["front"], ["node"], ["encoder"], ["heads", "serve"]])
def test_help_of_a_server_cuts_no_name_on_a_terminal_of_80_columns(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    asked = [*words, "--help"]
    command = with_wrapped_help(build_app(asked))
    command(args=asked, prog_name="winnow", standalone_mode=False)
    shown = capsys.readouterr().out
    assert "…" not in shown
    for word in words:
        command = command.commands[word]
    names = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    variables = set(re.findall(r"env (\w+)", " ".join(each.help or "" for each in command.params)))
    assert len(variables) > 10
    assert {each for each in names | variables if each not in shown} == set()
