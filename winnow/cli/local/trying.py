"""What to try once a cluster serves: commands and addresses for its user. Pure."""

import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Door:
    """How one gets into a front: what its settings ask of those who call."""

    tls: bool = False
    certificates: bool = False
    """Whether callers need certificates of their own."""
    keys: bool = False
    pages: bool = True
    """Whether HTTP has pages for people."""

    def flags(self) -> str:
        """What a command of Winnow needs, beside the address."""
        return self._given(" --ca FILE", " --cert FILE --key FILE", " --token-file FILE")

    def url(self, address: str) -> str:
        """Where HTTP is."""
        return f"{'https' if self.tls else 'http'}://{address}"

    def grpcurl(self) -> str:
        """What grpcurl needs."""
        header = " -H 'authorization: Bearer TOKEN'"
        plain = "" if self.tls else " -plaintext"
        return plain + self._given(" -cacert FILE", " -cert FILE -key FILE", header)

    def _given(self, tls: str, certificates: str, keys: str) -> str:
        asked = ((self.tls, tls), (self.certificates, certificates), (self.keys, keys))
        return "".join(words for needed, words in asked if needed)


def try_line(address: str, door: Door, question: str = "QUESTION") -> str:
    """Commands that ask a question."""
    body = f'{{"question": "{question}"}}'
    return (
        f'  winnow ask "{question}" --address {address}{door.flags()}\n'
        f"  grpcurl{door.grpcurl()} -d '{body}' {address} winnow.v1.AnswerService/Answer"
    )


def predict_line(address: str, door: Door, text: str = "TEXT", heads: str = "HEAD") -> str:
    """A command that predicts."""
    return f'  winnow predict "{text}" --heads {heads} --address {address}{door.flags()}'


def feed_line(address: str, door: Door) -> str:
    """A command that feeds."""
    return f"  winnow feed FILE --address {address}{door.flags()}"


def http_line(address: str, door: Door) -> str:
    """Where the page is, and where HTTP is described."""
    url = door.url(address)
    if not door.pages:
        return f"HTTP on {url}, described on {url}/openapi.json"
    return f"open {url} in a browser; for programs: {url}/docs"


def activation(on_path: bool, prefix: Path = Path(sys.prefix), here: Path | None = None) -> str:
    """The command after which a new terminal knows `winnow`; empty if it does already."""
    script = prefix / "bin" / "activate"
    if on_path or not script.is_file():
        return ""
    here = here or Path.cwd()
    return f"  source {script.relative_to(here) if script.is_relative_to(here) else script}"
