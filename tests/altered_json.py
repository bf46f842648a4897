"""Alters JSON objects at random, for tests that any object is used or refused by name."""

import copy
from typing import Any

from hypothesis import strategies as st


def places(content: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Returns the way to every value of an object or a list."""
    items = content.items() if isinstance(content, dict) else enumerate(content)
    found = []
    for key, value in items:
        found.append((*before, key))
        if isinstance(value, dict | list):
            found += places(value, (*before, key))
    return found


@st.composite
def mutations(
    draw: st.DrawFn, content: dict[str, Any], values: st.SearchStrategy[Any]
) -> dict[str, Any]:
    """Returns the content, with up to three values altered, taken out or put in."""
    altered = copy.deepcopy(content)
    for _ in range(draw(st.integers(1, 3))):
        way = draw(st.sampled_from(places(altered) or [("format",)]))
        inside: Any = altered
        for key in way[:-1]:
            inside = inside[key]
        how = draw(st.sampled_from(["alter", "alter", "alter", "take out", "put in"]))
        if how == "take out":
            if way[-1] in inside if isinstance(inside, dict) else way[-1] < len(inside):
                del inside[way[-1]]
        elif how == "put in" and isinstance(inside, dict):
            inside[draw(st.text(max_size=5))] = copy.deepcopy(draw(values))
        else:
            inside[way[-1]] = copy.deepcopy(draw(values))
    return altered
