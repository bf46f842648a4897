"""Settings of the front node become the settings of its policies."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from winnow.bundle.manifest import Manifest, read_manifest
from winnow.domain.question import AnswerRequest, PartialResults, ReadScope, Retriever, WaitPolicy
from winnow.packaged import default_bundle
from winnow.settings.errors import SettingsError
from winnow.stateless.answer.validation import QuestionDefaults, validate
from winnow.stateless.composing import answers
from winnow.stateless.heads.encoder_group_setting import EncoderGroupSetting
from winnow.stateless.settings import FrontSettings

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
    assert policies.replicas.outliers.consecutive_failures == 7
    assert policies.replicas.outliers.latency_factor == 9
    assert (policies.hedge.budget, policies.hedge.quantile) == (0, 0.9)
    assert policies.retry.max_retries == 0
    assert settings.discovery.poll_every == 2
    load = settings.admission
    assert (load.max_reads, load.min_granted_share) == (50, 1)
    assert settings.patience == WaitPolicy(0.5, 0.0, 0.75)
    assert settings.partial_results is PartialResults.FORBID


def test_a_minimum_confidence_needs_a_bundle_with_a_confidence() -> None:
    settings = FrontSettings.load({"shards": [NODE], "min_confidence": 0.5}, None, {})
    manifest = read_manifest(default_bundle())
    lacking = manifest.model_copy(
        update={"score": manifest.score.model_copy(update={"confidence": None})}
    )

    def defaults(manifest: Manifest) -> QuestionDefaults:
        front: Any = SimpleNamespace(settings=settings, bundle=SimpleNamespace(manifest=manifest))
        return answers._defaults(front, serves_heads=False)

    assert defaults(manifest).min_confidence == 0.5
    with pytest.raises(SettingsError, match="--min-confidence needs a calibrated confidence, whi"):
        defaults(lacking)


def test_factors_that_contradict_each_other_are_refused() -> None:
    flags = {"shards": [NODE], "min_wait_factor": 0.8, "max_wait_factor": 0.2}
    with pytest.raises(SettingsError, match=r"^--min-wait-factor 0\.8 is more than"):
        FrontSettings.load(flags, None, {})


@pytest.mark.parametrize("given", ["127.0.0.1", "127.0.0.1:99999", ":8080", "9100"])
@pytest.mark.parametrize("name", ["listen", "metrics_listen"])
def test_an_address_that_is_none_is_refused_when_settings_are_read(name: str, given: str) -> None:
    with pytest.raises(SettingsError) as caught:
        FrontSettings.load({"shards": [NODE], name: given}, None, {})
    flag = f"--{name.replace('_', '-')} (or WINNOW_FRONT_{name.upper()}): "
    assert str(caught.value).startswith(flag)
    assert "expected HOST:PORT, such as 127.0.0.1:8080" in str(caught.value)


def test_a_front_has_shards_or_heads_or_both() -> None:
    with pytest.raises(
        SettingsError, match=r"^--shards .*unless --heads, --head-servers or --reader-threads"
    ):
        FrontSettings.load({}, None, {})
    with pytest.raises(SettingsError, match="set the default group with --heads"):
        FrontSettings.load({"shards": [NODE], "rings": ["de=b,s"]}, None, {})
    with pytest.raises(SettingsError, match="--feed-listen needs --shards or --fronts"):
        FrontSettings.load({"heads": "store", "feed_listen": "127.0.0.1:8081"}, None, {})
    assert FrontSettings.load({"heads": "store"}, None, {}).serves_heads
    assert not FrontSettings.load({"shards": [NODE]}, None, {}).serves_heads


def test_rings_are_given_by_flags_or_by_one_variable() -> None:
    """A list in a variable is separated by commas, and an encoder group has one itself."""
    flags = {"heads": "store", "rings": ["de=b/de,s3://heads/de?x=1,2", "fr=b/fr,/heads"]}
    variables = {
        "WINNOW_FRONT_HEADS": "store",
        "WINNOW_FRONT_RINGS": "de=b/de,s3://heads/de?x=1,2,fr=b/fr,/heads",
    }
    expected = [
        EncoderGroupSetting("de", Path("b/de"), "s3://heads/de?x=1,2"),
        EncoderGroupSetting("fr", Path("b/fr"), "/heads"),
    ]
    assert FrontSettings.load(flags, None, {}).further_groups == expected
    assert FrontSettings.load({}, None, variables).further_groups == expected


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        (["de=b"], "group de has no store of heads: write NAME=BUNDLE,STORE"),
        (["=b,s"], "expected NAME=BUNDLE,STORE"),
        (["DE=b,s"], "expected NAME=BUNDLE,STORE"),
        (["de=a,b", "de=c,d"], "two encoder groups have the name de"),
    ],
)
def test_settings_refuse_an_invalid_encoder_group(groups: list[str], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        FrontSettings.load({"heads": "store", "rings": groups}, None, {})


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ({"tls_cert": "c"}, "--tls-cert and --tls-key: give both"),
        ({"tls_client_ca": "a"}, "--tls-client-ca needs --tls-cert"),
        ({"peer_key": "k"}, "--peer-cert and --peer-key: give both"),
        ({"peer_cert": "c", "peer_key": "k"}, "--peer-cert needs --peer-ca"),
        ({"peer_name": "n"}, "--peer-name needs --peer-ca"),
    ],
)
def test_certificates_that_would_not_be_used_are_refused(flags: dict[str, str], said: str) -> None:
    """Users who give them believe that calls are protected."""
    with pytest.raises(SettingsError, match=said):
        FrontSettings.load({"shards": [NODE], **flags}, None, {})


def test_an_address_may_have_as_many_calls_as_it_takes_to_fill_the_front() -> None:
    """Or it would be told of its address where there is no room for anybody."""
    given = {"shards": [NODE], "peer_calls": 10, "max_in_flight": 64}
    assert FrontSettings.load(given, None, {}).most_peer_calls == 128


@pytest.mark.parametrize("scope", list(ReadScope))
@pytest.mark.parametrize("retriever", list(Retriever))
def test_reading_stops_early_by_default_and_no_question_fails_for_it(
    scope: ReadScope, retriever: Retriever
) -> None:
    settings = FrontSettings.load({}, None, {"WINNOW_FRONT_SHARDS": NODE})
    defaults = QuestionDefaults(
        passages_to_read=10,
        answers=3,
        read_scope=scope,
        max_answer_tokens=10,
        max_loss=settings.max_loss,
        retriever=retriever,
    )
    can = scope is ReadScope.GLOBAL and retriever is Retriever.HYBRID
    assert validate(AnswerRequest(question="Who?"), defaults).max_loss == (0.3 if can else 0)
