"""Strategies for random metadata and filters over the same few fields, so that some match."""

from typing import Any

from hypothesis import strategies as st

from winnow.filtering import And, AnyOf, Compare, Exists, Filter, Not, Operator, Or

NAMES = ["year", "lang", "tags", "a.b", "a", "odd name", "in", "2010", "", 'q"u\\o', "städte"]
INNER = ["b", "year", "x y", ""]
scalars = (
    st.sampled_from(["en", "de", "", "2010", "true", "2015-03-01", "e\u0301", "\U0001f600", 'a"b'])
    | st.sampled_from([0, 1, -1, 2010, 2010.5, -0.0, 2**53, 2**53 + 1, 10**30, 1e-7])
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
)
metadata: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.sampled_from(NAMES),
    st.recursive(
        scalars | st.none(),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(INNER), inner, max_size=2)
        ),
        max_leaves=5,
    ),
    max_size=4,
)
names = st.sampled_from([*NAMES, "missing", "a.year", "a."]) | st.text(max_size=10)
literals = scalars.map(lambda value: value if isinstance(value, str | bool) else float(value) + 0.0)
_EQUAL = st.sampled_from([Operator.EQUAL, Operator.UNEQUAL])
leaves = st.one_of(
    st.builds(Compare, names, _EQUAL, literals),
    st.builds(
        Compare,
        names,
        st.sampled_from(Operator),
        literals.filter(lambda value: not isinstance(value, bool)),
    ),
    st.builds(AnyOf, names, st.lists(literals, min_size=1, max_size=4).map(tuple)),
    st.builds(Exists, names),
)


def _parts(inner: st.SearchStrategy[Filter]) -> st.SearchStrategy[tuple[Filter, ...]]:
    return st.lists(inner, min_size=2, max_size=3).map(tuple)


filters: st.SearchStrategy[Filter] = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(Not, inner), st.builds(And, _parts(inner)), st.builds(Or, _parts(inner))
    ),
    max_leaves=8,
)
