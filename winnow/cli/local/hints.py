"""Commands and addresses to try once a cluster serves. Pure."""

import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class FrontDemands:
    """What a front node demands of its callers."""

    tls: bool = False
    certificates: bool = False
    """Whether callers need a certificate."""
    keys: bool = False
    pages: bool = True
    """Whether HTTP serves web pages."""

    def flags(self) -> str:
        """Flags that a command of Winnow needs besides the address."""
        return self._needed(" --ca FILE", " --cert FILE --key FILE", " --token-file FILE")

    def url(self, address: str) -> str:
        """The URL of HTTP at an address."""
        return f"{'https' if self.tls else 'http'}://{address}"

    def grpcurl(self) -> str:
        """Flags that grpcurl needs."""
        header = " -H 'authorization: Bearer TOKEN'"
        plain = "" if self.tls else " -plaintext"
        return plain + self._needed(" -cacert FILE", " -cert FILE -key FILE", header)

    def _needed(self, tls: str, certificates: str, keys: str) -> str:
        pairs = ((self.tls, tls), (self.certificates, certificates), (self.keys, keys))
        return "".join(flags for needed, flags in pairs if needed)


def ask_lines(address: str, demands: FrontDemands, question: str = "QUESTION") -> str:
    """Commands that ask a question."""
    body = f'{{"question": "{question}"}}'
    return (
        f'  winnow ask "{question}" --address {address}{demands.flags()}\n'
        f"  grpcurl{demands.grpcurl()} -d '{body}' {address} winnow.v1.AnswerService/Answer"
    )


def predict_line(
    address: str, demands: FrontDemands, text: str = "TEXT", heads: str = "HEAD"
) -> str:
    """A command that predicts."""
    return f'  winnow predict "{text}" --heads {heads} --address {address}{demands.flags()}'


def feed_line(address: str, demands: FrontDemands) -> str:
    """A command that feeds."""
    return f"  winnow feed FILE --address {address}{demands.flags()}"


def http_line(address: str, demands: FrontDemands) -> str:
    """The web page, and the description of HTTP."""
    url = demands.url(address)
    if not demands.pages:
        return f"HTTP on {url}, described on {url}/openapi.json"
    return f"open {url} in a browser; for programs: {url}/docs"


def activation(on_path: bool, prefix: Path = Path(sys.prefix), here: Path | None = None) -> str:
    """The command that makes `winnow` known to a new terminal; empty if it is known already."""
    script = prefix / "bin" / "activate"
    if on_path or not script.is_file():
        return ""
    here = here or Path.cwd()
    return f"  source {script.relative_to(here) if script.is_relative_to(here) else script}"
