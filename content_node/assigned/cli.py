"""`winnow shards init` and `winnow indexes create`: give the shards of a snapshot to nodes."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from winnow.address import Address
from winnow.assignment import AssignmentFile
from winnow.bundle import load_bundle
from winnow.catalog import CatalogFile
from winnow.cli.options import CatalogUrl
from winnow.content_node.snapshots.empty import empty_snapshot
from winnow.content_node.snapshots.stored_snapshots import find_snapshot
from winnow.domain.assignment import Assignment
from winnow.domain.catalog import Catalog, CatalogIndex
from winnow.domain.shard import MAX_SHARDS
from winnow.errors import UnavailableError
from winnow.packaged import default_bundle
from winnow.policy.spreading import spread
from winnow.quoting import many
from winnow.settings.values import parse_directory_or_url

_Nodes = Annotated[
    list[str],
    typer.Option(
        metavar="NAME=HOST:PORT",
        help="The --name and the --address of a node. Give it once for each node.",
    ),
]


def init(
    assignment: Annotated[
        str,
        typer.Option(
            envvar="WINNOW_ASSIGNMENT",
            help="File or URL of the assignment to create: the --assignment of the nodes.",
        ),
    ],
    snapshot: Annotated[
        str,
        typer.Option(
            parser=parse_directory_or_url,
            metavar="URL",
            help="Directory or URL of snapshots of the index: the --pull of the nodes.",
        ),
    ],
    node: _Nodes,
    replicas: Annotated[int, typer.Option(min=1, help="Number of nodes that hold each shard.")] = 1,
) -> None:
    """Assign the shards of a snapshot to nodes that have no shards yet.

    Example: winnow shards init --snapshot s3://bucket/index --node node-0=host-0:9000
    --node node-1=host-1:9000 --assignment s3://bucket/index/assignment.json

    The nodes restore the shards from their --pull. Start them before or after this command. An
    existing assignment is not changed. Then the command only checks that --node names its nodes.
    """
    nodes = _parse_nodes(node, replicas)
    file = AssignmentFile(assignment)
    if (stored := file.read()) is not None:
        _check_nodes(stored, nodes)
        typer.echo(f"assignment {stored.version} exists already and is not changed")
        return
    found = find_snapshot(snapshot).snapshot
    first = Assignment(
        index_id=found.index_id,
        shards=found.shards,
        version=1,
        nodes=nodes,
        holders=spread([part.shard for part in found.parts], nodes, replicas),
    )
    # another process may have created it meanwhile
    created = file.change(lambda before: first if before is None else before)
    _check_nodes(created, nodes)
    typer.echo(
        f"assignment {created.version}: {many(len(created.holders), 'shard')} on "
        f"{many(len(nodes), 'node')}"
    )


def create(
    name: Annotated[str, typer.Argument(help="Name of the new index.")],
    catalog: CatalogUrl,
    snapshot: Annotated[
        str,
        typer.Option(
            parser=parse_directory_or_url,
            metavar="URL",
            help="Directory or URL of snapshots of the index, from `winnow index snapshot`. The "
            "nodes restore the shards from it. With --empty, the command writes the snapshot.",
        ),
    ],
    node: _Nodes,
    replicas: Annotated[int, typer.Option(min=1, help="Number of nodes that hold each shard.")] = 1,
    empty: Annotated[
        bool,
        typer.Option("--empty", help="Create an index without passages, to feed it."),
    ] = False,
    shards: Annotated[
        int | None,
        typer.Option(
            min=1, max=MAX_SHARDS, help="With --empty: number of shards.", show_default="1"
        ),
    ] = None,
    tenants: Annotated[
        bool,
        typer.Option(
            "--tenants",
            help="With --empty: create an index with tenants. Each write and each question is of "
            "one tenant, which the key of its caller decides.",
        ),
    ] = False,
    bundle: Annotated[
        Path | None,
        typer.Option(
            help="Directory of the index's bundle on all nodes.", show_default="the nodes' --bundle"
        ),
    ] = None,
) -> None:
    """Add an index to a running cluster, from a snapshot. Nodes restore it, and fronts serve it.

    Example: winnow indexes create docs --snapshot s3://bucket/docs --node node-0=host-0:9000
    --indexes s3://bucket/indexes.json

    The catalog is created with its first index. The nodes need --indexes and --data. An index that
    is created with --empty gets its passages by `winnow feed`, so its nodes also need --feed.
    """
    nodes = _parse_nodes(node, replicas)
    file = CatalogFile(catalog)
    stored = file.read() or Catalog()
    with file.naming_refusals():
        stored.without_expired(time.time()).check_free(name)
    if shards is not None and not empty:
        raise typer.BadParameter("it needs --empty", param_hint="--shards")
    if tenants and not empty:
        raise typer.BadParameter(
            "it needs --empty: an index from a snapshot keeps what it has", param_hint="--tenants"
        )
    if empty:
        loaded = load_bundle(bundle or default_bundle())
        empty_snapshot(snapshot, loaded, shards or 1, tenants=tenants)
    found, now = find_snapshot(snapshot).snapshot, time.time()
    index = CatalogIndex(
        index_id=found.index_id,
        shards=found.shards,
        bundle="" if bundle is None else str(bundle.resolve()),
        snapshots=snapshot if "://" in snapshot else str(Path(snapshot).resolve()),
        holders=spread([part.shard for part in found.parts], nodes, replicas),
    )
    changed = file.change(
        lambda before: (before or Catalog()).without_expired(now).with_index(name, index, nodes)
    )
    typer.echo(
        f"catalog {changed.version}: index {name}, {many(len(index.holders), 'shard')} on "
        f"{many(len(nodes), 'node')}"
    )
    typer.echo("nodes and front nodes read the catalog and open the index within a few seconds")


def _parse_nodes(given: list[str], replicas: int) -> dict[str, str]:
    """Parses `NAME=HOST:PORT` to addresses by name.

    Raises BadParameter for other forms, and for fewer nodes than `replicas`.
    """
    nodes: dict[str, str] = {}
    for each in given:
        name, _, address = each.partition("=")
        try:
            parsed = str(Address.parse(address))
        except ValueError as error:
            raise typer.BadParameter(
                f"{each!r} is not NAME=HOST:PORT: {error}", param_hint="--node"
            ) from error
        if not name or name in nodes:
            problem = f"gives {name} twice" if name else "has no name"
            raise typer.BadParameter(f"{each!r} {problem}", param_hint="--node")
        nodes[name] = parsed
    if replicas > len(nodes):
        raise typer.BadParameter(
            f"{replicas} replicas need {replicas} nodes, but --node names {len(nodes)}",
            param_hint="--replicas",
        )
    return nodes


def _check_nodes(assignment: Assignment, nodes: Mapping[str, str]) -> None:
    """Raises UnavailableError if a shard is assigned to a node that --node does not name."""
    for shard, names in sorted(assignment.holders.items()):
        if others := sorted(set(names) - nodes.keys()):
            raise UnavailableError(
                f"shard {shard} is assigned to {others[0]}, which --node does not name: start that "
                "node, and move its shards away by `winnow shards spread --without`; if the node "
                "is lost, delete the assignment, and run this command again"
            )
