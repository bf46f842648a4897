"""Options that several commands share, and that together make one object."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

Command = Callable[..., None]


def with_added_options(name: str, make: Callable[..., Any]) -> Callable[[Command], Command]:
    """Returns a decorator that replaces the parameter `name` of a command by the options of `make`.

    The command gets the object that `make` returns for the values of these options.
    """
    added = list(inspect.signature(make).parameters.values())

    def decorate(command: Command) -> Command:
        own = [
            each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for each in inspect.signature(command).parameters.values()
            if each.name != name
        ]

        @functools.wraps(command)
        def wrapped(*arguments: Any, **options: Any) -> None:
            made = make(**{each.name: options.pop(each.name, each.default) for each in added})
            command(*arguments, **options, **{name: made})

        wrapped.__signature__ = inspect.Signature([*own, *added])  # type: ignore[attr-defined]
        wrapped.__annotations__ = {each.name: each.annotation for each in (*own, *added)}
        return wrapped

    return decorate
