"""`winnow heads`: list, publish, pin, unpin, rollback, verify."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from winnow.cli.heads.inspecting import ListedHead, list_heads, verify_heads
from winnow.cli.output import AsJson, console, print_json, table
from winnow.errors import ArtefactError
from winnow.heads.artefact import load_head
from winnow.heads.manifest import FILE
from winnow.heads.store import HeadRecord, HeadStore, open_store
from winnow.heads.store.records import CURRENT
from winnow.quoting import many
from winnow.settings.values import parse_directory_or_url

app = typer.Typer(no_args_is_help=True)

_StoreArgument = Annotated[
    str,
    typer.Argument(
        parser=parse_directory_or_url,
        metavar="STORE",
        help="Directory or URL (s3://..., gs://...) of the heads.",
    ),
]
_StoreOption = Annotated[
    str,
    typer.Option(
        "--store",
        parser=parse_directory_or_url,
        metavar="STORE",
        help="Directory or URL (s3://..., gs://...) of the heads.",
    ),
]
_Head = Annotated[str, typer.Argument(metavar="HEAD", help="Id of the head.")]
_ACCURACIES = ("entity_f1", "accuracy", "f1")
"""Metrics in percent; the first one that a head has is shown."""


@app.command("list")
def list_(url: _StoreArgument, as_json: AsJson = False) -> None:
    """Show the heads of a store: versions, labels, size and accuracy."""
    store = open_store(url)
    heads, encoder = list_heads(store), store.encoder()
    if as_json:
        print_json({"store": store.name, "encoder": encoder, "heads": heads})
        return
    if encoder is None and (Path(url) / FILE).is_file():
        raise ArtefactError(
            f"{url} is a head, not a store of heads: name the store that has it, or publish it "
            f"with `winnow heads publish {url} --store STORE`"
        )
    if encoder is None and (Path(url) / CURRENT).is_file():
        raise ArtefactError(f"{url} is one head of a store: name the store, {Path(url).parent}")
    if encoder is None:
        advice = f"publish one with `winnow heads publish DIR --store {url}`"
        typer.echo(f"{store.name} holds no heads yet: {advice}")
        return
    typer.echo(f"{many(len(heads), 'head')} of encoder {encoder.name} ({encoder.fingerprint})")
    columns = ("head", "version", "versions", "kind", "labels", "kB", "measured", "notes")
    words = ("versions", "kind", "measured", "notes")
    console().print(table(columns, map(_row, heads), words=words))


def _row(head: ListedHead) -> tuple[str, ...]:
    metric = next((name for name in _ACCURACIES if name in head.accuracy), "")
    metric = metric or next(iter(head.accuracy), "")
    notes = [head.fault] if head.fault else []
    notes += ["pinned"] if head.pinned else []
    notes += [f"moved to encoder group {head.moved_to}"] if head.moved_to else []
    return (
        head.id,
        str(head.version or "-"),
        " ".join(map(str, head.versions)),
        head.kind,
        f"{head.labels:,}",
        f"{head.bytes / 1e3:,.0f}",
        f"{metric} {head.accuracy[metric]:.1f}" if metric else "",
        "; ".join(notes),
    )


@app.command()
def publish(
    directory: Annotated[Path, typer.Argument(help="Directory of the head: head.json, head.onnx.")],
    store: _StoreOption,
    later: Annotated[
        bool,
        typer.Option(
            "--later", help="Store this version, but serve it only after `winnow heads rollback`."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a head, copy it into a store, and serve it.

    Running servers switch to it within seconds. The previous version stays in the store.
    """
    opened = open_store(store)
    current = opened.publish(directory, activate=not later)
    manifest = load_head(directory).manifest
    if later and not as_json:
        typer.echo(f"{manifest.id} version {manifest.version} is in {opened.name}, not served yet")
        return
    _print_current(opened, manifest.id, current, as_json)


@app.command()
def pin(head: _Head, store: _StoreOption, as_json: AsJson = False) -> None:
    """Keep a head in memory on every server that has loaded it."""
    opened = open_store(store)
    _print_current(opened, head, opened.pin(head, True), as_json)


@app.command()
def unpin(head: _Head, store: _StoreOption, as_json: AsJson = False) -> None:
    """Let servers evict a head from memory again when other heads need the space."""
    opened = open_store(store)
    _print_current(opened, head, opened.pin(head, False), as_json)


@app.command()
def rollback(
    head: _Head,
    store: _StoreOption,
    version: Annotated[
        int | None,
        typer.Option(min=1, help="Version to serve.", show_default="the one served before"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Serve another stored version of a head."""
    opened = open_store(store)
    _print_current(opened, head, opened.rollback(head, version), as_json)


@app.command()
def verify(
    store: _StoreOption,
    head: Annotated[
        str | None,
        typer.Argument(metavar="[HEAD]", help="Id of a head.", show_default="all heads"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Open and run every version of every head; exit 1 if one does not work."""
    with tempfile.TemporaryDirectory() as cache:  # an empty cache, so that the store is read
        opened = open_store(store, Path(cache))
        verified = list(verify_heads(opened, [head] if head else opened.ids()))
    bad = [each for each in verified if each.fault]
    if as_json:
        print_json({"ok": not bad, "versions": verified})
    else:
        for each in bad:
            typer.echo(f"head {each.id} version {each.version or 'unknown'}: {each.fault}")
        heads = many(len({each.id for each in verified}), "head")
        good = len(verified) - len(bad)
        typer.echo(f"{good} of {many(len(verified), 'version')} of {heads} good")
    raise typer.Exit(1 if bad else 0)


def _print_current(store: HeadStore, head: str, current: HeadRecord, as_json: bool) -> None:
    if as_json:
        print_json({"id": head, **current.model_dump(mode="json")})
        return
    previous = f", previously version {current.previous}" if current.previous else ""
    pinned = "; pinned" if current.pinned else ""
    moved = f"; encoder group {current.moved_to} serves this head now" if current.moved_to else ""
    typer.echo(f"{head}: version {current.version} of {store.name}{previous}{pinned}{moved}")
