"""What a build says and leaves where Ray is missing, does not start, or is in use already."""

import ctypes
import importlib.util
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tenacious import LONG

from winnow.content_node.indexing import ray_cluster as cluster
from winnow.content_node.indexing.ray_cluster import open_cluster
from winnow.errors import UnavailableError, WinnowError

SDK = "opentelemetry.sdk"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Has no variable and no module of Ray, and is restored at the end."""
    before = dict(os.environ)
    for name in [each for each in before if each.startswith("RAY_")]:
        del os.environ[name]
    monkeypatch.delitem(sys.modules, "ray", raising=False)
    yield
    os.environ.clear()
    os.environ.update(before)


def lacking(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    def found(name: str) -> ModuleSpec | None:
        return None if name == missing else ModuleSpec(name, None)

    monkeypatch.setattr(cluster, "find_spec", found)


@pytest.mark.parametrize(
    ("missing", "named"),
    [
        pytest.param("ray", "Ray is not installed", id="ray"),
        pytest.param(SDK, "Ray cannot start without the SDK of OpenTelemetry", id="its-sdk"),
    ],
)
def test_a_missing_package_is_named_with_the_command_to_install_it(
    missing: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking(monkeypatch, missing)

    with pytest.raises(WinnowError, match=rf"{named}: .*pip install.*\[ray\]"):
        cluster.check_ray("")


def test_a_package_whose_parent_is_missing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def found(name: str) -> ModuleSpec | None:
        return importlib.util.find_spec("no_such_parent.sdk" if name == SDK else "importlib")

    monkeypatch.setattr(cluster, "find_spec", found)

    with pytest.raises(WinnowError, match="SDK of OpenTelemetry"):
        cluster.check_ray("")


def test_a_cluster_that_runs_already_is_used_without_the_sdk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lacking(monkeypatch, SDK)

    with socket.create_server(("127.0.0.1", 0)) as there:
        cluster.check_ray(f"127.0.0.1:{there.getsockname()[1]}")
    cluster.check_ray(cluster.AUTO)


@pytest.mark.parametrize("variable", [False, True])
@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1:1", "no Ray cluster at 127.0.0.1:1"),
        ("ray://127.0.0.1:10001", "--ray-address auto"),
        ("nonsense", "expected HOST:PORT"),
    ],
)
def test_an_address_that_no_cluster_can_have_is_refused_at_once(
    address: str, said: str, variable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking(monkeypatch, SDK)
    if variable:  # Ray uses it for `auto`
        monkeypatch.setenv("RAY_ADDRESS", address)
    setting = "RAY_ADDRESS" if variable else "--ray-address"
    with pytest.raises(WinnowError, match=f"{setting}: .*{said}"):
        cluster.check_ray(cluster.AUTO if variable else address)


class Ray(ModuleType):
    """Stands for Ray. The first starts of a cluster fail."""

    def __init__(self, failing: int = 0, error: BaseException | None = None) -> None:
        super().__init__("ray")
        self._failing, self._error = failing, error
        self.starts, self.running, self.is_connected = 0, 0, False

    def is_initialized(self) -> bool:
        return self.is_connected

    def init(self, **_: object) -> None:
        self.starts += 1
        _Node(self, self._error if self.starts <= self._failing else None)
        self.is_connected = True

    def shutdown(self) -> None:
        """Ray ends only a cluster that did start. Its native code resets a handler."""
        ctypes.CDLL(None).signal(int(signal.SIGTERM), None)
        if self.is_connected:
            self.running -= 1
        self.is_connected = False


class _Node:
    def __init__(self, ray: Ray, error: BaseException | None) -> None:
        self._ray = ray
        ray.running += 1
        if error is not None:
            raise type(error)(*error.args)  # one for each start, as Ray's

    def kill_all_processes(self, *, check_alive: bool, allow_graceful: bool, wait: bool) -> None:
        assert allow_graceful, "else Ray's node process leaves its own children"
        assert wait
        assert not check_alive
        self._ray.running -= 1


def installed(monkeypatch: pytest.MonkeyPatch, ray: Ray) -> None:
    """Makes a build import this Ray."""
    real = importlib.import_module

    def import_module(name: str) -> Any:
        return ray if name == "ray" else real(name)

    monkeypatch.setattr(importlib, "import_module", import_module)


SLOW = "The current node timed out during startup. This could happen because"


def test_a_cluster_that_needs_longer_than_ray_gives_is_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ray = Ray(2, Exception(SLOW))
    installed(monkeypatch, ray)
    with open_cluster("", 1, 0):
        assert (ray.starts, ray.running) == (3, 1)
    assert ray.running == 0


@pytest.mark.parametrize(
    ("error", "starts", "said"),
    [
        (Exception(SLOW), 3, "not start on this machine within 30 seconds, 3 times: .* less busy"),
        (
            RuntimeError("Failed:\nno such file"),
            1,
            "not start on this machine: Failed: no such file",
        ),
        (ConnectionError("no reply"), 1, "not start on this machine: no reply"),
    ],
)
def test_a_cluster_that_cannot_start_leaves_no_process(
    error: Exception, starts: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = Ray(99, error)
    installed(monkeypatch, ray)
    with pytest.raises(UnavailableError, match=said), open_cluster("", 1, 0):
        pass
    assert (ray.starts, ray.running) == (starts, 0)


@pytest.mark.parametrize("raised", [KeyboardInterrupt(), SystemExit(1)], ids=["ctrl-c", "sigterm"])
def test_an_interrupted_start_leaves_no_process(
    raised: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = Ray(1, raised)
    installed(monkeypatch, ray)
    with pytest.raises(KeyboardInterrupt), open_cluster("", 1, 0):
        pass
    assert (ray.starts, ray.running) == (1, 0)


def test_a_build_after_ray_handles_signals_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, Ray())
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        with open_cluster("", 1, 0):
            pass
        assert is_handled(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_signals_are_handled_while_ray_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray takes a second to end, after it has removed the handler."""
    restored, set_handler = threading.Event(), signal.signal

    class SlowRay(Ray):
        def shutdown(self) -> None:
            super().shutdown()
            restored.clear()
            assert restored.wait(LONG)
            assert is_handled(signal.SIGTERM)

    def signal_of_main_thread(number: int, handler: Any) -> Any:
        previous = set_handler(number, handler)
        restored.set()
        return previous

    installed(monkeypatch, SlowRay())
    monkeypatch.setattr(signal, "signal", signal_of_main_thread)
    before = set_handler(signal.SIGTERM, lambda *_: None)
    try:
        with open_cluster("", 1, 0):
            pass
    finally:
        set_handler(signal.SIGTERM, before)


def is_handled(number: int) -> bool:
    """Whether the kernel calls a handler at this signal. Native code may have removed it."""
    status = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (caught,) = (line.split()[1] for line in status if line.startswith("SigCgt:"))
    return bool(int(caught, 16) >> (number - 1) & 1)


def test_no_cluster_where_one_is_expected_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = Ray(1, ConnectionError("Could not find any running Ray instance. Please specify …"))
    installed(monkeypatch, ray)
    with (
        pytest.raises(UnavailableError, match="no Ray cluster at auto: `ray status`"),
        open_cluster("auto", 1, 0),
    ):
        pass


@pytest.mark.parametrize("address", ["", "auto"])
def test_the_programs_own_cluster_is_not_ended(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = Ray()
    ray.init()
    installed(monkeypatch, ray)
    with pytest.raises(WinnowError, match="uses Ray already"), open_cluster(address, 1, 0):
        pass
    assert (ray.starts, ray.running) == (1, 1)


def test_a_second_build_at_the_same_time_does_not_end_the_cluster_of_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ray = Ray()
    installed(monkeypatch, ray)
    with open_cluster("", 1, 0):
        with pytest.raises(WinnowError, match="uses Ray already"), open_cluster("", 1, 0):
            pass
        assert ray.running == 1
    with open_cluster("", 1, 0):
        assert (ray.starts, ray.running) == (2, 1)


def test_ray_that_has_read_other_variables_starts_no_cluster(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ray = Ray()
    installed(monkeypatch, ray)
    monkeypatch.setitem(sys.modules, "ray", ray)
    with pytest.raises(WinnowError, match="imported before the build"), open_cluster("", 1, 0):
        pass
    with open_cluster("auto", 1, 0):
        assert ray.starts == 1


def test_the_token_of_a_builds_own_cluster_is_not_sent_to_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ray = Ray()
    installed(monkeypatch, ray)
    with open_cluster("", 1, 0):
        monkeypatch.setitem(sys.modules, "ray", ray)
    with pytest.raises(WinnowError, match="has the token of"), open_cluster("auto", 1, 0):
        pass
    with open_cluster("", 1, 0):
        assert ray.starts == 2
