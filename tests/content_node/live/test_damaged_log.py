"""A flipped byte in any file of a log is refused by name, or changes nothing that the log holds."""

import random
from pathlib import Path

import pytest
from live_writes import logged

from winnow.content_node.live.acknowledged import ACKNOWLEDGED_FILE
from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.live.opening import open_log
from winnow.content_node.live.reading import LOG
from winnow.errors import ArtefactError

PLACES = 400
"""Bytes that are flipped, in all files together."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """A log that was trimmed, whose last writes are not in its database yet."""
    shard = tmp_path_factory.mktemp("shard")
    log = open_log(shard)
    for first in range(1, 60, 3):
        log.append(
            [logged(n, removed_words=b"\1\0\0\0") for n in range(first, first + 3)],
            journal_position="x",
        )
        log.acknowledge()
    log.trim(20)
    log.close()
    log = open_log(shard)
    for sequence in range(61, 70):
        log.append([logged(sequence, text=None if sequence % 4 else "other words")])
        log.acknowledge()
    live = shard / "live"
    content = {path.name: path.read_bytes() for path in live.iterdir()}
    log.close()
    return {name: content[name] for name in (LOG, f"{LOG}-wal", ACKNOWLEDGED_FILE)}


def lay(shard: Path, files: dict[str, bytes]) -> None:
    (shard / "live").mkdir(parents=True, exist_ok=True)
    for path in (shard / "live").iterdir():
        path.unlink()
    for name, data in files.items():
        (shard / "live" / name).write_bytes(data)


def content(shard: Path) -> tuple[object, ...]:
    found: list[LoggedWrite] = []
    log = open_log(shard, lambda _: found.append)
    state = (log.trimmed, log.last, log.journal_position, log.log_id)
    words = (log.trimmed_words.packed, log.trimmed_words.passages, log.trimmed_words.tokens)
    log.close()
    return found, *state, words


def refusal(shard: Path, truth: object) -> str:
    """The reason why the log is not opened; None if it holds the truth."""
    try:
        assert content(shard) == truth
    except ArtefactError as error:
        return str(error)
    return ""


def flips(files: dict[str, bytes]) -> list[tuple[str, int, int]]:
    """Places in every file: its first bytes, those around each page, and others by chance."""
    chance = random.Random(7)
    places = [(ACKNOWLEDGED_FILE, place) for place in range(len(files[ACKNOWLEDGED_FILE]))]
    for name in (LOG, f"{LOG}-wal"):
        size = len(files[name])
        places += [(name, place) for place in range(0, 100, 3)]
        places += [(name, chance.randrange(size)) for _ in range((PLACES - len(places)) // 2)]
    return [(name, place, 1 << chance.randrange(8)) for name, place in places]


def test_a_flipped_byte_is_refused_by_name_or_changes_nothing(
    files: dict[str, bytes], tmp_path: Path
) -> None:
    lay(tmp_path, files)
    truth = content(tmp_path)
    refused = 0
    for name, place, bit in flips(files):
        data = bytearray(files[name])
        data[place] ^= bit
        lay(tmp_path, {**files, name: bytes(data)})
        said = refusal(tmp_path, truth)
        refused += bool(said)
        named = f"{tmp_path / 'live' / name}" in said and "copy the shard again" in said
        assert named or not said, (name, place, bit, said)
    assert refused > PLACES / 4


def test_an_older_file_in_the_place_of_a_newer_one_is_refused(
    files: dict[str, bytes], tmp_path: Path
) -> None:
    lay(tmp_path, {**files, f"{LOG}-wal": b""})
    with pytest.raises(ArtefactError, match=r"writes\.sqlite-wal is damaged or cut short"):
        content(tmp_path)


def test_a_history_that_was_not_acknowledged_is_refused(
    files: dict[str, bytes], tmp_path: Path
) -> None:
    log = open_log(tmp_path)
    log.append([logged(n) for n in range(1, 80)])
    log.close()
    other = {path.name: path.read_bytes() for path in (tmp_path / "live").iterdir()}
    lay(tmp_path, {**other, ACKNOWLEDGED_FILE: files[ACKNOWLEDGED_FILE]})
    with pytest.raises(ArtefactError, match="write 69 differs from the acknowledged one"):
        content(tmp_path)
