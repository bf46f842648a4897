"""The command line in separate processes, with signals."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO

import httpx
import pytest
from conftest import QUESTIONS
from damaged_files import flip_bit
from in_process import InProcess
from tenacious import LONG, until
from whole_bundle import WHOLE

from winnow.bundle import load_bundle
from winnow.cli.local.cluster import load_failure
from winnow.cli.local.ports import free_ports, reserve
from winnow.client import Client
from winnow.client.messages import AnswerClient
from winnow.content_node.shard import open_shard
from winnow.content_node.startup_checks import shard_advice
from winnow.index_directory import shard_directories
from winnow.packaged import default_bundle
from winnow.v1 import answer_pb2

BUNDLE = default_bundle()
NO_STATES = "the shard has no precomputed states"


def winnow(*arguments: str, timeout: float = LONG) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "winnow", *arguments]
    environment = {**os.environ, "COLUMNS": "160", "NO_COLOR": "1"}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, env=environment, check=False
    )


def children(pid: int) -> set[int]:
    """Returns the process ids of all children of `pid`."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.add(int(path.parent.name))
    return found


def free_pair() -> int:
    """Reserves two consecutive ports; returns the first of them."""
    while True:
        (first,) = free_ports(1)
        if reserve(first + 1):
            return first


def alive(pids: set[int]) -> set[int]:
    found = set()
    for pid in pids:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state != "Z":
            found.add(pid)
    return found


class Up:
    """A running `winnow up`."""

    def __init__(
        self,
        index: Path,
        stderr: int | IO[bytes] = subprocess.PIPE,
        *,
        bundle: Path = BUNDLE,
        nodes: int = 0,
    ) -> None:
        port, metrics = free_ports(2)
        self.address, self.metrics = f"127.0.0.1:{port}", f"127.0.0.1:{metrics}"
        command = [sys.executable, "-m", "winnow", "up", "--index", str(index)]
        command += [
            "--listen",
            self.address,
            "--http-listen",  # its default is free only until another test takes it, too
            "127.0.0.1:0",
            "--metrics-listen",
            self.metrics,
            "--bundle",
            str(bundle),
            "--nodes",
            str(nodes),
        ]
        self.process = subprocess.Popen(command, stderr=stderr, text=True)

    def wait_ready(self) -> set[int]:
        async def serving() -> bool:
            code = self.process.poll()
            assert code is None, f"it ended with {code}: {self.process.communicate()[1]}"
            async with AnswerClient(self.address) as client:
                return await client.available()

        until(lambda: asyncio.run(serving()))
        return children(self.process.pid)

    def wait_said(self, *words: str) -> str:
        """Everything it says until it has said all of `words`."""
        assert self.process.stderr is not None
        said = ""
        for line in self.process.stderr:
            said += line
            if all(each in said for each in words):
                return said
        raise AssertionError(f"it never said {words!r}:\n{said}")


@pytest.fixture
def up(indexes: dict[int, Path]) -> Iterator[Up]:
    started = Up(indexes[2])
    yield started
    started.process.kill()
    started.process.communicate()


@pytest.fixture
def cluster(indexes: dict[int, Path]) -> Iterator[Up]:
    """A front node and a content node for each of two shards."""
    started = Up(indexes[2], nodes=2)
    yield started
    started.process.kill()
    started.process.communicate()


@pytest.fixture
def here(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> InProcess:
    """Runs commands in this process, for tests that need no separate process."""
    return InProcess(capsys, monkeypatch)


@pytest.fixture
def questions_file(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    rows = [{"question": question, "answers": [answer]} for question, answer in QUESTIONS]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_help_shows_examples_and_lists_every_command(here: InProcess) -> None:
    shown = here("--help").stdout
    for command in (
        "predict",
        "up",
        "front",
        "node",
        "encoder",
        "heads",
        "index",
        "evaluate",
        "bench",
        "demo",
    ):
        assert f" {command} " in shown
    node = here("node", "--help").stdout
    for words in ("--shard", "WINNOW_NODE_SHARD", "--metrics-listen", "Example"):
        assert words in node
    assert here("--version").stdout.startswith("winnow ")


def test_the_training_commands_are_listed_only_where_they_can_run(here: InProcess) -> None:
    """Without PyTorch, these commands print how to install it."""
    able = find_spec("torch") is not None
    assert (" models " in here("--help").stdout) == able
    asked = winnow("models", "--help")
    assert asked.returncode == (0 if able else 1)
    assert "make models" in asked.stderr or able


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["front"], 2, "--shards (or WINNOW_FRONT_SHARDS)"),
        (["node", "--shard", ".", "--threads", "0"], 2, "--threads"),
        (["up", "--index", "nowhere"], 1, "is not an index"),
        (["up", "--index", ".", "--listen", "127.0.0.1"], 2, "has no port"),
        (["up", "--index", ".", "--bundle", "nowhere"], 1, "is this a bundle"),
        (["demo", "--listen", ":8080"], 2, "--listen: ':8080' has no host"),
        (["index", "build", "--passages", "no.tsv", "--out", "x"], 1, "no file or index no.tsv"),
        (["index", "inspect", "nowhere"], 1, "nowhere"),
        (["ask", "?", "--address", "localhost"], 2, "'localhost' is neither HOST:PORT nor"),
        (["bench", "--questions", "x", "--address", ""], 2, "'--address': '' is neither"),
        (["evaluate", "--questions", "no.jsonl"], 1, "no.jsonl"),
        (["frnt"], 2, "frnt"),
    ],
)
def test_an_error_is_reported_without_a_traceback(
    here: InProcess,
    arguments: Sequence[str],
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    result = here(*arguments)
    assert result.returncode == code, result.stderr
    assert said in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--shard", "nowhere"], 1, "nowhere"),
        (["--shard", ".", "--bundle", "nowhere"], 1, "is this a bundle"),
        (["--shard", ".", "--max-tokens", "64"], 2, "neither padding nor shorter windows"),
        (["--shard", ".", "--pad-to", "380"], 2, "is a split reader, which allows neither padding"),
    ],
)
def test_a_node_that_cannot_start_reports_the_error_without_a_traceback(
    here: InProcess, arguments: Sequence[str], code: int, said: str
) -> None:
    result = here("node", *arguments)
    assert result.returncode == code, result.stderr
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_a_node_started_with_an_index_suggests_its_shards(indexes: dict[int, Path]) -> None:
    result = winnow("node", "--shard", str(indexes[2]))
    assert result.returncode == 1
    assert f"--shards {indexes[2]} serves all" in result.stderr
    assert f"--shard {indexes[2]}/shard-00000-of-00002 one of them" in result.stderr


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("WINNOW_NODE_THREDS", "WINNOW_NODE_THREADS"),
        ("WINNOW_NOD_THREADS", "WINNOW_NODE_THREADS"),
    ],
)
def test_a_misspelt_variable_is_reported_with_the_right_name(
    here: InProcess, variable: str, meant: str
) -> None:
    result = here("node", "--shard", "nowhere", **{variable: "2"})
    assert result.returncode == 2
    assert f"error: {variable}: " in result.stderr
    assert f"did you mean {meant}?" in result.stderr


def test_an_index_is_built_inspected_and_verified(
    here: InProcess, passages_file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "index"
    built = here(
        "index",
        "build",
        "--passages",
        str(passages_file),
        "--out",
        str(out),
        "--shards",
        "2",
        "--json",
    )
    assert built.returncode == 0, built.stderr
    assert json.loads(built.stdout)["passages"] == 12
    assert json.loads(here("index", "inspect", str(out), "--json").stdout)["shards"] == 2
    assert "12 passages" in here("index", "inspect", str(out)).stdout
    verified = here("index", "verify", str(out), "--json")
    assert verified.returncode == 0
    assert json.loads(verified.stdout)["ok"] is True
    flip_bit(next(out.glob("shard-*/graph.hnsw")), 100)
    refused = here("index", "verify", str(out))
    assert refused.returncode == 1
    assert "graph.hnsw is damaged" in refused.stdout


def test_bad_rows_are_listed_with_their_lines(here: InProcess, tmp_path: Path) -> None:
    path = tmp_path / "p.tsv"
    path.write_bytes(b"1\tA text.\tT\n2\t\tT\nonly\n1\tAgain.\tT\n5\t\xff\tT\n")
    result = here("index", "build", "--passages", str(path), "--out", str(tmp_path / "i"))
    assert result.returncode == 1
    for line in (
        "line 2: text is empty: a passage needs a text (id 2)",
        "line 3: 1 column, expected 3",
        "line 4: duplicate id 1",
        "line 5: invalid",
    ):
        assert line in result.stderr
    assert "4 bad rows" in result.stderr
    skipped = here(
        "index", "build", "--passages", str(path), "--out", str(tmp_path / "j"), "--skip-bad-rows"
    )
    assert skipped.returncode == 0, skipped.stderr
    assert "the index gets 1 shard; --shards sets another number" in skipped.stderr
    assert "1 passage in 1 shard" in skipped.stdout


@pytest.fixture
def damaged(indexes: dict[int, Path], tmp_path: Path) -> Path:
    """An index of two shards, the second one with a flipped byte."""
    index = tmp_path / "damaged"
    shutil.copytree(indexes[2], index)
    flip_bit(index / "shard-00001-of-00002" / "passages.sqlite")
    return index


async def test_a_damaged_shard_is_reported_and_the_other_shards_are_served(
    damaged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINNOW_FRONT_FORM_TIMEOUT", "1")
    up = Up(damaged, nodes=2)
    try:
        failure = "node 1 could not load its shard"
        said = await asyncio.to_thread(up.wait_said, "ready on", failure)
        async with AnswerClient(up.address) as client:
            reply = await client.ask(answer_pb2.AnswerRequest(question=QUESTIONS[0][0]), LONG)
        assert not reply.coverage.complete
        assert 0 < reply.coverage.passages_searched < reply.coverage.passages_known == 12
        up.process.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(up.process.wait, LONG) == 0
        assert {
            str(json.loads(line)["process"]) for line in said.splitlines() if line[0] == "{"
        } == {
            "front",
            "node 0",
            "node 1",
        }
        assert "Tour de France" not in said, "the index is not the demo's"
        assert "passages.sqlite is damaged" in said
        assert "to restart the node" in said
    finally:
        up.process.kill()
        up.process.communicate()


def test_if_no_shard_can_be_loaded_up_reports_all_and_leaves_no_process(
    damaged: Path,
) -> None:
    (damaged / "shard-00000-of-00002" / "manifest.json").write_text("{}")
    listen = ("--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0")
    result = winnow("up", "--index", str(damaged), "--nodes", "2", *listen)
    assert result.returncode == 1
    assert "no content node can serve a shard" in result.stderr
    for said in ("manifest.json has format None", "passages.sqlite is damaged"):
        assert said in result.stderr


def test_a_cluster_without_a_loadable_shard_ends_and_reports_all(damaged: Path) -> None:
    (damaged / "shard-00000-of-00002" / "manifest.json").write_text("{}")
    listen = ("--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0")
    result = winnow("up", "--index", str(damaged), *listen)
    assert result.returncode == 1
    assert "server ended with exit code 1" in result.stderr
    for said in ("no shard can be loaded", "manifest.json has format", "passages.sqlite is damage"):
        assert said in result.stderr


def test_up_starts_at_most_one_content_node_per_shard(
    here: InProcess, indexes: dict[int, Path]
) -> None:
    result = here("up", "--index", str(indexes[3]), "--nodes", "4")
    assert result.returncode == 2
    assert "has 3 shards, so some nodes would have none: use at most --nodes 3" in result.stderr
    result = here("up", "--index", str(indexes[3]), "--replicas", "2")
    assert result.returncode == 2
    assert "--replicas 2 needs --nodes" in result.stderr


def test_a_node_with_a_damaged_shard_runs_until_sigterm(damaged: Path) -> None:
    port, metrics = free_ports(2)
    shard = damaged / "shard-00001-of-00002"
    command = [sys.executable, "-m", "winnow", "node", "--shard", str(shard)]
    command += ["--listen", f"127.0.0.1:{port}", "--metrics-listen", f"127.0.0.1:{metrics}"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as node:
        try:
            until(lambda: "passages.sqlite is damaged" in asked_why(port))
            assert "winnow_node_ready 0.0" in fetch(f"127.0.0.1:{metrics}")
            assert told_again_and_again(node) == 0
        finally:
            node.kill()


def told_again_and_again(process: "subprocess.Popen[bytes]") -> int:
    """Sends SIGTERM until the process has ended; returns its exit code."""
    for _ in range(60_000):
        process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(0.001)
    raise AssertionError("it did not end")


def test_a_node_reports_a_missing_directory_until_it_is_back(
    indexes: dict[int, Path], tmp_path: Path
) -> None:
    shard = Path(shutil.copytree(indexes[1] / "shard-00000-of-00001", tmp_path / "shard"))
    port, metrics = free_ports(2)
    command = [sys.executable, "-m", "winnow", "node", "--shard", str(shard)]
    command += ["--listen", f"127.0.0.1:{port}", "--metrics-listen", f"127.0.0.1:{metrics}"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as node:
        try:
            until(lambda: "winnow_node_ready 1.0" in measured(metrics))
            shard.rename(tmp_path / "away")
            until(lambda: "was replaced or deleted while it was served" in asked_why(port))
            assert "winnow_node_shard_changed 1.0" in measured(metrics)
            (tmp_path / "away").rename(shard)
            until(lambda: "winnow_node_ready 1.0" in measured(metrics))
            assert not asked_why(port)
            node.send_signal(signal.SIGTERM)
            assert node.wait(LONG) == 0
        finally:
            node.kill()


def measured(port: int) -> str:
    """Returns the page of metrics of a process; empty while it does not listen."""
    try:
        return fetch(f"127.0.0.1:{port}")
    except OSError:
        return ""


def asked_why(port: int) -> str:
    failure = asyncio.run(load_failure(f"127.0.0.1:{port}"))
    return failure.reason if failure is not None else ""


def test_up_restarts_its_server_answers_is_benchmarked_and_leaves_no_process(
    here: InProcess, up: Up, questions_file: Path
) -> None:
    said = up.wait_said("ready on")  # before that it would give up
    (server,) = children(up.process.pid)
    os.kill(server, signal.SIGKILL)
    said += up.wait_said("starting it again")
    assert "server ended with exit code -9: starting it again" in said
    until(lambda: bool(children(up.process.pid) - {server}))
    pids = up.wait_ready()
    assert len(pids) == 1
    assert server not in pids
    evaluated = here(
        "evaluate", "--address", up.address, "--questions", str(questions_file), "--json",
        "--max-loss", "0",
    )  # fmt: skip
    assert evaluated.returncode == 0, evaluated.stderr
    report = json.loads(evaluated.stdout)
    assert (report["questions"], report["failed"], report["incomplete"]) == (4, 0, 0)
    assert report["figures"][-1]["exact_match"] == 100
    assert report["figures"][-1]["recall_by_answer"] == 100
    picture = questions_file.with_suffix(".png")
    benched = here(
        "bench", "--address", up.address, "--questions", str(questions_file), "--seconds", "0.2",
        "--clients", "2", "--rate", "5", "--warm-up", "2", "--timeout", str(LONG), "--json",
        "--plot", str(picture),
    )  # fmt: skip
    assert benched.returncode == 0, benched.stderr
    loads = json.loads(benched.stdout)
    assert [load["kind"] for load in loads] == ["closed", "closed", "open"]
    # a busy machine may refuse some questions
    assert all(load["answered"] > 0 for load in loads)
    assert {code for load in loads for code in load["errors"]} <= {"RESOURCE_EXHAUSTED"}
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "winnow_request_seconds_bucket" in fetch(up.metrics)
    up.process.send_signal(signal.SIGINT)
    said += up.process.communicate(timeout=LONG)[1]
    assert up.process.returncode == 0
    assert not alive(pids)
    assert said.count(NO_STATES) >= 2


def test_up_precomputes_states_on_request(
    here: InProcess, passages_file: Path, tmp_path: Path
) -> None:
    """A reader that cannot use them says so, and answers all the same."""
    index, shards = tmp_path / "index", [f"shard-0000{shard}-of-00002" for shard in range(2)]
    build = ("index", "build", "--passages", str(passages_file), "--out", str(index), "--states")
    refused = here(*build, "--bundle", str(WHOLE))
    assert refused.returncode == 2
    assert "is not a split reader" in refused.stderr
    assert not index.exists()
    built = here(*build, "--shards", "2")
    assert built.returncode == 0, built.stderr
    assert all((index / shard / "states.bin").stat().st_size for shard in shards)
    again = here(*build)
    assert again.returncode == 2
    assert f"winnow index states {index}" in " ".join(again.stderr.replace("│", " ").split())
    shown = json.loads(here("index", "inspect", str(index), "--json").stdout)
    assert all(each["states"]["bytes"] > 0 for each in shown["writes"])
    checked = "states checked, of the default bundle's reader"
    assert here("index", "verify", str(index)).stdout.count(checked) == 2
    inspect = ("index", "inspect", str(index))
    assert "states are of the default bundle's reader" in here(*inspect).stdout
    useless = "the shard has precomputed states, but the reader"
    up = Up(index, bundle=WHOLE)
    try:
        up.wait_ready()
        (answer,) = asyncio.run(answered(up.address))[:1]
        up.process.send_signal(signal.SIGINT)
        _, said = up.process.communicate(timeout=LONG)
    finally:
        up.process.kill()
    assert answer.text == "Alexander Fleming"
    assert [said.count(each) for each in (NO_STATES, useless)] == [0, 2]
    bundle = load_bundle(BUNDLE)
    for shard in shard_directories(index):
        opened = open_shard(
            shard,
            ef=64,
            lower_layers_fingerprint=bundle.manifest.lower_layers_fingerprint,
            token_vectors_fingerprint=bundle.manifest.token_vectors_fingerprint,
        )
        assert list(shard_advice(opened, shard, bundle)) == []


def test_up_reads_the_configuration_of_each_service_and_finds_a_port(
    indexes: dict[int, Path], tmp_path: Path
) -> None:
    first = free_pair()
    config = tmp_path / "w.toml"
    config.write_text(
        f'[front]\nanswers = 1\n[node]\nmetrics_listen = "127.0.0.1:{first}"\n', encoding="utf-8"
    )
    command = [sys.executable, "-m", "winnow", "up", "--index", str(indexes[2])]
    command += ["--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0", "--config", str(config)]
    command += ["--nodes", "2"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as up:
        try:
            assert up.stderr is not None
            ready = next(line for line in up.stderr if line.startswith("ready on "))
            address = ready.removeprefix("ready on ").partition(";")[0]
            assert len(asyncio.run(answered(address))) == 1
            page = next(line for line in up.stderr if line.endswith("/docs\n"))
            http = page.removeprefix("open ").partition(" ")[0]
            assert answered_by_http(http) == "Alexander Fleming"
            for port in (first, first + 1):
                page = fetch(f"127.0.0.1:{port}")
                assert "winnow_node_ready 1.0" in page
                assert "winnow_build_info{" in page
            up.send_signal(signal.SIGTERM)
            assert up.stderr.read().endswith("stopped\n")
            assert up.wait(LONG) == 0
        finally:
            up.kill()


def answered_by_http(url: str) -> str:
    question = {"question": "Who discovered penicillin?"}
    reply = httpx.post(f"{url}/v1/answer", json=question, timeout=LONG)
    return str(reply.json()["answers"][0]["text"])


async def answered(address: str) -> list[answer_pb2.Answer]:
    async with AnswerClient(address) as client:
        request = answer_pb2.AnswerRequest(question="Who discovered penicillin?")
        return list((await client.ask(request, LONG)).answers)


@pytest.mark.parametrize("command", ["up", "demo"])
def test_a_port_in_use_is_reported_before_any_process_starts(
    here: InProcess, command: str, indexes: dict[int, Path]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        result = here(command, "--index", str(indexes[2]), "--listen", address)
    assert result.returncode == 1
    assert result.stderr.startswith(f"error: {address} is in use: ")
    assert "choose another port with --listen, such as 127.0.0.1:0 for any" in result.stderr


def test_a_demo_refuses_another_number_of_shards_than_its_index_has(
    here: InProcess, indexes: dict[int, Path]
) -> None:
    result = here("demo", "--index", str(indexes[2]), "--shards", "3", "--listen", "127.0.0.1:0")
    assert result.returncode == 2
    assert "was built with 2 shards: omit --shards" in " ".join(result.stderr.split())


def test_a_demo_logs_complete_lines_and_no_closed_port(
    here: InProcess, indexes: dict[int, Path], questions_file: Path
) -> None:
    asked = ["--index", str(indexes[2]), "--questions", str(questions_file)]
    addresses = ["--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"]
    result = here("demo", "--once", *asked, *addresses)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1].endswith("answers as expected"), result.stdout
    assert result.stdout.splitlines()[-1][0].isdecimal()


def fetch(address: str) -> str:
    import urllib.request

    with urllib.request.urlopen(f"http://{address}/metrics", timeout=LONG) as reply:
        return str(reply.read().decode())


@contextlib.contextmanager
def full_disk() -> Iterator[int]:
    with Path("/dev/full").open("wb") as full:
        yield full.fileno()


@contextlib.contextmanager
def full_pipe() -> Iterator[int]:
    """Opens a pipe whose reading end is closed."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while os.write(writer, b"\n"):
            pass
    os.set_blocking(writer, True)
    yield writer
    os.close(writer)
    os.close(reader)


@pytest.mark.parametrize("broken", [full_disk, full_pipe])
def test_a_server_is_restarted_even_if_standard_error_is_broken(
    indexes: dict[int, Path], broken: Callable[[], contextlib.AbstractContextManager[int]]
) -> None:
    with broken() as stderr:
        up = Up(indexes[1], stderr)
        try:
            (server,) = up.wait_ready()
            os.kill(server, signal.SIGKILL)
            until(lambda: bool(children(up.process.pid) - {server}))
            up.process.send_signal(signal.SIGINT)
            assert up.process.wait(LONG) == 0
        finally:
            up.process.kill()
            up.process.wait()


def test_ctrl_c_ends_a_cluster_that_is_not_yet_ready(up: Up) -> None:
    until(lambda: bool(children(up.process.pid)))
    up.process.send_signal(signal.SIGINT)
    _, said = up.process.communicate(timeout=LONG)
    assert (up.process.returncode, said.splitlines()[-1]) == (0, "stopped")


async def test_a_killed_node_lowers_coverage_until_its_restart_and_repeated_kills_end_restarts(
    cluster: Up,
) -> None:
    """One node is killed once, the other one as soon as it has started, until it is given up.

    In the end the parent is killed, and its children end.
    """
    pids = await asyncio.to_thread(cluster.wait_ready)
    [node] = [pid for pid in pids if is_of_shard(pid, 0)]
    request = answer_pb2.AnswerRequest(question=QUESTIONS[0][0])
    os.kill(node, signal.SIGSTOP)
    async with AnswerClient(cluster.address) as client:
        reply = await client.ask(request, 20.0)  # it waits for the node for two fifths of this
        assert not reply.coverage.complete
        assert reply.coverage.passages_failed > 0
        os.kill(node, signal.SIGKILL)
        await asyncio.to_thread(until, lambda: is_complete(cluster.address))
        assert set(pids) - children(cluster.process.pid) == {node}
        said = await asyncio.to_thread(kill_until_given_up, cluster, 1)
        assert "node 0 ended with exit code -9: starting it again" in said
        assert "node 1 ended with exit code -9\nit ended 4 times in 60 s, and is given up" in said
        reply = await client.ask(request, LONG)
        assert 0 < reply.coverage.passages_searched < reply.coverage.passages_known
        command = said.rpartition("to start it, run: ")[2].split()
        again = await asyncio.create_subprocess_exec(
            sys.executable, "-m", *command, stderr=subprocess.DEVNULL
        )
        try:
            await asyncio.to_thread(until, lambda: is_complete(cluster.address))
        finally:
            again.terminate()
            await again.wait()
    pids = children(cluster.process.pid)
    assert len(pids) == 2
    cluster.process.kill()
    cluster.process.wait(LONG)
    await asyncio.to_thread(until, lambda: not alive(pids))


def is_complete(address: str) -> bool:
    """Returns whether all shards answer a question."""
    with Client(address) as client:
        return client.ask(QUESTIONS[0][0]).coverage.complete


def kill_until_given_up(up: Up, shard: int) -> str:
    """Kills the node of a shard until it is given up; returns what `up` has printed until then.

    Four kills do not suffice if a busy machine needs more than a minute for them.
    """
    killed: set[int] = set()
    is_given_up = threading.Event()

    def kill() -> None:
        while not is_given_up.wait(0.05):
            for pid in children(up.process.pid) - killed:
                if is_of_shard(pid, shard):
                    os.kill(pid, signal.SIGKILL)
                    killed.add(pid)

    killing = threading.Thread(target=kill)
    killing.start()
    try:
        return up.wait_said("to start it, run: ")
    finally:
        is_given_up.set()
        killing.join()


def is_of_shard(pid: int, shard: int) -> bool:
    try:
        return f"/shard-{shard:05d}-of-" in Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return False


@pytest.mark.parametrize("arguments", [["--version"], ["--help"]])
@pytest.mark.parametrize(
    ("redirected", "code", "said"),
    [
        (">/dev/full", 1, "error: cannot write the output: No space left on device\n"),
        (">&-", 0, ""),
    ],
    ids=["full", "closed"],
)
def test_a_full_output_causes_no_traceback(
    arguments: list[str], redirected: str, code: int, said: str
) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirected}', "sh", sys.executable, "-m", "winnow", *arguments],
        capture_output=True, text=True, timeout=LONG, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (code, said)
