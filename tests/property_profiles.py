"""How property tests draw their examples.

`fixed`: the same ones in every run, so that a run says something of the code and not of luck.
`fuzz`: others in every run; what fails is kept in `.hypothesis` and tried first the next time.
"""

from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase

KEPT = Path(__file__).parent.parent / ".hypothesis" / "examples"
_SLOW = [HealthCheck.too_slow]  # as a deadline: a busy machine is no fault of the code


def register() -> None:
    """Makes both known; runs take `fixed` unless `--hypothesis-profile` names another."""
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
