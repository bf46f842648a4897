"""`winnow quotas set`, `list`, `remove`."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from winnow.cli.output import AsJson, console, print_json, table
from winnow.domain.quota import NO_QUOTA, QuotaLimit, Quotas, TenantQuota
from winnow.domain.tenant import tenant_problem
from winnow.errors import WinnowError
from winnow.files.lock import locked_directory
from winnow.quotas.file import read_quotas, write_quotas
from winnow.quoting import quoted

app = typer.Typer(no_args_is_help=True)

QuotaFile = Annotated[
    Path, typer.Option("--file", help="File of quotas, as in --quotas of front nodes.")
]
DEFAULT_FILE = Path("quotas.json")
_DEFAULT_NAME = "(default)"


@app.callback()
def quotas() -> None:
    """Set, list and remove the quotas of tenants."""


@app.command("set")
def set_(
    tenant: Annotated[
        str | None,
        typer.Argument(help="Name of the tenant.", show_default="all tenants without a quota"),
    ] = None,
    passages: Annotated[
        int | None,
        typer.Option(min=0, help="Maximum number of stored passages.", show_default="no limit"),
    ] = None,
    bytes_: Annotated[
        int | None,
        typer.Option(
            "--bytes",
            min=0,
            help="Maximum size of stored titles, texts and metadata, in bytes of UTF-8.",
            show_default="no limit",
        ),
    ] = None,
    questions: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Maximum average rate of questions at each front node, per second.",
            show_default="no limit",
        ),
    ] = None,
    writes: Annotated[
        float | None,
        typer.Option(
            min=0,
            help="Maximum average rate of stored and deleted passages at each front node, per "
            "second.",
            show_default="no limit",
        ),
    ] = None,
    file: QuotaFile = DEFAULT_FILE,
    as_json: AsJson = False,
) -> None:
    """Set the quota of a tenant, or without TENANT the quota of all tenants that have none.

    Example: winnow quotas set acme --passages 50000 --questions 10

    Replaces an earlier quota of the tenant. A limit that is left out is no limit. Front nodes with
    this file as --quotas follow it within two seconds. With --json, the quota is printed as by
    `winnow quotas list`.
    """
    try:
        quota = TenantQuota(
            passages=passages,
            bytes=bytes_,
            questions_per_second=questions,
            writes_per_second=writes,
        )
        with locked_directory(file):
            before = read_quotas(file) if file.exists() else Quotas()
            if tenant is None:
                after = replace(before, default=quota)
            else:
                after = replace(before, by_tenant={**before.by_tenant, tenant: quota})
            write_quotas(file, after)
    except ValueError as error:
        raise WinnowError(str(error)) from error
    if as_json:
        print_json(_row(tenant or "", quota))
    else:
        typer.echo(f"set the quota of {_owner(tenant)} in {file}: {_describe(quota)}")


@app.command("list")
def list_(file: QuotaFile = DEFAULT_FILE, as_json: AsJson = False) -> None:
    """List the quotas of a file. The first one applies to tenants without their own quota."""
    stored = read_quotas(file)
    names = [limit.value for limit in QuotaLimit]
    quotas_of = [("", stored.default), *stored.by_tenant.items()]
    rows = [_row(tenant, quota) for tenant, quota in quotas_of]
    if as_json:
        print_json(rows)
        return
    cells = [
        [str(row["tenant"] or _DEFAULT_NAME), *(_format_limit(row[name]) for name in names)]
        for row in rows
    ]
    console().print(table(["tenant", *names], cells, words={"tenant"}))


@app.command()
def remove(
    tenant: Annotated[
        str | None,
        typer.Argument(help="Name of the tenant.", show_default="the quota of all other tenants"),
    ] = None,
    file: QuotaFile = DEFAULT_FILE,
) -> None:
    """Remove the quota of a tenant. Afterwards it has the quota of tenants without their own."""
    with locked_directory(file):
        stored = read_quotas(file)
        if tenant is None:
            write_quotas(file, replace(stored, default=NO_QUOTA))
        elif problem := tenant_problem(tenant):
            raise WinnowError(f"tenant {problem}")
        elif tenant not in stored.by_tenant:
            raise WinnowError(
                f"there is no quota of {quoted(tenant)} in {file}: see `winnow quotas list`"
            )
        else:
            others = {name: each for name, each in stored.by_tenant.items() if name != tenant}
            write_quotas(file, replace(stored, by_tenant=others))
    typer.echo(f"removed the quota of {_owner(tenant)} from {file}")


def _row(tenant: str, quota: TenantQuota) -> dict[str, object]:
    return {"tenant": tenant, **{limit.value: getattr(quota, limit.value) for limit in QuotaLimit}}


def _owner(tenant: str | None) -> str:
    return "all tenants without their own" if tenant is None else f"tenant {tenant}"


def _describe(quota: TenantQuota) -> str:
    """Formats a quota for people: `50,000 passages, 2.5 questions per second`."""
    limits = quota.limits()
    return ", ".join(_phrase(limit, limits[limit]) for limit in limits) or "no limits"


def _phrase(limit: QuotaLimit, value: float) -> str:
    noun = limit.value.replace("_", " ")
    return f"{value:,g} {noun}" if isinstance(value, float) else f"{value:,} {noun}"


def _format_limit(value: object) -> str:
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
