"""`winnow index snapshot`, `snapshots`, `restore` and `pull`."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from winnow.cli.output import AsJson, console, print_json
from winnow.content_node.snapshots.manifest import SnapshotShard
from winnow.content_node.snapshots.restoring import restore_if_missing, restore_snapshot
from winnow.content_node.snapshots.stored_snapshots import open_snapshots, read_snapshots
from winnow.content_node.snapshots.taking import take_snapshot
from winnow.quoting import shown
from winnow.settings.values import parse_directory_or_url
from winnow.telemetry.progress import StageProgress

_MB = 1e6
_SHOWN = 8
_SECONDS = len("2026-01-31T12:00:00")
"""Length of a time without fractions of a second, which only the name of a snapshot has."""
_Url = Annotated[
    str,
    typer.Argument(
        parser=parse_directory_or_url,
        metavar="URL",
        help="Directory of snapshots, or its fsspec URL, such as s3://bucket/index.",
    ),
]
_Source = Annotated[
    str,
    typer.Argument(
        parser=parse_directory_or_url,
        metavar="URL",
        help="Directory or URL of snapshots. Append a shard, such as /shard-00000-of-00003, to "
        "restore only that shard.",
    ),
]
_Name = Annotated[
    str, typer.Option("--snapshot", help="Name of the snapshot.", show_default="the newest")
]


def snapshot(
    index: Annotated[Path, typer.Argument(help="Directory of an index, or of one of its shards.")],
    url: _Url,
    as_json: AsJson = False,
) -> None:
    """Copy an index to a directory or URL, while it is served and takes writes.

    Each shard is copied as it was after one of its writes; the number of this write is shown. Files
    of earlier snapshots are not copied again. An interrupted command leaves no snapshot; run
    it again to resume.
    """
    with StageProgress() as progress:
        taken = take_snapshot(index, url, progress, partial(datetime.now, UTC))
    if as_json:
        print_json(taken)
    else:
        typer.echo(
            f"{shown(url)}: snapshot {taken.name}, {taken.size / _MB:,.1f} MB; "
            f"{_last_writes(taken.parts)}"
        )


def restore(
    url: _Source,
    directory: Annotated[Path, typer.Argument(help="Directory to restore to; must not exist.")],
    name: _Name = "",
) -> None:
    """Copy a snapshot of an index, or one shard of it, into a new directory.

    Every checksum is verified. The directory appears only when it is complete. Until then the work
    is in DIRECTORY.partial: run the same command again to resume an interrupted restore.
    """
    with StageProgress() as progress:
        restored = restore_snapshot(url, directory, progress, name)
    typer.echo(f"{directory}: snapshot {restored.snapshot.name}; {_last_writes(restored.parts)}")


def pull(
    url: _Source,
    directory: Annotated[Path, typer.Argument(help="Directory of the shard.")],
    name: _Name = "",
) -> None:
    """Restore a snapshot of a shard, unless the directory has the shard already.

    `winnow node --pull URL` does the same when it starts; use this command for a separate init
    step. An existing shard stays unchanged, with all its writes.
    """
    with StageProgress() as progress:
        pulled = restore_if_missing(url, directory, progress, name)
    if (restored := pulled.restored) is not None:
        typer.echo(
            f"{directory}: snapshot {restored.snapshot.name}; {_last_writes(restored.parts)}"
        )
    elif pulled.unreachable:
        typer.echo(f"{directory} has the shard already; it was not compared: {pulled.unreachable}")
    else:
        typer.echo(f"{directory} has the shard already")


def snapshots(url: _Url, as_json: AsJson = False) -> None:
    """List the snapshots at a directory or URL, the newest first."""
    found = list(read_snapshots(open_snapshots(url)))
    if as_json:
        print_json(found)
        return
    if not found:
        typer.echo(f"{shown(url)}: no snapshots")
        return
    table = Table("snapshot", "taken", "index", "shards", "last writes", "MB")
    for column in table.columns:
        column.overflow = "fold"
    table.columns[0].no_wrap = True  # the name is what --snapshot takes
    for each in found:
        held = f"{len(each.parts)} of {each.shards}"
        writes = _abbreviated_list(each.parts, lambda part: f"{part.sequence:,}")
        taken, size = each.taken[:_SECONDS], f"{each.size / _MB:,.1f}"
        table.add_row(each.name, taken, each.index_id, held, writes, size)
    console().print(table)


def _last_writes(parts: Sequence[SnapshotShard]) -> str:
    """Formats the last write of each shard."""
    return _abbreviated_list(parts, lambda part: f"shard {part.shard} at write {part.sequence:,}")


def _abbreviated_list(parts: Sequence[SnapshotShard], shown: Callable[[SnapshotShard], str]) -> str:
    """Formats the first parts; an ellipsis stands for the others."""
    rest = ["…"] if len(parts) > _SHOWN else []
    return ", ".join([*map(shown, parts[:_SHOWN]), *rest])
