"""A Ray cluster for the time of one build: started here and ended again, or running already.

Keeps Ray quiet, has it listen to this machine alone, and leaves nothing behind.
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
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from winnow.address import Address
from winnow.errors import UnavailableError, WinnowError
from winnow.packaged import extra

AUTO = "auto"
"""The address of the cluster to which this machine belongs."""
_CLIENT = "ray://"
_PATIENCE = 5.0
"""Seconds for a cluster to accept a connection; Ray itself would try for over five minutes."""
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # else it reports what it runs on to its makers
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # else it warns that this is going to change
}
# before Ray is imported
_OWN = {
    # else all its processes listen on all addresses of the machine; named after other systems,
    # where this is the default
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token",
    # seconds for its server to start: the default of 30 was too few once on a busy machine
    "RAY_gcs_server_port_wait_time_s": "90",
}
_TOKEN = "RAY_AUTH_TOKEN"  # noqa: S105 (the name of a variable)
"""The variable of Ray's token. Without it Ray leaves a token in the user's home."""


def check_ray(address: str) -> None:
    """Checks that Ray can be used, before a build begins; `address` as for `cluster`.

    Raises:
        WinnowError: Ray or a package that it needs to start is not installed, or there cannot be a
            cluster at the address.

    """
    if find_spec("ray") is None:
        raise WinnowError(f"Ray is not installed: {extra('ray')}")
    # its agent imports it and `ray` does not require it; a cluster that runs already has its own
    if not address and not _importable("opentelemetry.sdk"):
        raise WinnowError(f"Ray cannot start without the SDK of OpenTelemetry: {extra('ray')}")
    if address.startswith(_CLIENT):
        raise WinnowError(
            f"{address} is an address of Ray's client: run the build on a machine of the cluster, "
            f"with --ray-address {AUTO}"
        )
    if address and address != AUTO:
        _reach(address)


def _importable(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # the package around it is missing
        return False


def _reach(address: str) -> None:
    try:
        asked = Address.parse(address)
    except ValueError as error:
        raise WinnowError(f"--ray-address: {error}; or {AUTO}") from error
    try:
        socket.create_connection((asked.host, asked.port), _PATIENCE).close()
    except OSError as error:
        raise UnavailableError(f"no Ray cluster at {address}: {error}") from error


@contextlib.contextmanager
def cluster(address: str, cores: int, room: int) -> Iterator[Any]:
    """The module `ray`, connected to a cluster.

    Args:
        address: the address of a running cluster; empty to start one on this machine.
        cores: the cores of a cluster that is started.
        room: the bytes that a cluster that is started has for objects sent to workers.

    Raises:
        UnavailableError: there is no such cluster, or it could not be started.

    """
    os.environ.update(_QUIET)
    with contextlib.ExitStack() as stack:
        place = "" if address else stack.enter_context(_directory())
        options = {"address": address} if address else _own(place, cores, room)
        ray = importlib.import_module("ray")
        stack.callback(ray.shutdown)
        _connect(ray, options)
        yield ray


def _own(directory: str, cores: int, room: int) -> dict[str, Any]:
    """The options of a cluster for this process and this machine alone."""
    for name, value in {**_OWN, _TOKEN: secrets.token_hex(32)}.items():
        os.environ.setdefault(name, value)
    return {
        "address": "local",
        "num_cpus": cores,
        "object_store_memory": room,
        "include_dashboard": False,
        "_temp_dir": directory,
    }


def _directory() -> tempfile.TemporaryDirectory[str]:
    """The directory for logs and sockets. Processes that still write there end with Ray."""
    return tempfile.TemporaryDirectory(prefix="winnow-ray-", ignore_cleanup_errors=True)


def _connect(ray: Any, options: dict[str, Any]) -> None:
    try:
        with _signals_kept():
            ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)
    except SystemExit as error:  # its own handler of SIGTERM
        raise KeyboardInterrupt from error
    except ConnectionError as error:
        raise UnavailableError(
            f"no Ray cluster at {options['address']}: is this machine in one? (ray status)"
        ) from error
    except Exception as error:  # it raises several unrelated types
        first = next(iter(str(error).splitlines()), type(error).__name__)
        raise UnavailableError(f"Ray cannot be used at {options['address']}: {first}") from error


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    """Restores the handlers of signals that Ray replaces."""
    kept = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            for each, handler in kept.items():
                signal.signal(each, handler)
