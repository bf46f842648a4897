"""Hosts of a made-up network: network namespaces on two switches (Linux, as root).

Each rack has a switch; a link joins the two. All of it lies in namespaces of its own: the network
of the machine is neither used nor changed, and nothing leads out. All is removed at the end.
"""

import contextlib
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_RESOLVERS = Path("/etc/netns")
"""Where `ip netns exec` looks for files that a host has instead of the machine's."""
_RACKS = ("a", "b")
_SUBNET = "10.77.0"


@dataclass(slots=True)
class Host:
    """A host of the network."""

    name: str
    space: str
    """Its namespace."""
    rack: str
    address: str = ""

    def command(self, words: Sequence[str]) -> list[str]:
        """What runs `words` on this host; the process that is started becomes theirs."""
        return ["ip", "netns", "exec", self.space, *words]


class Network:
    """Two racks of hosts."""

    def __init__(self, prefix: str, resolver: str) -> None:
        """`prefix` of all names of namespaces; `resolver`: the address of the DNS server."""
        self._prefix, self._resolver = prefix, resolver
        self._switch = f"{prefix}-switch"
        self._spaces: list[str] = []
        self._last = 9

    def make(self) -> None:
        """The switches, and the link between them."""
        self._space(self._switch)
        for rack in _RACKS:
            self._inside(self._switch, f"link add rack-{rack} type bridge")
            self._inside(self._switch, f"link set rack-{rack} up")
        self._inside(self._switch, "link add up-a type veth peer name up-b")
        for rack in _RACKS:
            self._inside(self._switch, f"link set up-{rack} master rack-{rack} up")

    def add(self, name: str, rack: str, address: str = "") -> Host:
        """A host in a rack, connected; at the next free address unless one is given."""
        host = Host(name, f"{self._prefix}-{name}", rack)
        self._space(host.space)
        plug = f"to-{name}"
        _ip(f"link add net netns {host.space} type veth peer name {plug} netns {self._switch}")
        self._inside(self._switch, f"link set {plug} master rack-{rack} up")
        self._inside(host.space, "link set lo up")
        self._inside(host.space, "link set net up")
        self.number(host, address)
        resolver = _RESOLVERS / host.space
        resolver.mkdir(parents=True)
        (resolver / "resolv.conf").write_text(
            f"nameserver {self._resolver}\noptions timeout:1 attempts:1\n"
        )
        return host

    def number(self, host: Host, address: str = "") -> None:
        """Gives a host another address, as a pod gets when it is made anew."""
        self._last += not address
        host.address = address or f"{_SUBNET}.{self._last}"
        self._inside(host.space, "address flush dev net")
        self._inside(host.space, f"address add {host.address}/24 dev net")

    def plug(self, host: Host, in_: bool) -> None:
        """Pulls the cable of a host, or puts it back: nobody is told."""
        self._inside(self._switch, f"link set to-{host.name} {'up' if in_ else 'down'}")

    def join(self, joined: bool) -> None:
        """Cuts the link between the racks, or mends it."""
        self._inside(self._switch, f"link set up-a {'up' if joined else 'down'}")

    def remove(self) -> None:
        """Everything that was made."""
        for space in reversed(self._spaces):
            subprocess.run(["ip", "netns", "del", space], check=False)
            shutil.rmtree(_RESOLVERS / space, ignore_errors=True)
        with contextlib.suppress(OSError):
            _RESOLVERS.rmdir()  # others may have files there

    def _space(self, name: str) -> None:
        _ip(f"netns add {name}")
        self._spaces.append(name)

    def _inside(self, space: str, words: str) -> None:
        _ip(f"-netns {space} {words}")


@contextlib.contextmanager
def made(prefix: str, resolver: str) -> Iterator[Network]:
    """A network, until left."""
    network = Network(prefix, resolver)
    try:
        network.make()
        yield network
    finally:
        network.remove()


def _ip(words: str) -> None:
    """Raises `subprocess.CalledProcessError` if it cannot be done; `ip` has said why."""
    subprocess.run(["ip", *words.split()], check=True)
