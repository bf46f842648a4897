"""Hypothesis profiles of property tests.

`fixed` draws the same examples in every run, so that results do not depend on chance. `fuzz` draws
other examples in every run; it keeps failing ones in `.hypothesis`, and tries them first.
"""

from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

KEPT = Path(__file__).parent.parent / ".hypothesis" / "examples"
_SLOW = [HealthCheck.too_slow]  # suppressed, because a busy machine is no fault of the code


def register() -> None:
    """Registers both profiles; `fixed` is the default unless `--hypothesis-profile` is given."""
    settings.register_profile(
        "fixed",
        deadline=None,
        suppress_health_check=_SLOW,
        derandomize=True,
        database=None,
        print_blob=True,
    )
    settings.register_profile(
        "fuzz",
        deadline=None,
        suppress_health_check=_SLOW,
        derandomize=False,
        database=DirectoryBasedExampleDatabase(KEPT),
        print_blob=True,
    )
    settings.load_profile("fixed")
