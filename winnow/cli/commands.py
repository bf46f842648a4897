"""Every command of `winnow`, put together.

The only place in `winnow` that knows the services. A command is imported only when it runs, so that
`winnow --help` is quick and serving never needs the training libraries.
"""

import importlib
import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Annotated, Any

import typer

from winnow.cli.exits import exit_code
from winnow.cli.help_texts import with_flowing_help
from winnow.errors import WinnowError
from winnow.packaged import checkout, installed_version
from winnow.parent import die_with_parent
from winnow.signals import end_on_signals

_HELP = """Answer plain-language questions with the exact words of your passages.

Start here:
  winnow index build --passages FILE --out DIR --shards 3 --states
  winnow up --index DIR
  winnow ask "Who ...?"

Every option of a command that serves can also be an environment variable or stand in a TOML file.
"""

_Commands = Mapping[str, tuple[str, str]]
"""Where a command is, and its help, by name."""
_SNAPSHOTS = "winnow.content_node.snapshots.cli"
_COMMANDS: _Commands = {
    "ask": ("winnow.cli.ask.cli:ask", "Ask a running cluster; see the answer in its passage."),
    "predict": ("winnow.cli.predict.cli:predict", "Predict labels and entities of texts."),
    "up": ("winnow.cli.local.cli:up", "Run a whole cluster on this machine, one process per node."),
    "front": ("winnow.stateless.cli:front", "Run a front node: take questions, merge answers."),
    "node": ("winnow.content_node.cli:node", "Run a content node: serve one shard."),
    "encoder": (
        "winnow.encoder_node.cli:encoder",
        "Run an encoder node: encode texts for front nodes.",
    ),
    "feed": ("winnow.cli.feed.cli:feed", "Put passages into a running index, or take them out."),
    "top": ("winnow.cli.top.cli:top", "Show the state of a running cluster, again and again."),
    "evaluate": (
        "winnow.cli.evaluation.cli:evaluate",
        "Measure how right the answers of a running system are.",
    ),
    "bench": ("winnow.cli.loadtest.cli:bench", "Measure how fast a running system is."),
    "plan": ("winnow.cli.plan.cli:plan", "Plan the machines that an index needs."),
    "demo": ("winnow.cli.local.demo:demo", "Build an index, start a cluster, ask, and serve."),
}
_GROUPS: _Commands = {
    "index": (
        "winnow.content_node.indexing.cli:app",
        "Build, inspect, verify, copy and restore indexes.",
    ),
    "bundle": ("winnow.cli.bundle:app", "Publish and pull bundles of models."),
    "heads": ("winnow.cli.heads.cli:app", "Publish, pin, verify and serve heads of a store."),
    "keys": ("winnow.cli.keys.cli:app", "Make, list and remove keys of a front node."),
    "pareto": ("winnow.cli.pareto.cli:app", "Draw accuracy against latency, and choose."),
    "models": ("models.cli:app", "Train, export, quantise and verify models."),
}
_WITHIN: Mapping[str, _Commands] = {
    "index": {
        "snapshot": (f"{_SNAPSHOTS}:snapshot", "Copy an index to a directory or URL."),
        "snapshots": (f"{_SNAPSHOTS}:snapshots", "List the snapshots at a directory or URL."),
        "restore": (f"{_SNAPSHOTS}:restore", "Copy a snapshot into a new directory."),
        "pull": (f"{_SNAPSHOTS}:pull", "Restore a shard unless it is there already."),
        "measure": (
            "winnow.content_node.measuring.cli:measure",
            "Measure what a content node costs on this machine.",
        ),
    },
    "heads": {
        "serve": ("winnow.head_node.cli:serve", "Run a head node: apply heads for front nodes."),
        "refit": ("models.cli.heads:refit", "Train the heads of a store for another encoder."),
    },
}
"""Commands of services and of training, in groups of other modules."""
_BELOW: Mapping[tuple[str, ...], str] = {
    ("bench", "ladder"): "winnow.cli.ladder.cli:ladder",
    ("bench", "units"): "winnow.cli.units.cli:units",
}
"""Commands below a command that also works without them."""


def app(arguments: list[str]) -> typer.Typer:
    """The command line, with only the command that `arguments` name imported."""
    root = typer.Typer(
        help=_HELP,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"max_content_width": 100, "help_option_names": ["-h", "--help"]},
    )
    root.callback(invoke_without_command=True)(_root)
    words = _words(arguments)
    wanted = next(iter(words), None)
    below = _BELOW.get(tuple(arguments[:2]))
    others = {name: each for name, each in _COMMANDS.items() if not (below and name == wanted)}
    _add_commands(root, others, words[:1])
    if below:
        group = typer.Typer()
        group.callback()(_placeholder)
        group.command(arguments[1])(_load(below))
        root.add_typer(group, name=wanted)
    for name, (place, text) in _GROUPS.items():
        if name == "models" and name != wanted and not _can_make_models():
            continue
        if name == wanted:
            group = _load(place)
            _add_commands(group, _WITHIN.get(name, {}), words[1:2])
        else:
            group = typer.Typer()
            group.callback()(_placeholder)
        root.add_typer(group, name=name, help=text)
    return root


def main(arguments: list[str] | None = None) -> None:
    """Runs a command; exits 0, 1 for an error, 2 for wrong usage, 130 for Ctrl-C."""
    die_with_parent()
    given = sys.argv[1:] if arguments is None else arguments
    words = given or _to_complete()
    command = " ".join(["winnow", *_words(words)[:1]])

    def run() -> object:
        wanted = with_flowing_help(app(words))
        end_on_signals()  # only now: native modules that are being imported mistake an interrupt
        return wanted(args=given, prog_name="winnow", standalone_mode=False)

    sys.exit(exit_code(run, command))


def _words(given: list[str]) -> list[str]:
    return [word for word in given if not word.startswith("-")]


def _add_commands(group: typer.Typer, commands: _Commands, wanted: list[str]) -> None:
    """Lists all commands, and imports the wanted one."""
    for name, (place, text) in commands.items():
        command = _load(place) if name in wanted else _placeholder
        group.command(name, help=None if name in wanted else text)(command)


def _to_complete() -> list[str]:
    """The words so far, where a shell asks for completions of a command line; typer's protocol."""
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    return line.split()[1:] if "_WINNOW_COMPLETE" in os.environ else []


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
        if module.startswith("models."):
            raise WinnowError(
                f"{error}: training needs a checkout of the project, and `make models` in it"
            ) from error
        raise


def _placeholder() -> None:
    """Stands for a command that is listed and not wanted."""
