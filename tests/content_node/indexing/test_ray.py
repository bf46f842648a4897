"""An index built by workers of a real Ray cluster: the same one, even if workers die."""

import contextlib
import importlib
import inspect
import json
import os
import signal
import sqlite3
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import needs
import numpy as np
import pytest
from conftest import Recorder
from tenacious import LONG, until
from typer.testing import CliRunner

from winnow.bundle import Bundle
from winnow.content_node.indexing import ray_engine
from winnow.content_node.indexing.builder import build_index
from winnow.content_node.indexing.cli import app
from winnow.content_node.indexing.plan import BuildPlan
from winnow.content_node.indexing.ray_cluster import TIMED_OUT, open_cluster
from winnow.content_node.indexing.ray_engine import (
    Batch,
    RayEngine,
    encode_batches,
    make_worker_model,
)
from winnow.domain.shard import shard_name
from winnow.errors import IdentityError, WinnowError

pytestmark = [
    # not by importing it: it reads its settings then
    pytest.mark.skipif(find_spec("ray") is None, reason=needs.RAY),
    pytest.mark.skipif(sys.platform != "linux", reason=needs.LINUX),
]

SHARDS = 2
PASSAGES = 1000
TEXT = "The quick brown fox jumps over the lazy dog again and again, as it does every day."


HANDLERS = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
"""As they are before Ray is started; a shell's background jobs ignore SIGINT."""


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Passages whose encoding takes some seconds."""
    path = tmp_path_factory.mktemp("many") / "many.jsonl"
    rows = (json.dumps({"id": str(n), "text": f"{n} {TEXT}"}) for n in range(PASSAGES))
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """Ray with room for two workers."""
    before = dict(os.environ)
    os.environ |= {"RAY_gcs_server_port_wait_time_s": "500"}  # of the 600 that a test may take
    with open_cluster("", 2, 128 << 20) as connected:
        yield connected
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def connected(ray: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds find Ray started."""
    monkeypatch.setattr(ray_engine, "open_cluster", lambda *_: contextlib.nullcontext(ray))


def vectors(index: Path) -> dict[str, tuple[object, ...]]:
    """Everything that is stored, by shard and passage."""
    found = {}
    for shard in range(SHARDS):
        path = index / shard_name(shard, SHARDS) / "passages.sqlite"
        with contextlib.closing(sqlite3.connect(path)) as connection:
            for row in connection.execute("SELECT * FROM passages"):
                found[row[1]] = (shard, *row)
    return found


def encoded_passages(out: Path) -> int:
    """Passages that a build has encoded so far."""
    staging = out.with_name(out.name + ".partial") / "staging.sqlite"
    if not staging.exists():
        return 0
    with contextlib.closing(sqlite3.connect(f"file:{staging}?mode=ro", uri=True)) as connection:
        try:
            return int(connection.execute("SELECT count(vector) FROM passages").fetchone()[0])
        except sqlite3.OperationalError:
            return 0


def processes_of(mark: str) -> list[int]:
    """Processes whose environment has `mark`."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (each / "environ").read_bytes():
                found.append(int(each.name))
    return found


def test_ctrl_c_ends_ray_too_and_another_engine_goes_on_to_the_same_index(
    many: Path, bundle: Bundle, tmp_path: Path, connected: None, recorder: Recorder
) -> None:
    """A terminal sends Ctrl-C to every process of the build."""
    out, mark = tmp_path / "index", uuid.uuid4().hex
    command = [sys.executable, "-m", "winnow", "index", "build", "--passages", str(many)]
    command += ["--out", str(out), "--shards", str(SHARDS), "--engine", "ray", "--workers", "1"]
    running = subprocess.Popen(
        command,
        env={**os.environ, "TEST_MARK": mark},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        until(lambda: encoded_passages(out) > 0 or running.poll() is not None)
        os.killpg(running.pid, signal.SIGINT)
        said = running.communicate(timeout=LONG)[1]
    finally:
        running.kill()
        running.wait()
    assert running.returncode == 130, said
    assert "Traceback" not in said
    assert "index.partial keeps the finished work: run the same command again" in said
    until(lambda: not processes_of(mark))
    done = encoded_passages(out)
    assert 0 < done < PASSAGES
    plan = BuildPlan(source=many, target=out, shards=SHARDS, threads=2)
    build_index(plan, bundle, recorder, RayEngine(2))
    assert ("encoding passages", PASSAGES, done) in recorder.stages
    local = BuildPlan(source=many, target=tmp_path / "local", shards=SHARDS, threads=2)
    build_index(local, bundle, recorder)
    assert vectors(out) == vectors(local.target)


def batch(number: int) -> Batch:
    return [(number, (2000 + number % 1_000,), (2100,) * 40)]


def test_the_work_of_a_worker_that_is_killed_is_done_again(ray: Any, bundle: Bundle) -> None:
    rows: list[int] = []
    earlier = set(workers())  # those of other tests may be about to end
    killed = False
    batches = map(batch, range(200))
    for done, vectors in encode_batches(
        ray, make_worker_model(bundle, batch(0)), batches, max_tasks=4
    ):
        rows += [row for row, *_ in done]
        assert len(vectors) == len(done)
        if not killed and (own := set(workers()) - earlier):
            os.kill(min(own), signal.SIGKILL)
            killed = True
    assert killed
    assert sorted(rows) == list(range(200))


def workers() -> list[int]:
    """Processes that encode."""
    return [
        each for each in descendants(os.getpid()) if named(each).startswith(b"ray::encode_batch")
    ]


def named(pid: int) -> bytes:
    """The command of a process; nothing of one that has ended meanwhile."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def test_a_worker_that_encodes_otherwise_than_this_machine_is_refused_by_name(
    ray: Any, bundle: Bundle
) -> None:
    worker_model = make_worker_model(bundle, batch(0))
    other = replace(worker_model, expected=np.nextafter(worker_model.expected, 1))
    with pytest.raises(
        IdentityError, match=f"a worker on {os.uname().nodename} encodes differently"
    ):
        list(encode_batches(ray, other, iter([batch(1)]), max_tasks=1))


def test_the_error_of_a_worker_is_the_builds(ray: Any, bundle: Bundle) -> None:
    worker_model = make_worker_model(bundle, batch(0))
    worker_model.model[1000] ^= 1
    with pytest.raises(WinnowError, match=r"encoder.onnx") as raised:
        list(encode_batches(ray, worker_model, iter([batch(1)]), max_tasks=1))
    assert "Traceback" not in str(raised.value)


def test_ray_changes_neither_signal_handlers_nor_the_users_home(ray: Any) -> None:
    assert {each: signal.getsignal(each) for each in HANDLERS} == HANDLERS


def test_a_cluster_of_a_builds_own_listens_to_this_machine_alone(ray: Any) -> None:
    assert [each["NodeManagerAddress"] for each in ray.nodes()] == ["127.0.0.1"]
    listening = list(addresses({os.getpid(), *descendants(os.getpid())}))
    assert listening
    here = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
    assert set(listening) <= here


def descendants(pid: int) -> Iterator[int]:
    for child in (child for task in tasks(pid) for child in children(task)):
        yield child
        yield from descendants(child)


def tasks(pid: int) -> list[Path]:
    """A process that has ended meanwhile has none: Ray's helpers come and go."""
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return []


def children(task: Path) -> list[int]:
    try:
        return [int(each) for each in (task / "children").read_text().split()]
    except OSError:
        return []


def addresses(processes: set[int]) -> Iterator[str]:
    """What sockets of these processes listen on, in hexadecimal as the kernel has it."""
    sockets = set()
    for pid in processes:
        with contextlib.suppress(OSError):  # the process has ended meanwhile
            for each in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    sockets.add(str(each.readlink()).removeprefix("socket:[").removesuffix("]"))
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in sockets:
                yield fields[1].partition(":")[0]


def test_a_start_that_fails_is_recognised_and_ended_as_this_version_of_ray_does(ray: Any) -> None:
    node = importlib.import_module("ray._private.node").Node
    assert TIMED_OUT in inspect.getsource(node.__init__)
    parameters = inspect.signature(node.kill_all_processes).parameters
    assert parameters.keys() >= {"check_alive", "allow_graceful", "wait"}


def test_options_of_ray_without_ray_are_wrong_usage() -> None:
    words = ["build", "--passages", "my.jsonl", "--out", "index", "--workers", "2"]
    said = CliRunner(env={"COLUMNS": "200"}).invoke(app, words)
    assert said.exit_code == 2
    assert "--workers needs --engine ray" in said.output
