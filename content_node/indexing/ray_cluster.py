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
import tempfile
import threading
import traceback
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from winnow.address import Address
from winnow.errors import UnavailableError, WinnowError
from winnow.packaged import extra

AUTO = "auto"
"""The address that stands for the cluster of this machine."""
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
_TIMED_OUT = "timed out during startup"
"""What Ray says then."""
_TOKEN_VARIABLE = "RAY_AUTH_TOKEN"  # noqa: S105 (the name of a variable)
"""The variable with Ray's token. Without it, Ray writes a token to the home directory."""


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
    if address.startswith(_CLIENT_PREFIX):
        raise WinnowError(
            f"{address} is an address of Ray's client: run the build on a machine of the cluster, "
            f"with --ray-address {AUTO}"
        )
    if address and address != AUTO:
        _check_reachable(address)


def _is_importable(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # its parent package is missing
        return False


def _check_reachable(address: str) -> None:
    try:
        parsed = Address.parse(address)
    except ValueError as error:
        raise WinnowError(
            f"--ray-address: {error}; or give {AUTO} for the cluster of this machine"
        ) from error
    try:
        socket.create_connection((parsed.host, parsed.port), _CONNECT_TIMEOUT).close()
    except OSError as error:
        raise UnavailableError(f"no Ray cluster at {address}: {error}") from error


@contextlib.contextmanager
def open_cluster(address: str, cores: int, object_store_bytes: int) -> Iterator[Any]:
    """Yields the module `ray`, connected to a cluster until the end of the context.

    Args:
        address: the address of a running cluster; empty to start one on this machine.
        cores: the cores of a started cluster.
        object_store_bytes: the memory of a started cluster for objects sent to workers.

    Raises:
        UnavailableError: there is no cluster at the address, or it could not be started.

    """
    os.environ.update(_RAY_ENVIRONMENT)
    with contextlib.ExitStack() as stack:
        options: dict[str, Any] = {"address": address}
        if not address:
            # for logs and sockets; processes that still write there end soon after Ray
            directory = tempfile.TemporaryDirectory(
                prefix="winnow-ray-", ignore_cleanup_errors=True
            )
            options = _start_options(stack.enter_context(directory), cores, object_store_bytes)
        ray = importlib.import_module("ray")
        stack.callback(ray.shutdown)
        _connect_to_ray(ray, options)
        yield ray


def _start_options(directory: str, cores: int, object_store_bytes: int) -> dict[str, Any]:
    """Sets the variables and returns the options that start a cluster on this machine only."""
    for name, value in {**_STARTED_ENVIRONMENT, _TOKEN_VARIABLE: secrets.token_hex(32)}.items():
        os.environ.setdefault(name, value)
    return {
        "address": "local",
        "num_cpus": cores,
        "object_store_memory": object_store_bytes,
        "include_dashboard": False,
        "_temp_dir": directory,
    }


def _connect_to_ray(ray: Any, options: dict[str, Any]) -> None:
    for start in range(1, _STARTS + 1):
        try:
            with _restored_signal_handlers():
                ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)
            return
        except SystemExit as error:  # raised by Ray's own handler of SIGTERM
            raise KeyboardInterrupt from error
        except ConnectionError as error:
            raise UnavailableError(
                f"no Ray cluster at {options['address']}: `ray status` shows whether this machine "
                "is in a cluster"
            ) from error
        except Exception as error:  # Ray raises several unrelated types
            _end_processes(error)
            if _TIMED_OUT not in str(error) or start == _STARTS:
                first = next(iter(str(error).splitlines()), type(error).__name__)
                raise UnavailableError(
                    f"Ray cannot be used at {options['address']}: {first}"
                ) from error


def _end_processes(error: Exception) -> None:
    """Ends the processes of a cluster that did not start.

    Ray itself lets them run until this process ends. Only the frames of the error still know them.
    """
    for frame, _ in traceback.walk_tb(error.__traceback__):
        node: Any = frame.f_locals.get("self")
        if hasattr(node, "kill_all_processes"):
            node.kill_all_processes(check_alive=False, wait=True)


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
