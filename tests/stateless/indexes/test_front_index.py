"""The choice of an index, and the state that operators see of it."""

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from winnow.domain.catalog import Catalog, CatalogIndex
from winnow.domain.cluster_state import ClusterState
from winnow.domain.copying import with_copy, with_hold, with_replaced_source
from winnow.errors import NotFoundError, UnavailableError
from winnow.stateless.feed.core import FeedCore
from winnow.stateless.feed.fed_index import FedIndex
from winnow.stateless.indexes.catalog_choice import CatalogChoice
from winnow.stateless.indexes.front_index import FrontIndex, state_of_index


def test_operators_see_a_front_without_a_default_index() -> None:
    """Also before it has read the catalog."""
    choice = CatalogChoice()
    assert state_of_index(None, "") == ClusterState()
    assert state_of_index(choice.choose, "") == ClusterState()
    with pytest.raises(UnavailableError, match="has not been read yet"):
        state_of_index(choice.choose, "docs")
    choice.catalog = Catalog()
    assert state_of_index(choice.choose, "") == ClusterState()
    with pytest.raises(NotFoundError, match="there is no index 'docs'"):
        state_of_index(choice.choose, "docs")


def test_writes_that_name_a_copy_learn_of_its_source() -> None:
    """Those by an alias that this front has not switched yet wait for the switch instead."""
    choice = CatalogChoice()
    for name in ("old", "new"):
        fed = FedIndex(cast("FeedCore", None))
        choice.add(name, cast("FrontIndex", SimpleNamespace(writable=fed)))
    copying = Catalog().with_index("old", CatalogIndex(index_id="old", shards=1))
    copying = with_copy(copying, "new", CatalogIndex(index_id="new", shards=1), "old")
    copying = copying.with_alias("next", "new").with_alias("docs", "old")
    choice.catalog = copying
    sources = {name: choice.choose_fed(name).source for name in ("old", "new", "next", "docs")}
    assert sources == {"old": "", "new": "old", "next": "old", "docs": ""}
    run = copying.copies["new"].run
    held = with_hold(copying, "new", run)
    replaced = with_replaced_source(held, "new", run, held.version, {0: 1})
    choice.catalog = replace(replaced, aliases=copying.aliases)
    sources = {name: choice.choose_fed(name).source for name in ("old", "new", "docs")}
    assert sources == {"old": "new", "new": "", "docs": ""}
