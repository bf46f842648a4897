"""`winnow predict` in a separate process, against a front over gRPC."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fake_encoder_groups import FakePredictions

from winnow.bundle import Bundle

COMMAND = [sys.executable, "-m", "winnow", "predict"]


async def predict(*arguments: str, lines: str = "") -> tuple[int, str, str]:
    """Runs `winnow predict` with `lines` as standard input; returns exit code, stdout and stderr."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND, *arguments, stdin=-1, stdout=-1, stderr=-1
    )
    out, err = await process.communicate(lines.encode())
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


@pytest.fixture
def fake(bundle: Bundle) -> FakePredictions:
    return FakePredictions(bundle)


@pytest.fixture
async def address(fake: FakePredictions) -> AsyncIterator[str]:
    async with fake.serving() as made:
        yield made


async def test_a_text_is_shown_with_its_labels_and_entities(address: str) -> None:
    code, out, err = await predict(
        "Ada", "Lovelace", "met", "Zoe\u0308", "--heads", "intent, names", "--address", address
    )
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "intent  version 1"
    assert lines[1].split()[0] == "✓"
    assert lines[-2] == "  **Ada Lovelace** met Zoe\u0308"
    assert lines[-1].split() == ["person", "0.900", "Ada", "Lovelace"]
    assert "\x1b" not in out


async def test_every_line_of_a_pipe_is_a_text(fake: FakePredictions, address: str) -> None:
    lines = "".join(f"text {n}\n\n" for n in range(20))
    code, out, err = await predict(
        "--heads", "absicht", "--ring", "de", "--json", "--address", address, lines=lines
    )
    assert (code, err) == (0, "")
    said = [json.loads(line) for line in out.splitlines()]
    assert [each["text"] for each in said] == [f"text {n}" for n in range(20)]
    assert said[0]["heads"][0]["labels"][0]["assigned"] is True
    assert len(fake.heads["de"].applied) == 20


async def test_heads_may_be_repeated(address: str) -> None:
    code, out, err = await predict(
        "Ada Lovelace", "--heads", "intent", "--heads", "names,mood", "--address", address
    )
    assert (code, err) == (0, "")
    heads = [line.split()[0] for line in out.splitlines() if line.endswith("  version 1")]
    assert heads == ["intent", "names", "mood"]


async def test_refused_lines_of_a_file_do_not_affect_the_others(
    address: str, tmp_path: Path
) -> None:
    file = tmp_path / "texts.txt"
    file.write_text(f"fine\n{'x' * 2_001}\n\u200d\nfine, too\n", encoding="utf-8")
    code, out, err = await predict("--file", str(file), "--heads", "mood", "--address", address)
    assert (code, out.count("mood  version 1")) == (1, 2)
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 2
    assert "has 2001 characters, at most 2000 are allowed" in errors[0]
    assert "has no word in it" in errors[1]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["hello"], 2, "invalid value for --heads: name at least one head"),
        (["--heads", "mood"], 2, "invalid value for TEXT: there is no text"),
        (["hello", "--heads", "mood", "--file", "x"], 2, "give a text or a file, not both"),
        (["--heads", "mood", "--file", "/missing"], 1, "cannot read /missing: No such file"),
        (["hello", "--heads", "nope"], 1, "there is no head 'nope' in this encoder group"),
        (["hello", "--heads", "Bad"], 1, "head_ids[0]: 'Bad' is not a head id"),
    ],
)
async def test_errors_are_reported(
    address: str, arguments: list[str], code: int, said: str
) -> None:
    found, out, err = await predict(*arguments, "--address", address)
    assert (found, out) == (code, "")
    assert said in err
