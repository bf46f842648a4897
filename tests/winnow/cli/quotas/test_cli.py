"""`winnow quotas`: a file of quotas made and changed at a keyboard."""

import json
from pathlib import Path

import pytest

from winnow.__main__ import main
from winnow.domain.quota import Quotas, TenantQuota
from winnow.quotas.file import QuotaFileError, open_quota_file, read_quotas


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "quotas.json"


def run(capsys: pytest.CaptureFixture[str], file: Path, *arguments: str) -> tuple[int, str, str]:
    """The exit code, stdout and stderr of `winnow quotas …`."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main(["quotas", *arguments, "--file", str(file)])
    shown = capsys.readouterr()
    return int(ended.value.code or 0), shown.out, shown.err


def test_quotas_are_set_listed_and_removed(capsys: pytest.CaptureFixture[str], file: Path) -> None:
    assert run(capsys, file, "set", "--passages", "1000")[:2] == (
        0,
        f"set the quota of all tenants without their own in {file}: 1,000 passages\n",
    )
    assert run(capsys, file, "set", "acme", "--bytes", "9", "--questions", "2.5")[:2] == (
        0,
        f"set the quota of tenant acme in {file}: 9 bytes, 2.5 questions per second\n",
    )
    own = TenantQuota(bytes=9, questions_per_second=2.5)
    default = TenantQuota(passages=1_000)
    assert read_quotas(file) == Quotas(default=default, by_tenant={"acme": own})
    assert json.loads(run(capsys, file, "list", "--json")[1])[1] == {
        "tenant": "acme",
        "passages": None,
        "bytes": 9,
        "questions_per_second": 2.5,
        "writes_per_second": None,
    }
    shown = run(capsys, file, "remove", "acme")[:2]
    assert shown == (0, f"removed the quota of tenant acme from {file}\n")
    assert read_quotas(file).of("acme") == default
    assert run(capsys, file, "remove", "acme")[0] == 1
    assert run(capsys, file, "set", "no tenant", "--bytes", "9")[0] == 1
    assert json.loads(run(capsys, file, "set", "acme", "--json")[1]) == {
        "tenant": "acme",
        "passages": None,
        "bytes": None,
        "questions_per_second": None,
        "writes_per_second": None,
    }


@pytest.mark.parametrize("command", [["set", "", "--passages", "1"], ["remove", ""]])
def test_an_empty_name_does_not_stand_for_all_tenants(
    capsys: pytest.CaptureFixture[str], file: Path, command: list[str]
) -> None:
    """As of a variable that a script forgot to set."""
    run(capsys, file, "set", "--passages", "100")
    code, _, error = run(capsys, file, *command)
    assert code == 1
    assert "'' is not 1 to 64 letters" in error
    assert read_quotas(file) == Quotas(default=TenantQuota(passages=100))


@pytest.mark.parametrize(
    "content",
    [
        "[]",
        '{"version": 2}',
        '{"version": 1, "tenants": {"acme": {"passage": 1}}}',
        '{"version": 1, "tenants": {"acme": {"passages": 1.5}}}',
        '{"version": 1, "tenants": {"acme": {"passages": -1}}}',
        '{"version": 1, "default": {"writes_per_second": 0}}',
        '{"version": 1, "tenants": {"a/b": {}}}',
    ],
)
def test_a_file_with_another_content_is_refused_and_the_old_quotas_stay(
    file: Path, content: str
) -> None:
    file.write_text('{"version": 1, "default": {"passages": 1}}')
    watched = open_quota_file(file)
    file.write_text(content)
    with pytest.raises(QuotaFileError, match="is not a file of quotas"):
        read_quotas(file)
    assert not watched.refresh()
    assert watched.content.default.passages == 1
