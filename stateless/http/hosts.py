"""By which names a front may be called. Pure.

A page of another site can have its own name lead to this machine (DNS rebinding), and then read
what is served here to nobody but this machine. So a front that listens on loopback is called by an
IP address or as localhost, or by names that it was told.
"""

import ipaddress
from collections.abc import Callable, Sequence

_LOCAL = "localhost"


def names_of(listen_host: str, named: Sequence[str]) -> Callable[[str], bool]:
    """Whether a front that listens on `listen_host` may be called by what a Host header says."""
    known = {name.lower() for name in named}
    if not known and not _is_loopback(listen_host):
        return lambda _host: True
    return lambda host: (name := _name(host)) in known or name == _LOCAL or _is_address(name)


def _name(host: str) -> str:
    """A Host header without its port and brackets."""
    name, _, port = host.rpartition(":")
    name = name if port.isdecimal() and name else host
    return name.strip("[]").rstrip(".").lower()


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host.lower() == _LOCAL or (_is_address(host) and ipaddress.ip_address(host).is_loopback)
