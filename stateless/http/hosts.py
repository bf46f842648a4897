"""Checks the Host and Origin headers of requests. Pure.

A page of another site can make its own host name resolve to a front (DNS rebinding). Then the page
could read or feed the front from the browser's network. So a front accepts only IP addresses,
localhost and configured names, which an attacker cannot control. If callers need keys, any name is
safe, because such a page has no key.
"""

import ipaddress
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

_LOCAL = "localhost"


def host_check(
    listen_host: str, allowed: Sequence[str], keys: bool = False
) -> Callable[[str], bool]:
    """Returns a check of Host headers for a front that listens on `listen_host`.

    `allowed` are the names of --http-hosts. Every name is allowed if --http-hosts is empty, `keys`
    are required, and other machines can reach the front. A missing header is always allowed:
    browsers always send the header, and simple probes do not.
    """
    known = {name.lower() for name in allowed}
    if keys and not known and not _is_loopback(listen_host):
        return lambda _host: True
    return lambda host: (
        not host or (name := _host_name(host)) in known or name == _LOCAL or _is_address(name)
    )


def is_allowed_origin(origin: str, host: str, allowed: Sequence[str]) -> bool:
    """Whether a page of this origin may send a request to this host.

    A page may call the front if it is on the same host, on this machine, or on a host of
    `allowed`, the names of --http-hosts. A missing header is allowed: only browsers send it.
    """
    if not origin:
        return True
    try:
        name = urlsplit(origin).hostname or ""
    except ValueError:
        return False
    known = {each.lower() for each in allowed} | {_host_name(host)} - {""}
    return name in known or _is_loopback(name)


def _host_name(host: str) -> str:
    """Returns a Host header without its port and brackets."""
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
