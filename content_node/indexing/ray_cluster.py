"""Connects a build to a running Ray cluster, or starts a cluster for the build.

A started cluster listens only on this machine and leaves no files behind.
"""

import contextlib
import importlib
import logging
import os
import secrets
import signal
import socket
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from importlib.util import find_spec
from typing import Any

from winnow.address import Address
from winnow.errors import UnavailableError, WinnowError
from winnow.packaged import extra

AUTO = "auto"
"""The address that stands for the cluster of this machine."""
_OWN = "local"
"""Ray's address for a new cluster."""
_CLIENT_PREFIX = "ray://"
_CONNECT_TIMEOUT = 5.0
"""Seconds for a cluster to accept a connection; Ray itself would try for over five minutes."""
_RAY_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # else Ray sends statistics to its makers
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else Ray warns that this default will change
}
"""Environment variables for every cluster, set before Ray is imported."""
_STARTED_ENVIRONMENT = {
    # with 0, Ray listens only on localhost, as it does by default on Windows and macOS
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token",
    # seconds for Ray's server to start: on a busy machine the default of 30 can be too few
    "RAY_gcs_server_port_wait_time_s": "90",
}
"""Further environment variables for a cluster that is started for the build."""
_STARTS = 3
"""How often a cluster is started that needs longer than Ray's fixed limit of 30 seconds."""
TIMED_OUT = "timed out during startup"
"""What Ray says then."""
_RESTORE_SECONDS = 0.005
"""Seconds after which signal handlers are restored again while Ray ends."""
_REASON = 500
"""Maximum number of characters of Ray's error in a message."""
_USED = (
    "this process uses Ray already, and Ray connects a process to one cluster at a time: call "
    "ray.shutdown() first, or run the build in another process"
)
_TOKEN_VARIABLE = "RAY_AUTH_TOKEN"  # noqa: S105 (the name of a variable)
"""The variable with Ray's token. Without it, Ray writes a token to the home directory."""
_TOKEN_PREFIX = "winnow-"  # noqa: S105 (no token)
"""The beginning of a token that was made for a cluster of a build."""
_ADDRESS_VARIABLE = "RAY_ADDRESS"
"""The variable with the address that Ray uses for `auto`."""
_in_use = threading.Lock()
"""Held while a build uses Ray: Ray connects a process to one cluster at a time."""


def check_ray(address: str) -> None:
    """Checks that Ray can be used, before a build begins; `address` as for `open_cluster`.

    Raises:
        WinnowError: Ray or a package that Ray needs is not installed, or there is no cluster at the
            address.

    """
    if find_spec("ray") is None:
        raise WinnowError(f"Ray is not installed: {extra('ray')}")
    # Ray's agent imports the SDK, but `ray` does not require it; a running cluster has it
    if not address and not _is_importable("opentelemetry.sdk"):
        raise WinnowError(f"Ray cannot start without the SDK of OpenTelemetry: {extra('ray')}")
    setting = "--ray-address"
    if address == AUTO and (preset := os.environ.get(_ADDRESS_VARIABLE)):
        setting, address = _ADDRESS_VARIABLE, preset
    if address.startswith(_CLIENT_PREFIX):
        raise WinnowError(
            f"{setting}: {address} is an address of Ray's client: run the build on a machine of "
            f"the cluster, with --ray-address {AUTO} and without the variable {_ADDRESS_VARIABLE}"
        )
    if address and address != AUTO:
        _check_reachable(address, setting)


def _is_importable(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # its parent package is missing
        return False


def _check_reachable(address: str, setting: str) -> None:
    try:
        parsed = Address.parse(address)
    except ValueError as error:
        raise WinnowError(
            f"{setting}: {error}; or give {AUTO} for the cluster of this machine"
        ) from error
    try:
        socket.create_connection((parsed.host, parsed.port), _CONNECT_TIMEOUT).close()
    except OSError as error:
        raise UnavailableError(f"{setting}: no Ray cluster at {address}: {error}") from error


@contextlib.contextmanager
def open_cluster(address: str, cores: int, object_store_bytes: int) -> Iterator[Any]:
    """Yields the module `ray`, connected to a cluster until the end of the context.

    Args:
        address: the address of a running cluster; empty to start one on this machine.
        cores: the cores of a started cluster.
        object_store_bytes: the memory of a started cluster for objects sent to workers.

    Raises:
        UnavailableError: there is no cluster at the address, or it could not be started.
        WinnowError: this process uses Ray already, or has used it in a way that allows no such
            cluster.

    """
    with contextlib.ExitStack() as stack:
        if not _in_use.acquire(blocking=False):
            raise WinnowError(_USED)
        stack.callback(_in_use.release)
        _check_variables(own=not address)
        os.environ.update(_RAY_ENVIRONMENT)
        options: dict[str, Any] = {"address": address}
        if not address:
            # for logs and sockets; processes that still write there end soon after Ray
            directory = tempfile.TemporaryDirectory(
                prefix="winnow-ray-", ignore_cleanup_errors=True
            )
            options = _start_options(stack.enter_context(directory), cores, object_store_bytes)
        ray = importlib.import_module("ray")
        if ray.is_initialized():
            raise WinnowError(_USED)
        stack.callback(_shut_down, ray)
        _connect_to_ray(ray, options)
        yield ray


def _check_variables(*, own: bool) -> None:
    """Raises WinnowError if Ray cannot use an own cluster, or a running one.

    Ray reads its variables when it is imported, and its token once.
    """
    if own and "ray" in sys.modules:
        if not os.environ.keys() >= {*_STARTED_ENVIRONMENT, _TOKEN_VARIABLE}:
            raise WinnowError(
                "Ray was imported before the build, without the variables of a cluster that only "
                "this machine can reach: run the build in another process, or give the address of "
                "a running cluster"
            )
    elif not own and os.environ.get(_TOKEN_VARIABLE, "").startswith(_TOKEN_PREFIX):
        raise WinnowError(
            "this process has the token of the Ray cluster that it started for an earlier build: "
            "build with a running cluster in another process"
        )


def _start_options(directory: str, cores: int, object_store_bytes: int) -> dict[str, Any]:
    """Sets the variables and returns the options that start a cluster on this machine only."""
    token = _TOKEN_PREFIX + secrets.token_hex(32)
    for name, value in {**_STARTED_ENVIRONMENT, _TOKEN_VARIABLE: token}.items():
        os.environ.setdefault(name, value)
    return {
        "address": _OWN,
        "num_cpus": cores,
        "object_store_memory": object_store_bytes,
        "include_dashboard": False,
        "_temp_dir": directory,
    }


def _connect_to_ray(ray: Any, options: dict[str, Any]) -> None:
    for start in range(1, _STARTS + 1):
        try:
            _init_ray(ray, options)
            return
        except SystemExit as error:  # raised by Ray's own handler of SIGTERM
            raise KeyboardInterrupt from error
        except Exception as error:  # Ray raises several unrelated types
            if TIMED_OUT not in str(error) or start == _STARTS:
                raise _as_unavailable(error, options["address"]) from error


def _init_ray(ray: Any, options: dict[str, Any]) -> None:
    try:
        with _restored_signal_handlers():
            ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)
    except BaseException as error:
        _end_processes(error)
        raise


def _end_processes(error: BaseException) -> None:
    """Ends the processes of a cluster that did not start.

    Ray itself lets them run until this process ends. Only the frames of the error still know them.
    """
    for frame, _ in traceback.walk_tb(error.__traceback__):
        node: Any = frame.f_locals.get("self")
        if hasattr(node, "kill_all_processes"):
            # gracefully, so that Ray's node process ends its own children
            node.kill_all_processes(check_alive=False, allow_graceful=True, wait=True)


def _as_unavailable(error: Exception, address: str) -> UnavailableError:
    reason = " ".join(str(error).split())[:_REASON] or type(error).__name__
    if address == _OWN and TIMED_OUT in reason:
        return UnavailableError(
            f"Ray did not start on this machine within 30 seconds, {_STARTS} times: build when "
            f"the machine is less busy, or without --engine ray. Ray's error: {reason}"
        )
    if address == _OWN:
        return UnavailableError(f"Ray did not start on this machine: {reason}")
    if isinstance(error, ConnectionError):
        return UnavailableError(
            f"no Ray cluster at {address}: `ray status` shows whether this machine is in a cluster"
        )
    return UnavailableError(f"Ray cannot be used at {address}: {reason}")


def _shut_down(ray: Any) -> None:
    """Ends Ray. It takes a second, and its native code removes the handler of SIGTERM early on.

    So the handlers are restored all the time: without them, a signal would end this process at
    once.
    """
    with ThreadPoolExecutor(1) as threads:
        ended, running = threads.submit(ray.shutdown), True
        while running:
            with _restored_signal_handlers():
                running = bool(wait([ended], _RESTORE_SECONDS).not_done)
    ended.result()


@contextlib.contextmanager
def _restored_signal_handlers() -> Iterator[None]:
    """Restores the signal handlers that Ray replaces."""
    handlers = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for each, handler in handlers.items():
                signal.signal(each, handler)
