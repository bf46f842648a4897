"""`winnow shards`, and its subcommands move, split and spread."""

import time
from collections.abc import Collection
from typing import Annotated

import typer

from winnow.address import DEFAULT_ADDRESS
from winnow.assignment import AssignmentFile
from winnow.catalog import IndexAssignmentFile
from winnow.cli.access import with_credentials
from winnow.cli.options import FrontAddress, Timeout, check_index_name
from winnow.cli.output import AsJson, console, print_json, table
from winnow.cli.shards.placed import PlacedShards
from winnow.cli.top.polling import ClusterPoller
from winnow.client import Credentials
from winnow.domain.assignment import Assignment
from winnow.domain.partition import halves_of
from winnow.errors import DeadlineExceededError, UnavailableError
from winnow.policy.spreading import spread as spread_shards
from winnow.quoting import are, many
from winnow.telemetry.progress import StageProgress
from winnow.v1.cluster_pb2 import GetClusterResponse

app = typer.Typer()
_INTERVAL = 1.0
"""Seconds between two polls while shards move."""
_URL_HELP = (
    "File or URL of the assignment, as in --assignment of the nodes. The first move creates it."
)
_Assignment = Annotated[
    str, typer.Option("--assignment", envvar="WINNOW_ASSIGNMENT", help=_URL_HELP)
]
_Index = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="NAME",
        help="Name of the index. Then --assignment is the catalog, as in --indexes of the nodes.",
        show_default="the default index",
        callback=check_index_name,
    ),
]
_Wait = Annotated[bool, typer.Option("--wait", help="Wait until all shards have moved.")]


@app.callback(invoke_without_command=True)
@with_credentials
def shards(
    context: typer.Context,
    address: FrontAddress = DEFAULT_ADDRESS,
    timeout: Timeout = 5.0,
    on: _Index = "",
    assignment: Annotated[
        str,
        typer.Option(
            "--assignment",
            envvar="WINNOW_ASSIGNMENT",
            help="File or URL of the assignment, as in --assignment of the nodes.",
            show_default="none",
        ),
    ] = "",
    as_json: AsJson = False,
    credentials: Credentials | None = None,
) -> None:
    """List the shards of a running cluster with their nodes. Subcommands move and split shards.

    Example: winnow shards --assignment s3://bucket/index/assignment.json

    If the front node requires keys, the key needs the scope admin. With --json, each shard on each
    node is an object with the keys shard, node, state, is_assigned, is_split, passages, sequence
    (number of the last write), lag and reason.
    """
    if context.invoked_subcommand is not None:
        return
    stored = _open_file(assignment, on).read() if assignment else None
    with ClusterPoller(address, [], timeout, credentials, index=on) as poller:
        rows = list(PlacedShards(poller.poll().cluster, stored).rows())
    if as_json:
        print_json(rows)
        return
    shown = table(
        ["shard", "node", "address", "state", "passages", "last write", "lag", "reason"],
        words={"node", "address", "state", "reason"},
    )
    for row in rows:
        leaves = row.shard is not None and not row.is_assigned
        change = "is split" if row.is_split else "moves away"
        state = f"{row.state}, {change}" if leaves else row.state
        figures = (f"{number:,}" for number in (row.passages, row.sequence, row.lag))
        number = "-" if row.shard is None else str(row.shard)
        shown.add_row(number, row.node, row.address, state, *figures, row.reason)
    console().print(shown)


@app.command()
@with_credentials
def move(
    shard: Annotated[int, typer.Argument(min=0, help="Number of the shard.")],
    to: Annotated[str, typer.Option("--to", help="Name of the node that gets the shard.")],
    assignment: _Assignment,
    from_: Annotated[
        str,
        typer.Option(
            "--from", help="Name of the node that holds the shard.", show_default="its only node"
        ),
    ] = "",
    address: FrontAddress = DEFAULT_ADDRESS,
    timeout: Timeout = 5.0,
    on: _Index = "",
    wait: _Wait = False,
    credentials: Credentials | None = None,
) -> None:
    """Move a shard to another node. The cluster answers questions and takes writes meanwhile.

    Example: winnow shards move 7 --to node-3 --assignment s3://bucket/index/assignment.json

    The node copies the shard, follows its writes and serves it. Then the old node deletes its copy.
    The nodes do this by themselves: Ctrl-C ends only the waiting.
    """
    with ClusterPoller(address, [], timeout, credentials, index=on) as poller:
        cluster = poller.poll().cluster

        def change(before: Assignment | None) -> Assignment:
            placement = PlacedShards(cluster, before)
            present = placement.present()
            path = placement.moving().get(shard)
            # moving the shard back to the node that still serves it cancels the move
            if path is not None and not placement.serves(to, shard):
                advice = (
                    "wait for it, or move it back" if shard in present.holders else "wait for it"
                )
                raise UnavailableError(f"shard {shard} is still moving ({path}): {advice}")
            return present.with_move(shard, from_, to, placement.nodes())

        changed = _open_file(assignment, on).change(change)
        typer.echo(f"assignment {changed.version}: shard {shard} moves to {to}")
        if wait:
            _wait_for_moves(poller, changed)


@app.command()
@with_credentials
def split(
    shard: Annotated[int, typer.Argument(min=0, help="Number of the shard.")],
    assignment: _Assignment,
    address: FrontAddress = DEFAULT_ADDRESS,
    timeout: Timeout = 5.0,
    on: _Index = "",
    wait: _Wait = False,
    credentials: Credentials | None = None,
) -> None:
    """Split a shard in two. The cluster answers questions and takes writes meanwhile.

    Example: winnow shards split 1 --assignment s3://bucket/index/assignment.json --wait

    The node of the shard writes both halves, without encoding passages again. The halves take over
    the writes of the shard, and then its questions. Then the node deletes the shard. The halves
    have new numbers, and you can move them to other nodes. A split cannot be undone.
    """
    with ClusterPoller(address, [], timeout, credentials, index=on) as poller:
        cluster = poller.poll().cluster

        def change(before: Assignment | None) -> Assignment:
            placement = PlacedShards(cluster, before)
            present = placement.present()
            if (state := placement.moving().get(shard)) is not None:
                raise UnavailableError(f"shard {shard} is still moving ({state}): wait for it")
            split = present.with_split(shard, placement.nodes())
            if not any(placement.serves(node, shard) for node in present.holders[shard]):
                raise UnavailableError(
                    f"no node serves shard {shard} now: see `winnow shards` for the reason"
                )
            return split

        changed = _open_file(assignment, on).change(change)
        halves = " and ".join(map(str, halves_of(shard, changed.shards)))
        typer.echo(f"assignment {changed.version}: shard {shard} is split into shards {halves}")
        if wait:
            _wait_for_moves(poller, changed)


@app.command()
@with_credentials
def spread(
    assignment: _Assignment,
    replicas: Annotated[
        int | None,
        typer.Option(min=1, help="Number of nodes that hold each shard.", show_default="as now"),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            help="Name of a node to move all shards away from, so that you can stop it. May be "
            "repeated.",
            show_default="none",
        ),
    ] = None,
    node: Annotated[
        list[str] | None,
        typer.Option(
            help="Name of a node that gets shards; the others get none. May be repeated. With "
            "--wait, the command first waits until these nodes run.",
            show_default="all running nodes",
        ),
    ] = None,
    address: FrontAddress = DEFAULT_ADDRESS,
    timeout: Timeout = 5.0,
    on: _Index = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the moves, and change nothing.")
    ] = False,
    wait: _Wait = False,
    credentials: Credentials | None = None,
) -> None:
    """Spread the shards evenly over the running nodes, with as few moves as possible.

    Example: winnow shards spread --assignment s3://bucket/index/assignment.json --wait

    Run this command after you have added nodes. Before you stop nodes, run it with --without for
    each of them.
    """
    named = set(node or ())
    with ClusterPoller(address, [], timeout, credentials, index=on) as poller:
        cluster = _poll_until_served(poller, named) if named and wait else poller.poll().cluster
        moves: dict[int, str] = {}

        def change(before: Assignment | None) -> Assignment:
            placement = PlacedShards(cluster, before)
            spread = _spread_assignment(placement, replicas, set(without or ()), named)
            for number, old in placement.present().holders.items():
                if set(spread.holders[number]) != set(old):
                    moves[number] = f"{', '.join(old)} -> {', '.join(spread.holders[number])}"
            return spread

        file = _open_file(assignment, on)
        stored = file.read()
        if wait and stored is not None and PlacedShards(cluster, stored).moving():
            _wait_for_moves(poller, stored)  # an earlier command
            cluster = _poll_until_served(poller, named)
        if dry_run:
            change(stored)
            changed = None
        else:
            changed = file.change(change)
        for number, path in sorted(moves.items()):
            typer.echo(f"shard {number}: {path}")
        version = f"assignment {changed.version}: " if changed else ""
        typer.echo(f"{version}{many(len(moves), 'shard')} to move")
        if wait and changed is not None:
            _wait_for_moves(poller, changed)


def _open_file(url: str, index: str) -> AssignmentFile | IndexAssignmentFile:
    """Returns the assignment at a URL, or that of a named index in the catalog at the URL."""
    return IndexAssignmentFile(url, index) if index else AssignmentFile(url)


def _spread_assignment(
    placement: PlacedShards, replicas: int | None, without: set[str], named: set[str]
) -> Assignment:
    """Spreads the shards over the running nodes except `without`; returns the next assignment.

    If `named` is not empty, only these nodes get shards. Raises UnavailableError if shards are
    still moving, a named node does not run, or there are too few nodes.
    """
    present, nodes = placement.present(), placement.nodes()
    running = ", ".join(nodes)
    if still := placement.moving():
        numbers = ", ".join(map(str, still))
        raise UnavailableError(
            f"shards {numbers} are still moving: wait for them, for example with --wait"
        )
    if unknown := without - nodes.keys() - present.nodes.keys():
        raise UnavailableError(
            f"--without: there is no node {min(unknown)}; running nodes: {running}"
        )
    if absent := named - nodes.keys():
        raise UnavailableError(f"--node: {min(absent)} does not run; running nodes: {running}")
    remaining = (named or nodes.keys()) - without
    if not remaining:
        raise UnavailableError("no node would remain: start another one first")
    if replicas is not None and replicas > len(remaining):
        available = ", ".join(sorted(remaining))
        raise UnavailableError(
            f"--replicas {replicas} needs {replicas} nodes; only these may get shards: {available}"
        )
    most = replicas or max(map(len, present.holders.values()))
    holders = spread_shards(present.holders.keys(), remaining, most, present.holders)
    # a node that will be stopped stays in the assignment while other nodes copy shards from it
    listed = remaining | {name for names in present.holders.values() for name in names}
    return present.changed(
        holders, {name: address for name, address in nodes.items() if name in listed}
    )


def _poll_until_served(poller: ClusterPoller, names: Collection[str] = ()) -> GetClusterResponse:
    """Polls the cluster until the front node serves, and all nodes with these names run.

    Shows why it waits.
    """
    shown = ""
    while True:
        try:
            cluster = poller.poll().cluster
        except (UnavailableError, DeadlineExceededError) as error:
            reason = f"waiting for the front node: {error}"
        else:
            absent = sorted(set(names) - PlacedShards(cluster, None).nodes().keys())
            if cluster.index_id and not absent:
                return cluster
            reason = f"waiting for nodes: {', '.join(absent)}"
            if not cluster.index_id:
                reason = "waiting for the front node: it serves no index yet"
        if reason != shown:
            typer.echo(reason, err=True)
            shown = reason
        time.sleep(_INTERVAL)


def _wait_for_moves(poller: ClusterPoller, assignment: Assignment) -> None:
    """Waits until each node serves its assigned shards. Prints each new reason for a delay."""
    shown: set[str] = set()
    typer.echo(
        "waiting for moves: Ctrl-C ends only this command, and the nodes continue; `winnow shards` "
        "shows them",
        err=True,
    )
    with StageProgress() as progress:
        placement = PlacedShards(_poll_until_served(poller), assignment)
        left = len(placement.moving())
        progress.start("moving shards", left)
        while left:
            for row in placement.rows():
                line = f"shard {row.shard} on {row.node}: {row.reason}"
                if row.shard is None:
                    line = f"node {row.node}: {row.reason}"
                is_new = (row.is_assigned or row.shard is None) and line not in shown
                if is_new and row.reason:
                    shown.add(line)
                    progress.say(line)
            time.sleep(_INTERVAL)
            placement = PlacedShards(_poll_until_served(poller), assignment)
            now = len(placement.moving())
            progress.advance(max(left - now, 0))
            left = now
    typer.echo(
        f"{are(len(assignment.holders), 'shard')} on the nodes of assignment {assignment.version}"
    )
