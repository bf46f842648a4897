"""`winnow tenants`: list, usage, export, delete."""

from pathlib import Path
from typing import Annotated

import typer

from winnow.address import DEFAULT_ADDRESS
from winnow.cli.access import with_credentials
from winnow.cli.options import FrontAddress, NamedIndex, Timeout
from winnow.cli.output import AsJson, console, print_json, printable, table
from winnow.cli.passages.exporting import STANDARD_OUTPUT, export, opened_for_writing, pause
from winnow.cli.passages.place import run_at
from winnow.cli.retrying import RetryMessages, with_retries
from winnow.client import Credentials, DeletedTenant, StoredTenant
from winnow.client.aio import AsyncClientApi
from winnow.client.feeding import DEFAULT_FEED_ADDRESS
from winnow.errors import RestoreFailedError, RestoringError
from winnow.quoting import many, were

app = typer.Typer(no_args_is_help=True)
_Tenant = Annotated[str, typer.Argument(metavar="TENANT", help="Name of the tenant.")]


@app.command("list")
@with_credentials
def list_(
    address: FrontAddress = DEFAULT_ADDRESS,
    on: NamedIndex = "",
    as_json: AsJson = False,
    timeout: Timeout = 30.0,
    credentials: Credentials | None = None,
) -> None:
    """List the tenants of an index that have passages, by name.

    With keys, the key needs the scope admin. With --json, a list of objects is printed, with the
    keys name and passages.
    """

    async def work(api: AsyncClientApi) -> list[StoredTenant]:
        return [each async for each in api.list_tenants(timeout=timeout)]

    found = run_at(address, None, credentials, work, on=on)
    if as_json:
        print_json(found)
        return
    rows = ([printable(each.name), f"{each.passages:,}"] for each in found)
    console().print(table(["tenant", "passages"], rows))


@app.command()
@with_credentials
def usage(
    tenant: _Tenant,
    address: FrontAddress = DEFAULT_ADDRESS,
    on: NamedIndex = "",
    as_json: AsJson = False,
    timeout: Timeout = 30.0,
    credentials: Credentials | None = None,
) -> None:
    """Show how many passages a tenant has, and their bytes, and its quota of both.

    Example: winnow tenants usage acme

    An unknown tenant has no passages. With --json, an object is printed, with the keys passages,
    max_passages, bytes and max_bytes. A maximum is null without a limit.
    """
    use = run_at(
        address,
        None,
        credentials,
        lambda api: api.tenant_usage(tenant, timeout=timeout),
        on=on,
    )
    used, quota = use.used, use.quota
    if as_json:
        limits = {"max_passages": quota.passages, "max_bytes": quota.bytes}
        print_json({"passages": used.passages, "bytes": used.bytes, **limits})
        return
    passages = f"{many(used.passages, 'passage')}{_of_limit(quota.passages)}"
    typer.echo(f"{passages}, {many(used.bytes, 'byte')}{_of_limit(quota.bytes)}")


@app.command("export")
@with_credentials
def export_(
    tenant: _Tenant,
    file: Annotated[
        Path, typer.Argument(help="File to write; - for standard output.")
    ] = STANDARD_OUTPUT,
    address: FrontAddress = DEFAULT_ADDRESS,
    on: NamedIndex = "",
    timeout: Timeout = 30.0,
    credentials: Credentials | None = None,
) -> None:
    """Write the passages of a tenant as JSON lines with the field tenant.

    Example: winnow tenants export acme acme.jsonl

    `winnow feed acme.jsonl --tenant acme` stores them again, and `winnow index build --tenants`
    reads them. Questions are answered and passages are written meanwhile. A passage that stays in
    the index is exported exactly once. A page that fails is requested again.
    """

    async def work(api: AsyncClientApi) -> int:
        with opened_for_writing(file) as opened:
            on_retry = RetryMessages().show
            return await export(api, opened, None, timeout, pause, tenant=tenant, on_retry=on_retry)

    count = run_at(address, None, credentials, work, on=on, tenant=tenant)
    typer.echo(f"{were(count, 'passage')} exported", err=True)


@app.command()
@with_credentials
def delete(
    tenant: _Tenant,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count the passages.")] = False,
    address: FrontAddress = DEFAULT_FEED_ADDRESS,
    on: NamedIndex = "",
    as_json: AsJson = False,
    timeout: Timeout = 60.0,
    credentials: Credentials | None = None,
) -> None:
    """Delete all passages of a tenant.

    Example: winnow tenants delete acme --dry-run

    When the command ends, no question finds them. The next merge of their shard removes them from
    its disk. Passages that are stored later stay, so remove the keys of the tenant first. Snapshots
    and journals keep what they have. It is safe to repeat an interrupted deletion. If an archived
    shard cannot be restored now, the command tells why, and tries again until --timeout.

    The address is that of a front node's --feed-listen. With keys, the key needs the scopes feed
    and admin. With --json, an object is printed, with the keys passages and positions.
    """
    if dry_run:
        count = run_at(
            address,
            None,
            credentials,
            lambda api: api.count_passages(timeout=timeout),
            on=on,
            tenant=tenant,
        )
        if as_json:
            print_json({"passages": count, "positions": []})
        else:
            typer.echo(f"{many(count, 'passage')} would be deleted")
        return
    done = run_at(
        address, None, credentials, lambda api: _delete_in_time(api, tenant, timeout), on=on
    )
    if as_json:
        print_json(done)
    else:
        typer.echo(f"{were(done.passages, 'passage')} deleted")


async def _delete_in_time(api: AsyncClientApi, tenant: str, timeout: float) -> DeletedTenant:
    """Deletes a tenant. Tries for `timeout` seconds, if an archived shard cannot be restored."""
    return await with_retries(
        lambda limit: api.delete_tenant(tenant, timeout=min(timeout, limit)),
        patience=timeout,
        on_retry=RetryMessages().show,
        kinds=(RestoringError, RestoreFailedError),
    )


def _of_limit(limit: int | None) -> str:
    return "" if limit is None else f" of at most {limit:,}"
