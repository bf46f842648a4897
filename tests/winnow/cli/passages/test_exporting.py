"""Passages are exported page by page."""

import io
from pathlib import Path
from typing import Any, cast

import pytest

from winnow.cli.passages.exporting import STANDARD_OUTPUT, export, line_of, opened_for_writing
from winnow.client import Passage, PassageBatch
from winnow.client.aio import AsyncClientApi
from winnow.errors import NotServedError, OverloadedError, UnavailableError, WinnowError


class Pages:
    """A client with pages of one passage, the requests of which fail at first."""

    def __init__(self, *failures: WinnowError) -> None:
        self.failures = list(failures)
        self.tokens: list[str] = []
        self.pauses: list[float] = []
        self.told: list[WinnowError] = []

    async def list_page(self, token: str, **_: Any) -> PassageBatch:
        self.tokens.append(token)
        if self.failures:
            raise self.failures.pop(0)
        number = int(token or 0)
        passage = Passage(id=f"p{number}", title="", text="é")
        next_ = "" if number == 2 else str(number + 1)
        return PassageBatch(passages=(passage,), next_page_token=next_)

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    async def export(self) -> tuple[int, str]:
        file = io.StringIO()
        api = cast(AsyncClientApi, self)
        count = await export(api, file, None, 1.0, self.sleep, on_retry=self.told.append)
        return count, file.getvalue()


async def test_a_page_that_fails_is_requested_again_and_nothing_is_written_twice() -> None:
    failures = [OverloadedError("full", 100.0), UnavailableError("gone")]
    pages = Pages(*failures)
    count, text = await pages.export()
    assert (count, text.count("\n")) == (3, 3)
    assert text.startswith('{"id": "p0", "title": "", "text": "é"}\n')
    assert pages.tokens == ["", "", "", "1", "2"]
    assert (pages.pauses, pages.told) == ([100.0, 1.0], failures)


@pytest.mark.parametrize(
    "failures", [[UnavailableError("gone")] * 6, [NotServedError("no such call")]]
)
async def test_an_export_ends_with_an_error_that_stays(failures: list[WinnowError]) -> None:
    with pytest.raises(type(failures[0])):
        await Pages(*failures).export()


def test_metadata_is_written_as_an_object() -> None:
    passage = Passage(id="p", title="t", text="x", metadata={"year": 2010})
    expected = '{"id": "p", "title": "t", "text": "x", "metadata": {"year": 2010}}\n'
    assert line_of(passage) == expected


def write(path: Path, text: str, error: BaseException | None = None) -> None:
    with opened_for_writing(path) as file:
        file.write(text)
        if error is not None:
            raise error


def test_a_file_appears_once_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with pytest.raises(KeyboardInterrupt):
        write(path, "x", KeyboardInterrupt())
    assert list(tmp_path.iterdir()) == []
    write(path, "x")
    assert path.read_text() == "x"
    with pytest.raises(WinnowError, match="exists"):
        write(path, "y")
    with pytest.raises(WinnowError, match=f"{tmp_path} is a directory: name a new file in it"):
        write(tmp_path, "y")


def test_standard_output_is_written_in_utf_8_whatever_its_encoding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    buffer = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(buffer, encoding="cp1252"))
    with opened_for_writing(STANDARD_OUTPUT) as file:
        file.write("Zürich → 東京")
        file.flush()
    assert buffer.getvalue().decode() == "Zürich → 東京"
