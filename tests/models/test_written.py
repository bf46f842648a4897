"""Tests that commands in documents about making models can be parsed (others: tests/docs)."""

import pytest
from written import PAGES, Command, spans, written_commands
from written_parsing import check_names, needs_torch, parse
from written_rules import How, rule_of

COMMANDS = [each for each in written_commands() if needs_torch(each)]
SPANS = [each for page in PAGES for each in spans(page) if needs_torch(each)]


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_every_command_of_ours_can_be_parsed(command: Command) -> None:
    rule = rule_of(command)
    assert rule is not None
    if rule.how is not How.SHELL:
        parse(command)


@pytest.mark.parametrize("command", SPANS, ids=str)
def test_commands_named_in_sentences_exist_with_their_options(command: Command) -> None:
    check_names(command)
