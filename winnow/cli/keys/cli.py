"""`winnow keys new`, `list`, `remove`."""

from pathlib import Path
from typing import Annotated

import typer

from winnow.cli.keys.changing import add_key, remove_key
from winnow.cli.output import AsJson, console, print_json, table
from winnow.keys.file import read_keys
from winnow.keys.key import Scope
from winnow.policy.rates import Rate

app = typer.Typer(no_args_is_help=True)

KeyFile = Annotated[Path, typer.Option("--file", help="File of keys, as in --keys of front nodes.")]
DEFAULT_FILE = Path("keys.json")


@app.callback()
def keys() -> None:
    """Make, list and remove the keys that callers of a front node must have."""


@app.command()
def new(
    name: Annotated[
        str, typer.Argument(help="Name of the owner: 1 to 64 letters, digits or ._:@-")
    ],
    scope: Annotated[
        list[Scope],
        typer.Option(
            help="What the key allows: ask, predict, read, feed, or admin (see the cluster). May "
            "be repeated."
        ),
    ],
    file: KeyFile = DEFAULT_FILE,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0, help="Maximum average rate, in calls per second.", show_default="no limit"
        ),
    ] = None,
    burst: Annotated[
        float | None,
        typer.Option(
            min=1,
            help="Maximum number of calls at once after an idle time.",
            show_default="the calls of one second",
        ),
    ] = None,
    tenant: Annotated[
        str | None,
        typer.Option(
            metavar="TENANT",
            help="Tenant of all calls with the key, in indexes with tenants. Such a key cannot "
            "have the scope admin, and cannot use indexes without tenants.",
            show_default="none",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            help="New file for the token, which only you can read. An existing file is never "
            "overwritten.",
            show_default="print the token",
        ),
    ] = None,
) -> None:
    """Make a key. Its token is written to --out or printed, and cannot be shown again.

    Example: winnow keys new alice --scope ask --rate 10 --out alice.token

    Standard output gets only the token. Do not redirect it to a file: the shell empties that file
    even if no key is made. Use --out instead.

    Clients send the token as `authorization: Bearer TOKEN`. The file of keys stores only its hash.
    Front nodes with this file as --keys accept the key within two seconds.
    """
    if burst is not None and rate is None:
        raise typer.BadParameter("--burst needs --rate", param_hint="--burst")
    if tenant == "":
        raise typer.BadParameter(
            "the name is empty: leave the option out for a key of no tenant",
            param_hint="--tenant",
        )
    limit = None if rate is None else Rate(rate, burst or max(rate, 1.0))
    token = add_key(file, name, scope, limit, out, tenant=tenant or "")
    if out is None:
        typer.echo(f"added key {name} to {file}; this is its token, shown only once:", err=True)
        typer.echo(token)
    else:
        typer.echo(f"added key {name} to {file}; its token is in {out}", err=True)


@app.command("list")
def list_(file: KeyFile = DEFAULT_FILE, as_json: AsJson = False) -> None:
    """List the keys of a file, without their tokens."""
    keys = [
        {
            "name": key.name,
            "id": key.id,
            "scopes": sorted(each.value for each in key.scopes),
            "rate": key.rate.per_second if key.rate else None,
            "burst": key.rate.burst if key.rate else None,
            "created": key.created,
            "tenant": key.tenant or None,
        }
        for key in read_keys(file)
    ]
    if as_json:
        print_json(keys)
        return
    columns = ["name", "id", "scopes", "rate", "burst", "created"]
    if any(key["tenant"] for key in keys):
        columns.append("tenant")
    rows = [[_format_cell(key[name]) for name in columns] for key in keys]
    console().print(table(columns, rows, words={"id", "scopes", "created", "tenant"}))


def _format_cell(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


@app.command()
def remove(
    name: Annotated[str, typer.Argument(help="Name of the owner.")], file: KeyFile = DEFAULT_FILE
) -> None:
    """Revoke a key. Front nodes refuse the key within two seconds, and end streams that use it."""
    remove_key(file, name)
    typer.echo(f"removed key {name} from {file}", err=True)
