"""What tests of journals in a real NATS server share."""

import pytest
from tenacious import LONG

from winnow.journal import expiry


@pytest.fixture
def late_expiry(monkeypatch: pytest.MonkeyPatch) -> None:
    """No entry expires on its way, however slow this process and the server are."""
    monkeypatch.setattr(expiry, "MAX_PUBLISH_SECONDS", LONG)
