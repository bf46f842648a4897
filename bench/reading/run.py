"""Compares reading and reranking ten retrieved texts with other libraries on the same machine.

    python -m bench reading --index INDEX --questions FILE --address HOST:PORT
        --peer haystack=PYTHON --peer cross-encoder=PYTHON … [--limit 200] [--json]

Retrieves ten passages for each question, and gives the same texts to Winnow and to each peer, one
after the other. Winnow is a running `winnow reader`, called over gRPC. A peer runs in a process
with another interpreter, whose environment has only this library; the time of a peer excludes the
exchange with the process. All peers run the full cross-encoder of --network. The rows `remembered`
ask another question about the same texts. Exact match and gold first have the same questions. Gold
first is the share of questions whose gold passage is ranked first, if the gold passage is among the
ten. Needs the extra `models`. docs/measurements/reading.md says how the environments are made.

With --reader-pid, processor times are compared, too: they hardly depend on other work of the
machine. The reader threads of Winnow have a low priority, so on a busy machine elapsed times are
worse than those of peers.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median

from bench.figures import Figure, at_least, print_figures, quantile_figure, ratio_figure
from bench.inputs import add_index_and_questions
from bench.reading import peer
from winnow.cli.units.asking import processor_seconds
from winnow.client.aio import AsyncClient
from winnow.client.reading import TextFields
from winnow.client.replies import Passage
from winnow.labelled_questions import LabelledQuestion, read_questions
from winnow.standalone.index import AsyncIndex
from winnow.text.scores import exact_match

_PASSAGES = 10
_TIMEOUT = 60.0
_WINNOW, _REMEMBERED = "winnow", "remembered"
_FASTER = {"haystack": 4.0, "cross-encoder": 4.0, "cross-encoder-onnx": 1.5, "flashrank": 1.5}
"""How many times faster than each peer Winnow should be (p50)."""


@dataclass(frozen=True, slots=True)
class Task:
    """A question with its retrieved passages."""

    question: LabelledQuestion
    passages: tuple[Passage, ...]
    gold: int | None
    """Number of the gold passage; None if it was not retrieved."""

    @property
    def texts(self) -> list[str]:
        """What peers read: a title and its text as one text."""
        return [f"{each.title}. {each.text}" if each.title else each.text for each in self.passages]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Seconds of a call, and what it returned: the first text, and the words of the best span."""

    seconds: float
    first: int
    answer: str
    processor: float = 0.0
    """Processor seconds of the process that read; 0 if they were not measured."""


Reader = Callable[[Task], Outcome]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the flags of `python -m bench reading`."""
    add_index_and_questions(parser)
    parser.add_argument("--address", required=True, help="HOST:PORT of a running `winnow reader`")
    parser.add_argument(
        "--peer",
        action="append",
        default=[],
        metavar="LIBRARY=PYTHON",
        help=f"a library ({', '.join(peer.LIBRARIES)}) and the interpreter that has it",
    )
    parser.add_argument(
        "--network",
        type=Path,
        default=Path("bundles/whole"),
        help="bundle with the full cross-encoder of the peers",
    )
    parser.add_argument("--limit", type=int, default=200, help="maximum number of questions")
    parser.add_argument(
        "--reader-pid", type=int, help="process of `winnow reader`, to compare processor times"
    )


def run(options: argparse.Namespace) -> int:
    """Measures and prints the figures; returns the exit code."""
    pythons = dict(each.split("=", 1) for each in options.peer)
    questions = [each for each in read_questions(options.questions) if each.answers]
    step = max(len(questions) // options.limit, 1)
    tasks = asyncio.run(_retrieve(options.index, questions[::step][: options.limit]))
    with asyncio.Runner() as runner, ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        if pythons:
            command = [sys.executable, "-m", "bench.reading.networks"]
            subprocess.run([*command, str(options.network), str(directory)], check=True)
        readers: dict[str, Reader] = {
            name: stack.enter_context(_peer(name, python, directory))
            for name, python in pythons.items()
        }
        client = AsyncClient(options.address)
        stack.callback(lambda: runner.run(client.close()))
        pid, other = options.reader_pid, questions[0].question

        def ask(task: Task, question: str) -> Outcome:
            before = processor_seconds(pid) if pid else 0.0
            outcome = runner.run(_read(client, task, question))
            return replace(outcome, processor=processor_seconds(pid) - before if pid else 0.0)

        readers[_WINNOW] = lambda task: ask(task, task.question.question)
        readers[_REMEMBERED] = lambda task: ask(task, other)
        outcomes = _measure(readers, tasks)
    return print_figures(_figures(outcomes, tasks), as_json=options.json)


async def _retrieve(index: Path, questions: Sequence[LabelledQuestion]) -> list[Task]:
    """Retrieves the passages of each question."""
    tasks = []
    async with AsyncIndex.open(index) as opened:
        for question in questions:
            reply = await opened.search(question.question, passages=_PASSAGES, timeout=_TIMEOUT)
            passages = tuple(hit.passage for hit in reply.passages)
            gold = [n for n, each in enumerate(passages) if each.text == question.context]
            tasks.append(Task(question, passages, gold[0] if gold else None))
    return tasks


async def _read(client: AsyncClient, task: Task, question: str) -> Outcome:
    started = time.perf_counter()
    passages = [TextFields(title=each.title, text=each.text) for each in task.passages]
    reply = await client.read(question, passages, timeout=_TIMEOUT)
    seconds = time.perf_counter() - started
    relevance = [each.relevance_score for each in reply.readings]
    best = reply.best[0].text if reply.best else ""
    return Outcome(seconds, relevance.index(max(relevance)), best)


@contextmanager
def _peer(library: str, python: str, directory: Path) -> Iterator[Reader]:
    """Starts the process of a library; yields a function that calls it."""
    command = [python, peer.__file__, library, str(directory)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        requests, replies = process.stdin, process.stdout
        assert requests is not None
        assert replies is not None

        def read(task: Task) -> Outcome:
            row = {"question": task.question.question, "texts": task.texts}
            before = processor_seconds(process.pid)
            requests.write(json.dumps(row) + "\n")
            requests.flush()
            line = replies.readline()
            if not line:
                raise RuntimeError(f"{library} ended; its error is above")
            reply = json.loads(line)
            spent = processor_seconds(process.pid) - before
            return Outcome(reply["seconds"], reply["order"][0], reply["answer"], spent)

        yield read
        requests.close()


def _measure(readers: Mapping[str, Reader], tasks: Sequence[Task]) -> dict[str, list[Outcome]]:
    """Reads each task with every reader in turn, after one call of each to warm up."""
    for read in readers.values():
        read(tasks[0])
    outcomes: dict[str, list[Outcome]] = {name: [] for name in readers}
    names = [name for name in readers if name != _REMEMBERED]
    for number, task in enumerate(tasks):
        for name in names[:: -1 if number % 2 else 1]:
            outcomes[name].append(readers[name](task))
            if name == _WINNOW:  # remembers the texts from this call on
                outcomes[_REMEMBERED].append(readers[_REMEMBERED](task))
    return outcomes


def _figures(outcomes: Mapping[str, Sequence[Outcome]], tasks: Sequence[Task]) -> list[Figure]:
    seconds = {name: [each.seconds for each in rows] for name, rows in outcomes.items()}
    processor = {name: [each.processor for each in rows] for name, rows in outcomes.items()}
    figures = []
    for name, rows in outcomes.items():
        figures.append(quantile_figure(name, f"{_PASSAGES} texts", seconds[name], 0.5))
        rate = _PASSAGES / median(seconds[name])
        figures.append(Figure(name, "texts a second, from the p50", rate, "1/s"))
        if processor[_WINNOW][0]:
            label = f"processor time, {name} / {_WINNOW}"
            figures.append(ratio_figure(name, label, processor[name], processor[_WINNOW], 0.5))
        if name == _REMEMBERED:
            ratio = ratio_figure(name, f"{_WINNOW} / {name}", seconds[_WINNOW], seconds[name], 0.5)
            figures.append(at_least(ratio, 2.0))
            continue
        if name != _WINNOW:
            ratio = ratio_figure(name, f"{name} / {_WINNOW}", seconds[name], seconds[_WINNOW], 0.5)
            figures.append(at_least(ratio, _FASTER[name]))
        golden = [
            (row.first, task.gold)
            for row, task in zip(rows, tasks, strict=True)
            if task.gold is not None
        ]
        figures.append(Figure(name, "gold first", 100 * mean(a == b for a, b in golden), "%"))
        if any(row.answer for row in rows):
            right = [
                exact_match(row.answer, task.question.answers)
                for row, task in zip(rows, tasks, strict=True)
            ]
            figures.append(Figure(name, "exact match", 100 * mean(right), "%"))
    return figures
