"""A store of heads: versions, what is served, and what is refused. Local and remote alike."""

import json
import multiprocessing
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from small_heads import FINGERPRINT, small_head, small_model

from winnow.caller import message_of
from winnow.errors import ArtefactError, IdentityError, NotFoundError, UnavailableError
from winnow.files.checksummed_json import to_checksummed_json
from winnow.heads.head import open_head
from winnow.heads.manifest import FILE, MODEL
from winnow.heads.store import HeadRecord, HeadStore, open_store
from winnow.heads.store.disk_cache import HeadDiskCache
from winnow.storage.remote import RemoteStorage

FAR = "far:"


@pytest.fixture(params=["directory", "file", "memory", "disk"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "memory":
        yield (root := f"memory://{uuid.uuid4().hex}/heads")
        system = fsspec.filesystem("memory")
        if system.exists(root):
            system.rm(root, recursive=True)
    else:
        schemes = {"directory": "", "file": "file://", "disk": f"{FAR}file://"}
        yield f"{schemes[request.param]}{tmp_path}/store"


def opened(place: str, cache: Path) -> HeadStore:
    """A store; a disk is used as what is far away is, if its place says so."""
    if place.startswith(FAR):
        return HeadStore(RemoteStorage(place.removeprefix(FAR), "heads"), HeadDiskCache(cache))
    return open_store(place, cache)


@pytest.fixture
def store(place: str, tmp_path: Path) -> HeadStore:
    return opened(place, tmp_path / "cache")


def write(place: str, path: str, content: bytes) -> None:
    """Into the store, past it."""
    if place.startswith("memory"):
        fsspec.filesystem("memory").pipe_file(f"{place}/{path}", content)
    else:
        Path(place.removeprefix(FAR).removeprefix("file://"), path).write_bytes(content)


def bytes_of(store: HeadStore) -> bytes:
    """The first version's model."""
    model = store.fetch("intent", 1).open_model()
    return model.read(model.size, 0)


def test_a_published_head_is_served(store: HeadStore, tmp_path: Path) -> None:
    assert store.publish(small_head(tmp_path / "a")) == HeadRecord(version=1)
    assert store.ids() == ["intent"]
    assert store.versions("intent") == [1]
    assert store.read_record("intent") == HeadRecord(version=1)
    assert store.manifest("intent", 1).labels == ("greeting", "weather", "music")
    assert open_head(store.fetch("intent", 1)).manifest.id == "intent"
    encoder = store.encoder()
    assert encoder is not None
    assert encoder.fingerprint == FINGERPRINT


def test_a_new_version_takes_over_and_the_old_one_stays(store: HeadStore, tmp_path: Path) -> None:
    for version in (1, 2, 10):
        current = store.publish(small_head(tmp_path / str(version), version=version))
    assert current == HeadRecord(version=10, previous=2)
    assert store.versions("intent") == [1, 2, 10]
    assert store.fetch("intent", 1).manifest.version == 1


def test_rolling_back_serves_the_version_before_and_again_the_one_after(
    store: HeadStore, tmp_path: Path
) -> None:
    for version in (1, 2):
        store.publish(small_head(tmp_path / str(version), version=version))
    assert store.rollback("intent") == HeadRecord(version=1, previous=2)
    assert store.rollback("intent") == HeadRecord(version=2, previous=1)
    assert store.rollback("intent", 1).version == 1


def test_there_is_nothing_before_the_first_version(store: HeadStore, tmp_path: Path) -> None:
    store.publish(small_head(tmp_path / "a"))
    with pytest.raises(NotFoundError, match="has served no version before 1"):
        store.rollback("intent")
    with pytest.raises(NotFoundError, match=r"has no version 7: .* holds version 1"):
        store.rollback("intent", 7)


def test_pins_and_moves_outlive_a_new_version(store: HeadStore, tmp_path: Path) -> None:
    store.publish(small_head(tmp_path / "a"))
    assert store.pin("intent", True).pinned
    store.move("intent", "german")
    current = store.publish(small_head(tmp_path / "b", version=2))
    assert current == HeadRecord(version=2, previous=1, pinned=True, moved_to="german")
    assert not store.pin("intent", False).pinned
    assert store.move("intent", "").moved_to == ""


def test_a_version_can_be_published_to_be_served_later(store: HeadStore, tmp_path: Path) -> None:
    assert store.publish(small_head(tmp_path / "a"), activate=False).version == 0
    with pytest.raises(NotFoundError):
        store.read_record("intent")
    assert store.ids() == ["intent"]
    assert store.rollback("intent", 1) == HeadRecord(version=1)
    assert store.publish(small_head(tmp_path / "a")).version == 1
    assert store.publish(small_head(tmp_path / "b", version=2), activate=False).version == 1


def test_a_version_never_changes(store: HeadStore, tmp_path: Path) -> None:
    store.publish(small_head(tmp_path / "a"))
    store.publish(small_head(tmp_path / "a"))  # the same once more
    with pytest.raises(ArtefactError, match="publish this head as version 2"):
        store.publish(small_head(tmp_path / "b", tenant="somebody else"))
    assert store.manifest("intent", 1).tenant == ""


def test_a_store_belongs_to_one_encoder(store: HeadStore, tmp_path: Path) -> None:
    store.publish(small_head(tmp_path / "a"))
    with pytest.raises(IdentityError, match="publish the head to another store"):
        store.publish(small_head(tmp_path / "b", "other", fingerprint="f" * 16))
    assert store.ids() == ["intent"]


@pytest.mark.parametrize("model", [b"no model", small_model("sequence", 7)])
def test_a_head_that_does_not_work_is_not_published(
    store: HeadStore, tmp_path: Path, model: bytes
) -> None:
    with pytest.raises(ArtefactError):
        store.publish(small_head(tmp_path / "a", model=model))
    store.publish(small_head(tmp_path / "b"))
    with pytest.raises(ArtefactError):
        store.publish(small_head(tmp_path / "c", version=2, model=model))
    assert store.read_record("intent") == HeadRecord(version=1)
    assert store.versions("intent") == [1]


def test_a_version_that_does_not_work_is_not_rolled_back_to(
    store: HeadStore, place: str, tmp_path: Path
) -> None:
    for version in (1, 2):
        store.publish(small_head(tmp_path / str(version), version=version))
    write(place, f"intent/1/{MODEL}", b"")
    reopened = opened(place, tmp_path / "other cache")
    with pytest.raises(ArtefactError, match="damaged"):
        reopened.rollback("intent")
    assert store.read_record("intent").version == 2


def test_publishing_again_mends_a_damaged_model(
    store: HeadStore, place: str, tmp_path: Path
) -> None:
    store.publish(small_head(tmp_path / "a"))
    write(place, f"intent/1/{MODEL}", b"damaged")
    reopened = opened(place, tmp_path / "other cache")
    with pytest.raises(ArtefactError, match="damaged"):
        reopened.fetch("intent", 1)
    reopened.publish(small_head(tmp_path / "a"))
    assert opened(place, tmp_path / "third cache").fetch("intent", 1).open_model()


def test_a_version_that_was_half_written_is_published_again(
    store: HeadStore, place: str, tmp_path: Path
) -> None:
    store.publish(small_head(tmp_path / "a"))
    Path(tmp_path / "store" / "intent" / "2").mkdir(parents=True, exist_ok=True)
    write(place, f"intent/2/{MODEL}", b"half")
    with pytest.raises(ArtefactError, match=FILE):
        store.fetch("intent", 2)
    with pytest.raises(ArtefactError, match="publish it again"):
        store.manifest("intent", 2)
    assert store.publish(small_head(tmp_path / "b", version=2)).version == 2
    assert store.fetch("intent", 2).open_model()


@pytest.mark.parametrize(
    "name", ["nobody", "..", "../secret", "/etc", "a/b", "", "\0", "UPPER", "x" * 100, "1"]
)
def test_an_unknown_head_of_any_name_is_not_found(
    store: HeadStore, tmp_path: Path, name: str
) -> None:
    store.publish(small_head(tmp_path / "a"))
    with pytest.raises(NotFoundError):
        store.read_record(name)
    with pytest.raises(NotFoundError):
        store.fetch(name, 1)
    with pytest.raises(NotFoundError):
        store.manifest("intent", -1)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[" * 100_000,
        b"\xff",
        b'{"version": 1}',
        to_checksummed_json({"version": -1}).encode(),
        to_checksummed_json({"version": "one"}).encode(),
        to_checksummed_json({}).encode(),
    ],
)
def test_a_damaged_record_is_named(
    store: HeadStore, place: str, tmp_path: Path, content: bytes
) -> None:
    store.publish(small_head(tmp_path / "a"))
    write(place, "intent/current.json", content)
    with pytest.raises(ArtefactError, match=r"intent/current\.json"):
        store.read_record("intent")
    write(place, "store.json", content)
    with pytest.raises(ArtefactError, match=r"store\.json"):
        store.encoder()


def test_a_head_in_the_place_of_another_is_refused(
    store: HeadStore, place: str, tmp_path: Path
) -> None:
    for version in (1, 2):
        store.publish(small_head(tmp_path / str(version), version=version))
    for name in (FILE, MODEL):
        write(place, f"intent/1/{name}", (tmp_path / "2" / name).read_bytes())
    with pytest.raises(ArtefactError, match="is version 2 of head intent, not version 1"):
        store.fetch("intent", 1)
    with pytest.raises(ArtefactError, match="is version 2 of head intent, not version 1"):
        store.manifest("intent", 1)


def test_a_store_that_is_not_there_is_not_an_empty_one(tmp_path: Path) -> None:
    """A disk that is not mounted must not look like heads that were removed."""
    store = open_store(tmp_path / "nowhere")
    for attempt in (
        store.ids,
        lambda: store.read_record("intent"),
        lambda: store.fetch("intent", 1),
    ):
        with pytest.raises(UnavailableError, match="nowhere") as caught:
            attempt()
        assert message_of(caught.value) == "the store of heads cannot be used"


def test_a_copy_is_not_fetched_again_unless_it_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = f"memory://{uuid.uuid4().hex}"
    open_store(place, tmp_path / "cache").publish(small_head(tmp_path / "a"))
    system, read = fsspec.filesystem("memory"), list[str]()
    cat = system.cat_file

    def reading(path: str) -> bytes:
        read.append(path)
        content: bytes = cat(path)
        return content

    monkeypatch.setattr(system, "cat_file", reading)
    store = open_store(place, tmp_path / "cache")
    directory = store.fetch("intent", 1).directory
    assert not any(path.endswith(MODEL) for path in read)
    (directory / MODEL).write_bytes(b"damaged")
    assert bytes_of(store) == (tmp_path / "a" / MODEL).read_bytes()
    assert sum(path.endswith(MODEL) for path in read) == 1


def test_a_cache_keeps_few_versions_of_a_head(tmp_path: Path) -> None:
    store = open_store(f"memory://{uuid.uuid4().hex}", tmp_path / "cache")
    for version in range(1, 8):
        store.publish(small_head(tmp_path / str(version), version=version))
        assert store.fetch("intent", version).manifest.version == version
    assert len(list((tmp_path / "cache" / "intent").iterdir())) == 4


def test_several_may_fetch_and_damage_at_once(tmp_path: Path) -> None:
    """As several processes do that share a cache: each gets a whole head."""
    place = f"memory://{uuid.uuid4().hex}"
    open_store(place, tmp_path / "cache").publish(small_head(tmp_path / "a"))
    expected, found = (tmp_path / "a" / MODEL).read_bytes(), list[bytes]()
    caches = [tmp_path / f"cache-{number}" for number in range(5)]

    def fetch(barrier: threading.Barrier) -> None:
        for cache in caches:
            store = open_store(place, cache)
            barrier.wait()
            found.append(bytes_of(store))

    barrier = threading.Barrier(4)
    threads = [threading.Thread(target=fetch, args=[barrier]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 20


def fetched_apart(root: Path) -> list[bytes]:
    """The models of all heads, fetched into a cache that other processes use as well."""
    store = opened(f"{FAR}file://{root}/store", root / "cache")
    heads = [store.fetch(head, 1).open_model() for head in store.ids()]
    return [model.read(model.size, 0) for model in heads]


def test_several_processes_may_share_a_cache(tmp_path: Path) -> None:
    store = opened(f"{FAR}file://{tmp_path}/store", tmp_path / "elsewhere")
    for number in range(5):
        store.publish(small_head(tmp_path / str(number), f"head-{number}"))
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        first, second = pool.map(fetched_apart, [tmp_path] * 2)
    assert first == second
    assert first[0] == (tmp_path / "0" / MODEL).read_bytes()
    assert sorted(each.name for each in (tmp_path / "cache").iterdir()) == store.ids()


def test_several_may_publish_at_once(tmp_path: Path) -> None:
    """Writers of a directory wait for one another, so no change of one is lost."""
    versions = range(1, 6)
    heads = [small_head(tmp_path / str(version), version=version) for version in versions]
    threads = [
        threading.Thread(target=open_store(tmp_path / "store").publish, args=[head])
        for head in heads
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store = open_store(tmp_path / "store")
    assert store.versions("intent") == list(versions)
    current = store.read_record("intent")
    assert current.version != current.previous
    assert current.previous


def test_remains_of_a_killed_writer_are_no_version_and_are_removed(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store")
    store.publish(small_head(tmp_path / "a"))
    left = tmp_path / "store" / "intent" / ".2.xyz"
    left.mkdir()
    (left / MODEL).write_bytes(b"half")
    assert store.versions("intent") == [1]
    store.publish(small_head(tmp_path / "b", version=2))
    assert not left.exists()


def test_other_users_may_read_a_store(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store")
    store.publish(small_head(tmp_path / "a"))
    for path in (tmp_path / "store" / "intent").rglob("*"):
        assert path.stat().st_mode & 0o004, path


def test_a_store_is_plain_files(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store")
    store.publish(small_head(tmp_path / "a"))
    content = json.loads((tmp_path / "store" / "intent" / "current.json").read_text())
    assert (content["version"], content["previous"], content["pinned"]) == (1, 0, False)
    assert json.loads((tmp_path / "store" / "store.json").read_text())["format"] == 1
