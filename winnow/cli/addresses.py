"""The option `--address` of every tool that asks."""

from typing import Annotated

import typer

from winnow.client.channels import check_address
from winnow.errors import InvalidRequestError


def _checked(address: str) -> str:
    try:
        check_address(address)
    except InvalidRequestError as error:
        raise typer.BadParameter(error.violations[0].description) from error
    return address


FrontAddress = Annotated[
    str,
    typer.Option(
        help="HOST:PORT of a front node, or dns:///HOST:PORT of several.", callback=_checked
    ),
]
DEFAULT_ADDRESS = "127.0.0.1:8080"
