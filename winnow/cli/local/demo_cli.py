"""`winnow demo`."""

import hashlib
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.live import Live

from winnow import signals
from winnow.address import Address
from winnow.bundle import default_bundle, read_manifest
from winnow.cli.local.cli import serve_until_stopped
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.local.demo import add, ask_questions, empty_table
from winnow.cli.local.demo_heads import (
    DemoText,
    add_said,
    predict_texts,
    predictions_table,
    read_texts,
)
from winnow.cli.local.keeping import Keeping
from winnow.cli.local.ports import chosen, expect_free, or_any
from winnow.cli.local.restarts import Restarts
from winnow.cli.local.trying import Door, activation, http_line, predict_line, try_line
from winnow.cli.questions import AskedQuestion, read_questions
from winnow.client import AsyncClient
from winnow.client.messages import AnswerClient
from winnow.errors import ArtefactError
from winnow.files.opened import sha256
from winnow.packaged import default_heads, demo_corpus, made_files
from winnow.quoting import many
from winnow.settings.source import SettingsError

_CORPUS = demo_corpus()
_LISTEN, _HTTP = "127.0.0.1:8080", "127.0.0.1:8088"
_QUESTION = "Who won the Tour de France in 2015?"
_TEXT = "book me a flight to Oslo"


def demo(
    passages: Annotated[
        Path, typer.Option(help="Passages to index.", show_default="the demo's")
    ] = _CORPUS / "passages.jsonl",
    questions: Annotated[
        Path, typer.Option(help="Questions with expected answers.", show_default="the demo's")
    ] = _CORPUS / "questions.jsonl",
    index: Annotated[
        Path | None,
        typer.Option(
            help="Directory of the index.",
            show_default="in var/ of a checkout, else in the user's cache",
        ),
    ] = None,
    shards: Annotated[int, typer.Option(min=1, help="Number of shards, one node each.")] = 3,
    listen: Annotated[
        str | None,
        typer.Option(
            help="HOST:PORT of the front node; port 0 for any free one.",
            show_default=f"{_LISTEN}, or any free port",
        ),
    ] = None,
    http_listen: Annotated[
        str | None,
        typer.Option(
            help="HOST:PORT to serve HTTP on; port 0 for any free one, empty for none.",
            show_default=f"{_HTTP}, or any free port",
        ),
    ] = None,
    once: Annotated[
        bool,
        typer.Option("--once", help="Exit after asking; code 0: everything is right."),
    ] = False,
) -> None:
    """Build a small index, start one front and several content nodes, ask, and serve.

    Ctrl-C ends every process.
    """
    console = Console(highlight=False)
    say = partial(console.print, markup=False, soft_wrap=True)
    address = _served_on("--listen", listen, _LISTEN, say)
    # an empty one is none
    http = (
        http_listen if http_listen == "" else _served_on("--http-listen", http_listen, _HTTP, say)
    )
    asked = read_questions(questions)
    bundle = default_bundle()
    if index is None:
        index = kept_index(passages, bundle, shards)
        _prepare(passages, index, shards)
    elif not index.exists():
        _build(passages, index, shards)
    heads = default_heads()
    texts = read_texts(_CORPUS / "texts.jsonl") if heads.is_dir() else []
    plan = LocalPlan(
        index,
        bundle,
        address,
        front=("--heads", str(heads)) if texts else (),
        http_listen=http,
    )
    with LocalCluster(plan) as cluster:
        cluster.start()
        with console.status(
            f"starting {many(len(cluster.nodes), 'content node')} and a front node"
        ):
            signals.run(cluster.wait_ready())
        mistaken = signals.run(_predict(cluster, texts, console)) if texts else 0
        wrong = signals.run(_ask(cluster, asked, console))
        console.print(f"{len(asked) - wrong} of {many(len(asked), 'answer')} as expected")
        if once:
            raise typer.Exit(1 if wrong or mistaken else 0)
        say("")
        for line in _to_try(cluster, bool(texts)):
            say(line)
        say("\nserving until Ctrl-C")
        serve_until_stopped(Keeping(cluster, Restarts(time.monotonic), say))


def _to_try(cluster: LocalCluster, heads: bool) -> Iterator[str]:
    entered = Door()
    if cluster.http:
        yield http_line(cluster.http, entered)
    yield f"{'or ' if cluster.http else ''}ask {cluster.address} from another terminal:"
    if found := activation(on_path=shutil.which("winnow") is not None):
        yield found
    yield try_line(cluster.address, entered, _QUESTION)
    if heads:
        yield predict_line(cluster.address, entered, _TEXT, "intent,entities")


def kept_index(passages: Path, bundle: Path, shards: int) -> Path:
    """Where the index is kept: other passages, other models or other shards need another one.

    Raises:
        ArtefactError: the passages or the bundle cannot be read.

    """
    try:
        manifest = read_manifest(bundle)
        prepared_for = (manifest.encoding_fingerprint, manifest.lower_fingerprint)
        made_of = [*prepared_for, sha256(passages), str(shards)]
    except OSError as error:
        raise ArtefactError(f"cannot read {passages}: {error.strerror}") from error
    name = hashlib.sha256(" ".join(made_of).encode()).hexdigest()[:16]
    return made_files() / f"demo-index-{name}"


def _prepare(passages: Path, index: Path, shards: int) -> None:
    """Builds what is not there; the states of its passages are what an interruption may lack."""
    if not index.exists():
        _build(passages, index, shards)
    elif len(list(index.glob("*/states.json"))) < shards:
        _run(["states", str(index)])


def _build(passages: Path, index: Path, shards: int) -> None:
    try:
        index.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"cannot make {index.parent}: {error.strerror}"
        raise ArtefactError(f"{problem}; name another place with --index") from error
    options = ["--out", str(index), "--shards", str(shards), "--states"]
    _run(["build", "--passages", str(passages), *options])


def _run(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "winnow", "index", *arguments]
    if code := subprocess.run(command, check=False).returncode:
        raise typer.Exit(code)


def _served_on(flag: str, wanted: str | None, usual: str, say: Callable[[str], object]) -> str:
    """Where to listen; any free port does if nobody chose one. Found out before anything is built.

    Raises:
        SettingsError: what was chosen is no address.
        UnavailableError: it is in use.

    """
    if wanted is None:
        found = str(or_any(Address.parse(usual)))
        if found != usual:
            say(f"{usual} is in use: this demo listens on {found} instead ({flag} chooses)")
        return found
    try:
        address = chosen(Address.parse(wanted))
    except ValueError as error:
        raise SettingsError(f"{flag}: {error}") from error
    expect_free([address], flag)
    return str(address)


async def _ask(cluster: LocalCluster, questions: Sequence[AskedQuestion], console: Console) -> int:
    table, wrong = empty_table(), 0
    async with AnswerClient(cluster.address) as client:
        with Live(table, console=console, vertical_overflow="visible"):
            async for asked in ask_questions(client, questions):
                add(table, asked)
                wrong += not asked.right
    if not console.is_terminal:
        console.line()  # `Live` ends its last line only on a terminal
    return wrong


async def _predict(cluster: LocalCluster, texts: Sequence[DemoText], console: Console) -> int:
    """Shows what the heads say of the demo texts; returns how often they are wrong."""
    table, wrong = predictions_table(), 0
    async with AsyncClient(cluster.address) as client:
        async for said in predict_texts(client, texts):
            add_said(table, said)
            wrong += not said.right
    console.print(table)
    console.print(f"{table.row_count - wrong} of {many(table.row_count, 'prediction')} as expected")
    return wrong
