"""Every block of a page has a known kind, and every command is run or has a reason why not."""

import json
import re
import subprocess

import pytest
from google.protobuf import json_format
from written import (
    PAGES,
    ROOT,
    Block,
    Command,
    Kind,
    alternatives,
    blocks,
    commands,
    headings,
    links,
    named_by_architecture,
    named_paths,
    spans,
    written,
    written_commands,
)
from written_parsing import check_names, needs_torch, parse
from written_rules import How, rule_of

from winnow.v1 import answer_pb2

COMMANDS = written_commands()
SPANS = [each for page in PAGES for each in spans(page) if not needs_torch(each)]
HERE = [each for each in COMMANDS if not needs_torch(each)]
"""Commands whose parsers can be imported without PyTorch; tests/models has the others."""


def of(text: str) -> list[Command]:
    return list(commands(Block("page.md", 1, "", text)))


def test_a_backslash_continues_a_command_and_a_comment_ends_it() -> None:
    (found,) = of("winnow ask 'Who won?' \\\n    --json   # for programs")
    assert found.words == ("winnow", "ask", "Who won?", "--json")


def test_a_prompt_begins_a_command_with_its_output() -> None:
    first, second = of("$ source x\n$ winnow ask Who\nJunko Tabei\n\nMore")
    assert (first.text, first.says) == ("source x", "")
    assert (second.text, second.says, second.line) == ("winnow ask Who", "Junko Tabei", 2)


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_of_a_known_kind(page: str) -> None:
    unknown = [f"{page}:{each.line}" for each in blocks(page) if each.kind is Kind.UNKNOWN]
    assert not unknown, "add the kind of these blocks to tests/written.py"


@pytest.mark.parametrize("command", COMMANDS, ids=str)
def test_every_command_is_run_or_has_a_reason(command: Command) -> None:
    rule = rule_of(command)
    assert rule is not None, "add a rule to tests/written_rules.py"
    if rule.how is How.ELSEWHERE:
        assert (ROOT / rule.why).exists()
    elif rule.how not in (How.RUN, How.SERVED):
        assert rule.why


@pytest.mark.parametrize("command", HERE, ids=str)
def test_every_command_of_ours_can_be_parsed(command: Command) -> None:
    rule = rule_of(command)
    if rule is None or rule.how is not How.SHELL:
        parse(command)


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_exists(page: str) -> None:
    missing = [path for path in named_paths(page) if not exists(path)]
    assert not missing, "correct the path, or name the commit that has it"


def test_every_file_that_the_architecture_names_exists() -> None:
    assert [path for path in named_by_architecture() if not exists(path)] == []


def exists(path: str) -> bool:
    """Whether a path of the repository, or a pattern of several, leads to a file or folder."""
    roots = (ROOT, ROOT / "proto")
    return any(any(root.glob(each)) for each in alternatives(path.rstrip("/")) for root in roots)


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_to_a_heading_or_a_file(page: str) -> None:
    broken = []
    for target, heading in links(page):
        there = (ROOT / page).parent / target if target else ROOT / page
        if not there.exists() or (heading and heading not in headings(there)):
            broken.append(f"{target}#{heading}")
    assert not broken


@pytest.mark.parametrize("command", SPANS, ids=str)
def test_commands_in_sentences_exist_with_their_options(command: Command) -> None:
    check_names(command)


@pytest.mark.parametrize("block", written(Kind.SHELL), ids=lambda each: f"{each.page}:{each.line}")
def test_every_block_of_shell_is_valid_shell(block: Block) -> None:
    lines = block.text.splitlines()
    if lines[0].startswith("$ "):
        lines = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    subprocess.run(["bash", "-n"], input="\n".join(lines), text=True, check=True)


@pytest.mark.parametrize(
    "block",
    [each for each in written(Kind.DATA) if each.is_json],
    ids=lambda each: f"{each.page}:{each.line}",
)
def test_blocks_of_json_are_json(block: Block) -> None:
    json.loads(block.text)


@pytest.mark.parametrize(
    "command", [each for each in COMMANDS if each.words[0] == "grpcurl"], ids=str
)
def test_requests_for_grpcurl_are_valid(command: Command) -> None:
    body = command.words[command.words.index("-d") + 1]
    service, _, method = command.words[-1].rpartition("/")
    described = answer_pb2.DESCRIPTOR.services_by_name[service.removeprefix("winnow.v1.")]
    asked = described.methods_by_name[method].input_type
    json_format.Parse(body, getattr(answer_pb2, asked.name)())


def test_the_index_for_language_models_lists_every_page() -> None:
    text = (ROOT / "llms.txt").read_text(encoding="utf-8")
    listed = re.findall(r"\]\(([^)]+)\)", text)
    assert [path for path in listed if not (ROOT / path).is_file()] == []
    pages = {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")}
    assert pages <= set(listed), "add the page to llms.txt"
