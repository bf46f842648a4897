"""`winnow heads`: list, publish, pin, unpin, rollback, verify."""

import json
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from winnow.cli.heads.listing import as_json as listing_as_json
from winnow.cli.heads.listing import listed, table
from winnow.cli.heads.verifying import verified
from winnow.errors import ArtefactError
from winnow.heads.artefact import load_head
from winnow.heads.manifest import FILE
from winnow.heads.store import Current, HeadStore, open_store
from winnow.heads.store.records import CURRENT
from winnow.quoting import many
from winnow.settings.values import place_url

app = typer.Typer(no_args_is_help=True)

_Place = Annotated[
    str,
    typer.Argument(
        parser=place_url,
        metavar="STORE",
        help="Directory or URL (s3://..., gs://...) of the heads.",
    ),
]
_Store = Annotated[
    str,
    typer.Option(
        "--store",
        parser=place_url,
        metavar="STORE",
        help="Directory or URL (s3://..., gs://...) of the heads.",
    ),
]
_Head = Annotated[str, typer.Argument(metavar="HEAD", help="Id of the head.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_(place: _Place, as_json: _Json = False) -> None:
    """Show the heads of a store: versions, labels, size and accuracy."""
    store = open_store(place)
    heads = listed(store)
    if as_json:
        typer.echo(json.dumps(listing_as_json(store, heads), indent=2))
        return
    encoder = store.encoder()
    if encoder is None and (Path(place) / FILE).is_file():
        raise ArtefactError(
            f"{place} is a head and no store of heads: name the store that it was published into, "
            f"or publish it with `winnow heads publish {place} --store STORE`"
        )
    if encoder is None and (Path(place) / CURRENT).is_file():
        raise ArtefactError(f"{place} is one head of a store: name the store, {Path(place).parent}")
    if encoder is None:
        typer.echo(f"{store.name} holds no heads yet: winnow heads publish DIR --store {place}")
        return
    console = Console(highlight=False)
    console.print(f"{many(len(heads), 'head')} of encoder {encoder.name} ({encoder.fingerprint})")
    console.print(table(heads))


@app.command()
def publish(
    directory: Annotated[Path, typer.Argument(help="Directory of the head: head.json, head.onnx.")],
    store: _Store,
    later: Annotated[
        bool, typer.Option("--later", help="Only store this version; serve it by rollback later.")
    ] = False,
    as_json: _Json = False,
) -> None:
    """Try out a head, copy it into a store, and serve it from now on.

    Running servers switch to it within seconds. The version before stays in the store.
    """
    opened = open_store(store)
    current = opened.publish(directory, activate=not later)
    manifest = load_head(directory).manifest
    if later and not as_json:
        typer.echo(f"{manifest.id} version {manifest.version} is in {opened.name}, not served yet")
        return
    _say(opened, manifest.id, current, as_json)


@app.command()
def pin(head: _Head, store: _Store, as_json: _Json = False) -> None:
    """Keep a head in memory on every server that has loaded it."""
    opened = open_store(store)
    _say(opened, head, opened.pin(head, True), as_json)


@app.command()
def unpin(head: _Head, store: _Store, as_json: _Json = False) -> None:
    """Let a head leave memory again when others need the room."""
    opened = open_store(store)
    _say(opened, head, opened.pin(head, False), as_json)


@app.command()
def rollback(
    head: _Head,
    store: _Store,
    version: Annotated[
        int | None,
        typer.Option(min=1, help="Version to serve.", show_default="the one served before"),
    ] = None,
    as_json: _Json = False,
) -> None:
    """Serve another version of a head that is in the store already."""
    opened = open_store(store)
    _say(opened, head, opened.rollback(head, version), as_json)


@app.command()
def verify(
    store: _Store,
    head: Annotated[
        str | None,
        typer.Argument(metavar="[HEAD]", help="Id of a head.", show_default="all heads"),
    ] = None,
    as_json: _Json = False,
) -> None:
    """Open and run every version of every head; exit 1 if one does not work."""
    with tempfile.TemporaryDirectory() as cache:  # what is in the store counts, not what was
        opened = open_store(store, Path(cache))
        tried = list(verified(opened, [head] if head else opened.ids()))
    bad = [each for each in tried if each.fault]
    if as_json:
        rows = [
            {"id": e.id, "version": e.version, "served": e.served, "fault": e.fault} for e in tried
        ]
        typer.echo(json.dumps({"ok": not bad, "versions": rows}, indent=2))
    else:
        for each in bad:
            typer.echo(f"head {each.id} version {each.version or 'unknown'}: {each.fault}")
        heads = many(len({each.id for each in tried}), "head")
        typer.echo(f"{len(tried) - len(bad)} of {many(len(tried), 'version')} of {heads} good")
    raise typer.Exit(1 if bad else 0)


def _say(store: HeadStore, head: str, current: Current, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"id": head, **current.model_dump()}, indent=2))
        return
    before = f", before it version {current.previous}" if current.previous else ""
    pinned = "; it is pinned" if current.pinned else ""
    moved = f"; ring {current.moved_to} serves this head now" if current.moved_to else ""
    typer.echo(f"{head}: version {current.version} of {store.name}{before}{pinned}{moved}")
