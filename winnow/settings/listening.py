"""Settings that are addresses to listen on: checked when settings are read."""

from typing import Annotated

from pydantic import AfterValidator

from winnow.address import Address


def _checked(value: str) -> str:
    Address.parse(value)
    return value


ListenAddress = Annotated[str, AfterValidator(_checked)]
"""HOST:PORT; port 0 for any free one."""
OptionalListenAddress = Annotated[str, AfterValidator(lambda value: value and _checked(value))]
"""The same, or empty for nothing."""
