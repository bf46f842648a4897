"""Help texts: paragraphs flow, lists stay."""

import typer

from winnow.tools.help_texts import flowing, with_flowing_help


def test_a_paragraph_becomes_one_line_and_a_list_stays() -> None:
    text = """First line.

    Broken where
    the source ends.

    Codes:
      0 good
      1 bad
    """
    assert flowing(text) == (
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
    command = with_flowing_help(root)
    assert command.commands["group"].commands["one"].help == "Says a.\n\nb c"
