"""`winnow demo`."""

import hashlib
import shutil
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
from winnow.bundle import read_manifest
from winnow.cli import output
from winnow.cli.local.cli import serve_until_stopped
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.local.demo_texts import (
    DemoText,
    ask_questions,
    predict_texts,
    predictions_table,
    questions_table,
    read_texts,
)
from winnow.cli.local.hints import (
    FrontRequirements,
    activation_command,
    ask_lines,
    http_line,
    predict_line,
)
from winnow.cli.local.ports import require_free, with_fallback_port, with_free_port
from winnow.cli.local.processes import run_to_end
from winnow.cli.local.supervision import ClusterSupervisor, RestartLimit
from winnow.client import AsyncClient
from winnow.errors import ArtefactError
from winnow.files.opened import sha256
from winnow.index_directory import shard_directories
from winnow.labelled_questions import LabelledQuestion, read_questions
from winnow.packaged import default_bundle, default_heads, demo_corpus, generated_directory
from winnow.quoting import many
from winnow.settings.errors import SettingsError

_CORPUS = demo_corpus()
_SHARDS = 3
_LISTEN, _HTTP = "127.0.0.1:8080", "127.0.0.1:8088"
_QUESTION = "Who won the Tour de France in 2015?"
_TEXT = "book me a flight to Oslo"


def demo(
    passages: Annotated[
        Path, typer.Option(help="File of passages to index.", show_default="the demo's")
    ] = _CORPUS / "passages.jsonl",
    questions: Annotated[
        Path,
        typer.Option(help="File of questions with expected answers.", show_default="the demo's"),
    ] = _CORPUS / "questions.jsonl",
    index: Annotated[
        Path | None,
        typer.Option(
            help="Directory of the index.",
            show_default="in var/ of a checkout, else in the user's cache",
        ),
    ] = None,
    shards: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of shards to build, each on a separate content node.",
            show_default=f"{_SHARDS}",
        ),
    ] = None,
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
        typer.Option(
            "--once",
            help="Exit after asking, with code 0 if all answers and predictions are as expected.",
        ),
    ] = False,
) -> None:
    """Build a small index, start a cluster on this machine, ask the questions, and serve.

    Ctrl-C ends every process.
    """
    console = output.console()
    say = partial(console.print, markup=False, soft_wrap=True)
    given_address = None if listen is None else _given_address("--listen", listen)
    given_http = _given_address("--http-listen", http_listen) if http_listen else ""
    # before the build, which takes a minute
    flags = {"--listen": given_address, "--http-listen": given_http}
    require_free(*((Address.parse(each), flag) for flag, each in flags.items() if each))
    labelled = read_questions(questions)
    bundle = default_bundle()
    wanted = _SHARDS if shards is None else shards
    if index is None:
        index = demo_index_directory(passages, bundle, wanted)
        _prepare(passages, index, wanted)
    elif not index.exists():
        _build(passages, index, wanted)
    elif shards is not None:
        _require_shards(index, shards)
    # not before the build, which takes a minute: another demo could take the ports meanwhile
    address = given_address or _default_address("--listen", _LISTEN, given_http, say)
    http = given_http
    if http_listen is None:
        http = _default_address("--http-listen", _HTTP, address, say)
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
            signals.run(cluster.wait_ready(say=say))
        wrong_predictions = signals.run(_predict(cluster, texts, console)) if texts else 0
        wrong = signals.run(_ask(cluster, labelled, console))
        right = len(labelled) - wrong
        console.print(f"{right} of {many(len(labelled), 'answer')} as expected")
        if once:
            raise typer.Exit(1 if wrong or wrong_predictions else 0)
        say("")
        for line in _suggestions(cluster, bool(texts)):
            say(line)
        say("\nserving until Ctrl-C")
        serve_until_stopped(ClusterSupervisor(cluster, RestartLimit(time.monotonic), say))
    say("stopped")


def _suggestions(cluster: LocalCluster, heads: bool) -> Iterator[str]:
    """Lines with commands and addresses to try."""
    requirements = FrontRequirements()
    if cluster.http:
        yield http_line(cluster.http, requirements)
    yield f"{'or ' if cluster.http else ''}ask {cluster.address} from another terminal:"
    if command := activation_command(on_path=shutil.which("winnow") is not None):
        yield command
    yield ask_lines(cluster.address, requirements, _QUESTION)
    if heads:
        yield predict_line(cluster.address, requirements, _TEXT, "intent,entities")


def demo_index_directory(passages: Path, bundle: Path, shards: int) -> Path:
    """The directory of the demo's index, named by a hash of passages, models and shards.

    Raises ArtefactError if the passages or the bundle cannot be read.
    """
    try:
        manifest = read_manifest(bundle)
        models = (manifest.encoding_fingerprint, manifest.lower_layers_fingerprint)
        parts = [*models, sha256(passages), str(shards)]
    except OSError as error:
        raise ArtefactError(f"cannot read {passages}: {error.strerror}") from error
    name = hashlib.sha256(" ".join(parts).encode()).hexdigest()[:16]
    return generated_directory() / f"demo-index-{name}"


def _prepare(passages: Path, index: Path, shards: int) -> None:
    """Builds the index, or only the precomputed states that an interrupted build lacks."""
    if not index.exists():
        _build(passages, index, shards)
    elif len(list(index.glob("*/states.json"))) < shards:
        _run(["states", str(index)])


def _build(passages: Path, index: Path, shards: int) -> None:
    try:
        index.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problem = f"cannot make {index.parent}: {error.strerror}"
        raise ArtefactError(f"{problem}; choose another directory with --index") from error
    options = ["--out", str(index), "--shards", str(shards), "--states"]
    _run(["build", "--passages", str(passages), *options])


def _require_shards(index: Path, wanted: int) -> None:
    """Raises BadParameter if an index that was built before has another number of shards."""
    present = len(shard_directories(index))
    if present != wanted:
        raise typer.BadParameter(
            f"{index} was built with {many(present, 'shard')}: omit --shards, or choose another "
            "directory with --index",
            param_hint="--shards",
        )


def _run(arguments: list[str]) -> None:
    if code := run_to_end(["index", *arguments]):
        raise typer.Exit(code)


def _given_address(flag: str, wanted: str) -> str:
    """The address that a flag gives, with a free port instead of port 0.

    Called before the index is built. Raises SettingsError if it is not an address, and
    UnavailableError if it is in use.
    """
    try:
        address = with_free_port(Address.parse(wanted))
    except ValueError as error:
        raise SettingsError(f"{flag}: {error}") from error
    require_free((address, flag))
    return str(address)


def _default_address(flag: str, default: str, other: str, say: Callable[[str], object]) -> str:
    """The address to listen on without a flag: `default`; any free port if that is taken.

    `other`: the other address of the demo, which may take it; empty for none.
    """
    others = [Address.parse(other)] if other else []
    free = str(with_fallback_port(Address.parse(default), *others))
    if free != default:
        say(f"{default} is taken: this demo listens on {free} instead ({flag} changes it)")
    return free


async def _ask(
    cluster: LocalCluster, questions: Sequence[LabelledQuestion], console: Console
) -> int:
    """Shows the answers to the demo questions; returns the number of wrong ones."""
    table = questions_table()
    async with AsyncClient(cluster.address) as client:
        with Live(table, console=console, vertical_overflow="visible"):
            wrong = await ask_questions(client, questions, table)
    if not console.is_terminal:
        console.line()  # `Live` ends its last line only on a terminal
    return wrong


async def _predict(cluster: LocalCluster, texts: Sequence[DemoText], console: Console) -> int:
    """Shows the predictions for the demo texts; returns the number of wrong ones."""
    async with AsyncClient(cluster.address) as client:
        predictions = [each async for each in predict_texts(client, texts)]
    wrong = sum(not each.right for each in predictions)
    console.print(predictions_table(predictions))
    right = len(predictions) - wrong
    console.print(f"{right} of {many(len(predictions), 'prediction')} as expected")
    return wrong
