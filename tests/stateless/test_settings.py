"""Settings of the front node become the settings of its policies."""

import pytest

from stateless.settings import FrontSettings
from winnow.domain.question import PartialResults, Patience
from winnow.settings.source import SettingsError

NODE = "127.0.0.1:9000"


def test_every_policy_gets_its_settings() -> None:
    variables = {
        "WINNOW_FRONT_SHARDS": f"{NODE}, dns:///nodes:9000",
        "WINNOW_FRONT_EJECT_AFTER": "7",
        "WINNOW_FRONT_EJECT_LATENCY_FACTOR": "9",
        "WINNOW_FRONT_HEDGE_BUDGET": "0",
        "WINNOW_FRONT_HEDGE_QUANTILE": "0.9",
        "WINNOW_FRONT_RETRIES": "0",
        "WINNOW_FRONT_POLL_EVERY": "2",
        "WINNOW_FRONT_MAX_READS": "50",
        "WINNOW_FRONT_BROWN_OUT_FLOOR": "1",
        "WINNOW_FRONT_MIN_COVERAGE": "0.5",
        "WINNOW_FRONT_MAX_WAIT_FACTOR": "0.75",
        "WINNOW_FRONT_PARTIAL_RESULTS": "forbid",
    }
    settings = FrontSettings.load({}, None, variables)
    assert settings.shards == [NODE, "dns:///nodes:9000"]
    policies = settings.replica_policies
    assert policies.replicas.outliers.strikes == 7
    assert policies.replicas.outliers.latency_factor == 9
    assert (policies.hedge.budget, policies.hedge.quantile) == (0, 0.9)
    assert policies.retry.most == 0
    assert settings.discovery.poll_every == 2
    load = settings.admission
    assert (load.most_reads, load.least_share) == (50, 1)
    assert settings.patience == Patience(0.5, 0.0, 0.75)
    assert settings.partial_results is PartialResults.FORBID


def test_factors_that_contradict_each_other_are_refused() -> None:
    flags = {"shards": [NODE], "min_wait_factor": 0.8, "max_wait_factor": 0.2}
    with pytest.raises(SettingsError, match=r"min_wait_factor 0\.8 is more than"):
        FrontSettings.load(flags, None, {})
