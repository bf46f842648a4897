"""Suggests commands and addresses to try when a cluster serves. Pure."""

import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontRequirements:
    """What a front node requires of its callers."""

    tls: bool = False
    certificates: bool = False
    """Whether callers need a client certificate."""
    keys: bool = False
    """Whether callers need a key."""
    pages: bool = True
    """Whether HTTP serves web pages."""

    def flags(self) -> str:
        """Flags that a `winnow` command needs besides --address."""
        return self._required_flags(" --ca FILE", " --cert FILE --key FILE", " --token-file FILE")

    def url(self, address: str) -> str:
        """The HTTP URL of an address."""
        return f"{'https' if self.tls else 'http'}://{address}"

    def grpcurl(self) -> str:
        """Flags of grpcurl."""
        header = " -H 'authorization: Bearer TOKEN'"
        plain = "" if self.tls else " -plaintext"
        return plain + self._required_flags(" -cacert FILE", " -cert FILE -key FILE", header)

    def _required_flags(self, tls: str, certificates: str, keys: str) -> str:
        pairs = ((self.tls, tls), (self.certificates, certificates), (self.keys, keys))
        return "".join(flags for required, flags in pairs if required)


def ask_lines(address: str, requirements: FrontRequirements, question: str = "QUESTION") -> str:
    """Two commands that ask a question: one with `winnow`, one with grpcurl."""
    body = f'{{"question": "{question}"}}'
    return (
        f'  winnow ask "{question}" --address {address}{requirements.flags()}\n'
        f"  grpcurl{requirements.grpcurl()} -d '{body}' {address} winnow.v1.AnswerService/Answer"
    )


def predict_line(
    address: str, requirements: FrontRequirements, text: str = "TEXT", heads: str = "HEAD"
) -> str:
    """A command that applies heads."""
    return f'  winnow predict "{text}" --heads {heads} --address {address}{requirements.flags()}'


def feed_line(address: str, requirements: FrontRequirements) -> str:
    """A command that feeds passages."""
    return f"  winnow feed FILE --address {address}{requirements.flags()}"


def http_line(address: str, requirements: FrontRequirements) -> str:
    """A line with the URL of the web page and of the HTTP reference."""
    url = requirements.url(address)
    if not requirements.pages:
        return f"HTTP on {url}; its reference: {url}/openapi.json"
    return f"open {url} in a browser; reference for programs: {url}/docs"


def activation_command(
    on_path: bool, prefix: Path = Path(sys.prefix), here: Path | None = None
) -> str:
    """The command that puts `winnow` on the PATH of a new terminal; empty if it is there."""
    script = prefix / "bin" / "activate"
    if on_path or not script.is_file():
        return ""
    here = here or Path.cwd()
    return f"  source {script.relative_to(here) if script.is_relative_to(here) else script}"
