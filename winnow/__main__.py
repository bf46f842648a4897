"""The command `winnow`: puts the commands of every part together.

The only place in `winnow` that knows the services; they are imported when their command runs, so
that `winnow --help` is quick and serving never needs the training libraries.
"""

import importlib
import sys
from importlib.util import find_spec
from typing import Annotated, Any

import typer
from rich.console import Console

from winnow.errors import WinnowError
from winnow.packaged import checkout, installed_version
from winnow.settings.source import SettingsError
from winnow.tools.local.processes import die_with_parent

_HELP = """Answer plain-language questions with the exact words of your passages.

Start here: winnow index build --passages FILE --out DIR --shards 3, then winnow up --index DIR.
Every option of front, node and up can also be an environment variable or stand in a TOML file.
"""

_MODELS = "models.cli:app"
_COMMANDS = {
    "up": (
        "winnow.tools.local.cli:up",
        "Run a whole cluster on this machine, one process per node.",
    ),
    "front": ("stateless.cli:front", "Run a front node: take questions, merge answers."),
    "node": ("content_node.cli:node", "Run a content node: serve one shard."),
    "evaluate": ("winnow.tools.evaluation.cli:evaluate", "Measure how right a running system is."),
    "bench": ("winnow.tools.loadtest.cli:bench", "Measure how fast a running system is."),
    "demo": (
        "winnow.tools.local.demo_cli:demo",
        "Build an index, start a cluster, ask, and serve.",
    ),
}
_GROUPS = {
    "index": ("content_node.indexing.cli:app", "Build, inspect and verify indexes."),
    "pareto": ("winnow.tools.pareto.cli:app", "Draw accuracy against latency, and choose."),
    "models": (_MODELS, "Train, export, quantise and verify models."),
}


def app(arguments: list[str]) -> typer.Typer:
    """The command line, with only the command that `arguments` name imported."""
    root = typer.Typer(
        help=_HELP,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"max_content_width": 100},
    )
    root.callback(invoke_without_command=True)(_root)
    wanted = next((word for word in arguments if not word.startswith("-")), None)
    for name, (place, text) in _COMMANDS.items():
        command = _load(place) if name == wanted else _placeholder
        root.command(name, help=None if name == wanted else text)(command)
    for name, (place, text) in _GROUPS.items():
        if place == _MODELS and name != wanted and not _can_make_models():
            continue
        group = _load(place) if name == wanted else typer.Typer()
        if name != wanted:
            group.callback()(_placeholder)
        root.add_typer(group, name=name, help=text)
    return root


def main(arguments: list[str] | None = None) -> None:
    """Runs a command; exits 0, 1 for an error, 2 for wrong usage, 130 for Ctrl-C."""
    die_with_parent()
    given = sys.argv[1:] if arguments is None else arguments
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    try:
        app(given)(args=given, prog_name="winnow")
    except SettingsError as error:
        console.print(f"error: {error}", style="bold", markup=False)
        sys.exit(2)
    except WinnowError as error:
        console.print(f"error: {error}", style="bold", markup=False)
        sys.exit(1)
    except KeyboardInterrupt:
        console.print("interrupted")
        sys.exit(130)


def _root(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        typer.echo(f"winnow {installed_version()}")
        raise typer.Exit


def _can_make_models() -> bool:
    """Whether `winnow models` can work: wheels lack it, and checkouts may lack PyTorch."""
    return checkout() is not None and find_spec("torch") is not None


def _load(place: str) -> Any:
    module, _, name = place.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if place == _MODELS:
            raise WinnowError(
                f"{error}: `winnow models` needs a checkout of the project, and `make models` in it"
            ) from error
        raise


def _placeholder() -> None:
    """Stands for commands that are listed but not asked for."""


if __name__ == "__main__":
    main()
