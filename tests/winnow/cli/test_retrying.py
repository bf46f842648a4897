"""Requests of commands that are repeated, and what standard error tells of it."""

from typing import Any, cast

import pytest
from tenacious import LONG
from virtual_loop import in_virtual_time

from winnow.cli.tenants.cli import _delete_in_time
from winnow.client import DeletedTenant
from winnow.client.aio import AsyncClientApi
from winnow.errors import ArchiveUnreachableError, RestoringError, UnavailableError, WinnowError


class Tenants:
    """A client whose deletions fail at first."""

    def __init__(self, *failures: WinnowError) -> None:
        self.failures = list(failures)

    async def delete_tenant(self, tenant: str, **_: Any) -> DeletedTenant:
        if self.failures:
            raise self.failures.pop(0)
        return DeletedTenant(passages=3)

    async def delete(self) -> DeletedTenant:
        return await _delete_in_time(cast(AsyncClientApi, self), "acme", 600.0)


@in_virtual_time
async def test_a_deletion_is_repeated_while_an_archive_fails_and_says_why_at_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # the process may stand still between two failures
    monkeypatch.setattr("winnow.cli.retrying._MESSAGE_INTERVAL", LONG)
    away = ArchiveUnreachableError("the archive cannot be reached now: try again")
    tenants = Tenants(away, away, RestoringError("the shard is being restored"))
    assert (await tenants.delete()).passages == 3
    assert capsys.readouterr().err == f"trying again: {away}\n"
    with pytest.raises(UnavailableError, match="no front"):
        await Tenants(UnavailableError("no front")).delete()
