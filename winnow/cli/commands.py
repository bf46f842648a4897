"""Builds the command line from every command of `winnow`.

Only this module names the services. A command is imported only when it runs, so that
`winnow --help` is quick and a server does not need the training libraries.
"""

import importlib
import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Annotated, Any

import typer

from winnow.cli.exits import end_process, exit_code
from winnow.cli.help_texts import with_wrapped_help
from winnow.errors import WinnowError
from winnow.packaged import checkout, installed_version
from winnow.parent import die_with_parent
from winnow.signals import end_on_signals

_HELP = """Answer plain-language questions with the exact words of your passages.

Start here:
  winnow up --documents FOLDER
  winnow index build --passages FILE --out DIR --states
  winnow up --index DIR
  winnow ask "Who ...?"

Every option of a server can also be set by an environment variable or in a TOML file.
"""

_Commands = Mapping[str, tuple[str, str]]
"""Commands by name: `module:function` and the help text."""
_SNAPSHOTS = "winnow.content_node.snapshots.cli"
_COMMANDS: _Commands = {
    "ask": ("winnow.cli.ask.cli:ask", "Ask a running cluster; see the answer in its passage."),
    "search": ("winnow.cli.passages.search:search", "Find passages, without reading them."),
    "read": ("winnow.cli.read.cli:read", "Read files: find the answer to a question in them."),
    "mcp": ("winnow.cli.mcp.cli:mcp", "Serve an index to an agent (Model Context Protocol)."),
    "predict": ("winnow.cli.predict.cli:predict", "Predict labels and entities of texts."),
    "up": ("winnow.cli.local.cli:up", "Serve an index on this machine."),
    "front": ("winnow.stateless.cli:front", "Run a front node: take questions, merge answers."),
    "standalone": (
        "winnow.standalone.cli:standalone",
        "Run a front node with all shards of an index in one process.",
    ),
    "node": ("winnow.content_node.cli:node", "Run a content node: serve shards of an index."),
    "encoder": (
        "winnow.encoder_node.cli:encoder",
        "Run an encoder node: encode texts for front nodes.",
    ),
    "reader": (
        "winnow.stateless.cli:reader",
        "Run a server that reads texts of callers, without an index.",
    ),
    "feed": ("winnow.cli.feed.cli:feed", "Add passages to a running index, or delete them."),
    "sync": ("winnow.cli.sync.cli:sync", "Make an index equal to a folder of documents."),
    "top": ("winnow.cli.top.cli:top", "Show the live state of a running cluster."),
    "evaluate": (
        "winnow.cli.evaluation.cli:evaluate",
        "Measure the accuracy of a running system.",
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
    "passages": (
        "winnow.cli.passages.cli:app",
        "Show, list, count, export and delete passages of a running index.",
    ),
    "tenants": (
        "winnow.cli.tenants.cli:app",
        "List, measure, export and delete the tenants of a running index.",
    ),
    "bundle": ("winnow.cli.bundle:app", "Publish and pull bundles of models."),
    "heads": ("winnow.cli.heads.cli:app", "Publish, pin, verify and serve heads of a store."),
    "indexes": (
        "winnow.cli.indexes.cli:app",
        "Create, list, rebuild, drop and restore named indexes; switch aliases.",
    ),
    "shards": ("winnow.cli.shards.cli:app", "List, move, split and spread shards."),
    "keys": ("winnow.cli.keys.cli:app", "Make, list and remove keys of a front node."),
    "quotas": ("winnow.cli.quotas.cli:app", "Set, list and remove the quotas of tenants."),
    "pareto": ("winnow.cli.pareto.cli:app", "Compare bundles and options by accuracy and latency."),
    "models": ("models.cli:app", "Train, export, quantise and verify models."),
}
_GROUP_COMMANDS: Mapping[str, _Commands] = {
    "indexes": {
        "create": (
            "winnow.content_node.assigned.cli:create",
            "Add an index to a running cluster, from a snapshot.",
        ),
        "rebuild": (
            "winnow.content_node.copying.cli:rebuild",
            "Copy an index into a new one with another bundle, while it is served.",
        ),
        "compare": (
            "winnow.cli.indexes.compare:compare",
            "Compare the answers of two indexes to the same questions.",
        ),
        "alias": (
            "winnow.content_node.copying.cli:alias",
            "Point an alias to an index.",
        ),
    },
    "shards": {
        "init": (
            "winnow.content_node.assigned.cli:init",
            "Create an assignment: give the shards of a snapshot to nodes without shards.",
        ),
    },
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
"""Commands that other modules add to a group."""
_SUBCOMMANDS: Mapping[tuple[str, ...], str] = {
    ("bench", "classification"): "winnow.cli.ladder.cli:ladder",
    ("bench", "unit-costs"): "winnow.cli.units.cli:units",
    # earlier names of the same two commands, which 0.2 will not have
    ("bench", "ladder"): "winnow.cli.ladder.cli:ladder",
    ("bench", "units"): "winnow.cli.units.cli:units",
}
"""Subcommands of commands that also run alone: `module:function` by command and subcommand."""


def build_app(arguments: list[str]) -> typer.Typer:
    """Builds the command line. Imports only the command that `arguments` name."""
    root = typer.Typer(
        help=_HELP,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"max_content_width": 100, "help_option_names": ["-h", "--help"]},
    )
    root.callback(invoke_without_command=True)(_root)
    words = _command_words(arguments)
    selected = next(iter(words), None)
    subcommand = _SUBCOMMANDS.get(tuple(arguments[:2]))
    commands = {n: each for n, each in _COMMANDS.items() if not (subcommand and n == selected)}
    _add_commands(root, commands, words[:1])
    if subcommand:
        group = typer.Typer()
        group.callback()(_placeholder)
        group.command(arguments[1])(_load(subcommand))
        root.add_typer(group, name=selected)
    for name, (target, text) in _GROUPS.items():
        if name == "models" and name != selected and not _can_make_models():
            continue
        if name == selected:
            group = _load(target)
            _add_commands(group, _GROUP_COMMANDS.get(name, {}), words[1:2])
        else:
            group = typer.Typer()
            group.callback()(_placeholder)
        root.add_typer(group, name=name, help=text)
    return root


def main(arguments: list[str] | None = None) -> None:
    """Runs a command. Exits with 0, 1 after an error, 2 after wrong usage, or 130 after Ctrl-C."""
    is_child = die_with_parent()
    arguments = sys.argv[1:] if arguments is None else arguments
    words = arguments or _completion_words()
    command = " ".join(["winnow", *_command_words(words)[:1]])

    def run() -> object:
        root = with_wrapped_help(build_app(words))
        end_on_signals()  # after imports: an interrupt breaks the import of native modules
        return root(args=arguments, prog_name="winnow", standalone_mode=False)

    end_process(exit_code(run, command, _commands_named, is_child=is_child))


def _command_words(arguments: list[str]) -> list[str]:
    return [word for word in arguments if not word.startswith("-")]


def _add_commands(group: typer.Typer, commands: _Commands, selected: list[str]) -> None:
    """Lists all commands, and imports the selected one."""
    for name, (target, text) in commands.items():
        command = _load(target) if name in selected else _placeholder
        group.command(name, help=None if name in selected else text)(command)


def _commands_named(name: str) -> list[str]:
    """The commands of all groups with this name, such as `winnow heads publish`."""
    found = [f"winnow {name}"] if name in _COMMANDS else []
    for group, (target, _) in _GROUPS.items():
        if group == "models" and not _can_make_models():
            continue
        commands = typer.main.get_group(_load(target)).commands
        if name in {*commands, *_GROUP_COMMANDS.get(group, {})}:
            found.append(f"winnow {group} {name}")
    return found


def _completion_words() -> list[str]:
    """The words of the command line that a shell completes, by typer's completion protocol.

    Empty if no shell asks for a completion.
    """
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    return line.split()[1:] if "_WINNOW_COMPLETE" in os.environ else []


def _root(
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        typer.echo(f"winnow {installed_version()}")
        raise typer.Exit


def _can_make_models() -> bool:
    """Whether `winnow models` can run: it needs a checkout and PyTorch."""
    return checkout() is not None and find_spec("torch") is not None


def _load(target: str) -> Any:
    module, _, name = target.partition(":")
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if module.startswith("models."):
            raise WinnowError(
                f"{error}: training needs a checkout of the project; run `make models` there"
            ) from error
        raise


def _placeholder() -> None:
    """Stands for a command that help lists and that does not run now."""
