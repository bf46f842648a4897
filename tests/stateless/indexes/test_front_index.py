"""The choice of an index, and the state that operators see of it."""

import pytest

from winnow.domain.catalog import Catalog
from winnow.domain.cluster_state import ClusterState
from winnow.errors import NotFoundError, UnavailableError
from winnow.stateless.indexes.catalog_choice import CatalogChoice
from winnow.stateless.indexes.front_index import state_of_index


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
