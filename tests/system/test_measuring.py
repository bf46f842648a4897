"""`winnow evaluate` and `winnow bench` against a fake front node."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import needs
import pytest
from in_process import InProcess
from listening import new_server

from winnow.client.channels import SERVICE
from winnow.errors import InvalidRequestError, OverloadedError, Violation
from winnow.stateless.answer.validation import MAX_CHARACTERS
from winnow.v1 import answer_pb2, answer_pb2_grpc


class Front(answer_pb2_grpc.AnswerServiceServicer):
    """Answers "Ada" to every question within the length limit, unless it is full."""

    def __init__(self) -> None:
        self.server = new_server(SERVICE)
        answer_pb2_grpc.add_AnswerServiceServicer_to_server(self, self.server.grpc)
        self.address = "127.0.0.1:1"
        self.asked = 0
        self.filters: set[str] = set()
        self.losses: set[float | None] = set()
        self.full = False

    async def Answer(self, request: answer_pb2.AnswerRequest, context: Any) -> Any:
        self.asked += 1
        self.filters.add(request.filter)
        said = request.HasField("max_loss")
        self.losses.add(request.max_loss if said else None)
        if self.full:
            raise OverloadedError("no room")
        if len(request.question) > MAX_CHARACTERS:
            raise InvalidRequestError(
                Violation("question", f"has {len(request.question)} characters")
            )
        passage = answer_pb2.Passage(id="1", text="by Ada in full")
        return answer_pb2.AnswerResponse(
            answers=[answer_pb2.Answer(text="Ada", passage=passage, score=1.0)],
            passages_read=2,
            passages_needed=1,
            max_loss=request.max_loss if said else 0.3,
            coverage=answer_pb2.Coverage(complete=True),
        )


@pytest.fixture
async def front() -> AsyncIterator[Front]:
    made = Front()
    made.address = f"127.0.0.1:{await made.server.start('127.0.0.1:0')}"
    await made.server.set_serving(True)
    yield made
    await made.server.drain(0)


@dataclass
class Result:
    code: int
    out: str
    said: str


async def winnow(
    command: str,
    front: Front,
    questions: Path,
    *arguments: str,
    stdout: int = asyncio.subprocess.PIPE,
) -> Result:
    given = [command, "--address", front.address, "--questions", str(questions), *arguments]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "winnow", *given,
        stdout=stdout, stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1"},
    )  # fmt: skip
    out, said = await process.communicate()
    assert b"Traceback" not in said, said.decode()
    return Result(process.returncode or 0, (out or b"").decode(), said.decode())


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> InProcess:
    """Runs commands that ask no front, in the process of the tests."""
    return InProcess(capsys, monkeypatch, columns=200)


def written(path: Path, *rows: Mapping[str, object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


RIGHT = {"question": "Who?", "answers": ["Ada"]}
LONG = {"question": "Who " * 300 + "?", "answers": ["Ada"]}
BARE = {"question": "Why?"}


async def test_a_question_that_the_server_refuses_counts_as_failed_with_the_reason(
    front: Front, tmp_path: Path
) -> None:
    questions = written(tmp_path / "q.jsonl", RIGHT, LONG, BARE)
    result = await winnow("evaluate", front, questions, "--json")
    found = json.loads(result.out)
    assert (result.code, found["questions"], found["failed"]) == (0, 3, 1)
    assert found["without_answers"] == 1
    assert found["errors"] == {"INVALID_ARGUMENT": 1}
    assert "has 1201 characters" in found["said"]["INVALID_ARGUMENT"]
    assert found["figures"][0]["exact_match"] == 50
    assert "asking: 3 of 3 (100 %)" in result.said
    shown = await winnow("evaluate", front, questions)
    assert "1 question without accepted answers" in shown.out
    assert "1 failed: INVALID_ARGUMENT: question: has 1201 characters" in shown.out


async def test_every_question_of_an_evaluation_has_its_filter(front: Front, tmp_path: Path) -> None:
    questions = written(tmp_path / "q.jsonl", RIGHT, BARE)
    result = await winnow("evaluate", front, questions, "--where", "year > 2010", "--json")
    assert (result.code, front.asked, front.filters) == (0, 2, {"year > 2010"})


@pytest.mark.parametrize(
    ("given", "asked", "used", "recall"), [([], None, 0.3, None), (["--max-loss", "0"], 0, 0, 100)]
)
async def test_an_evaluation_uses_the_servers_max_loss_or_its_own(
    front: Front,
    tmp_path: Path,
    given: list[str],
    asked: float | None,
    used: float,
    recall: float | None,
) -> None:
    questions, replies = written(tmp_path / "q.jsonl", RIGHT), tmp_path / "replies.jsonl"
    result = await winnow("evaluate", front, questions, "--json", "--replies", str(replies), *given)
    found = json.loads(result.out)
    assert front.losses == {asked}
    assert (found["max_loss"], found["passages_read"], found["passages_needed"]) == (used, 2, 1)
    assert found["figures"][0]["recall_by_answer"] == recall
    (row,) = map(json.loads, replies.read_text(encoding="utf-8").splitlines())
    assert row["max_loss"] == used


async def test_the_table_of_an_evaluation_explains_missing_recall(
    front: Front, tmp_path: Path
) -> None:
    questions = written(tmp_path / "q.jsonl", RIGHT)
    result = await winnow("evaluate", front, questions)
    assert "2.0 passages read each, 1.0 needed" in result.out
    assert "reading may have stopped early (max_loss 0.3): no recall" in result.out


@pytest.mark.parametrize(("given", "asked", "used"), [([], None, 0.3), (["--max-loss", "0"], 0, 0)])
async def test_a_load_uses_the_servers_max_loss_or_its_own(
    front: Front, tmp_path: Path, given: list[str], asked: float | None, used: float
) -> None:
    questions = written(tmp_path / "q.jsonl", RIGHT)
    load = ["--clients", "1", "--seconds", "0.1", "--warm-up", "1", "--json"]
    result = await winnow("bench", front, questions, *load, *given)
    assert result.out, result.said
    assert [each["max_loss"] for each in json.loads(result.out)] == [used]
    assert front.losses == {asked}


async def test_an_evaluation_fails_only_if_every_question_does(
    front: Front, tmp_path: Path
) -> None:
    front.full = True
    replies = tmp_path / "replies.jsonl"
    result = await winnow(
        "evaluate", front, written(tmp_path / "q.jsonl", RIGHT), "--replies", str(replies)
    )
    assert result.code == 1
    assert "RESOURCE_EXHAUSTED: no room" in result.out
    assert json.loads(replies.read_text())["error"] == "RESOURCE_EXHAUSTED: no room"


@pytest.mark.parametrize("shown", [[], ["--json"]], ids=["table", "json"])
@pytest.mark.parametrize(
    ("command", "arguments", "name"),
    [
        ("evaluate", ["--replies"], "replies.jsonl"),
        ("bench", ["--clients", "1", "--seconds", "0.1", "--plot"], "picture.svg"),
    ],
)
async def test_replies_are_written_even_if_standard_output_is_closed(
    front: Front, tmp_path: Path, command: str, arguments: list[str], name: str, shown: list[str]
) -> None:
    if command == "bench":
        pytest.importorskip("matplotlib", reason=needs.PLOTS)
    reading, writing = os.pipe()
    os.close(reading)
    questions = written(tmp_path / "q.jsonl", RIGHT)
    arguments = [*shown, *arguments, str(tmp_path / name)]
    try:
        result = await winnow(command, front, questions, *arguments, stdout=writing)
    finally:
        os.close(writing)
    assert result.code == 1
    assert (tmp_path / name).stat().st_size


async def test_a_file_without_answers_is_refused_before_any_question(
    front: Front, tmp_path: Path
) -> None:
    result = await winnow("evaluate", front, written(tmp_path / "q.jsonl", BARE))
    assert (result.code, front.asked) == (1, 0)
    assert "none of 1 question " in result.said


@pytest.mark.parametrize(
    ("command", "option", "name"),
    [
        ("evaluate", "--replies", "no/such/place.jsonl"),
        ("bench", "--plot", "no/such/place.png"),
        ("bench", "--plot", "picture.doc"),
    ],
)
async def test_an_unwritable_output_is_reported_before_any_question(
    front: Front, tmp_path: Path, command: str, option: str, name: str
) -> None:
    questions = written(tmp_path / "q.jsonl", RIGHT)
    result = await winnow(command, front, questions, option, str(tmp_path / name))
    assert (result.code, front.asked) == (1, 0)
    assert name in result.said
    assert [each.name for each in tmp_path.iterdir()] == ["q.jsonl"]


@pytest.mark.parametrize(
    ("command", "arguments", "said"),
    [
        ("bench", ["--clients", "0"], "no load to offer"),
        ("bench", ["--clients", "-1"], "--clients"),
        ("bench", ["--clients", "2000"], "--clients"),
        ("bench", ["--rate", "nan"], "--rate"),
        ("bench", ["--rate", "0"], "--rate"),
        ("bench", ["--seconds", "nan"], "--seconds"),
        ("bench", ["--seconds", "0"], "--seconds"),
        ("bench", ["--timeout", "inf"], "--timeout"),
        ("evaluate", ["--clients", "0"], "--clients"),
        ("evaluate", ["--limit", "0"], "--limit"),
        ("evaluate", ["--timeout", "nan"], "--timeout"),
        ("evaluate", ["--max-loss", "101"], "--max-loss"),
        ("bench", ["--max-loss", "-1"], "--max-loss"),
        ("bench", ["--max-loss", "1", "--read-scope", "per-shard"], "--max-loss needs"),
    ],
)
def test_a_number_out_of_bounds_is_refused(
    tmp_path: Path, here: InProcess, command: str, arguments: list[str], said: str
) -> None:
    questions = written(tmp_path / "q.jsonl", RIGHT)
    result = here(command, "--address", "127.0.0.1:1", "--questions", str(questions), *arguments)
    assert result.returncode == 2
    assert said in result.stderr


async def test_a_load_without_any_answer_fails_with_the_reason(
    front: Front, tmp_path: Path
) -> None:
    questions = written(tmp_path / "q.jsonl", LONG)
    load = ["--clients", "1", "--rate", "10", "--seconds", "0.1", "--warm-up", "1"]
    result = await winnow("bench", front, questions, *load)
    assert result.code == 1
    assert "failed: INVALID_ARGUMENT: question: has 1201 characters" in result.out
    assert "closed loop, 1 client, 0.1 s" in result.said
