"""What comes with the code is found; hints name the distribution that has it."""

import re
import tomllib
from pathlib import Path

import pytest

from winnow import packaged
from winnow.bundle import read_manifest
from winnow.cli.local.demo import demo_index_directory
from winnow.errors import ArtefactError

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_distribution_has_the_name_that_hints_say() -> None:
    assert PROJECT["name"] == packaged.DISTRIBUTION
    assert packaged.installed_version() == PROJECT["version"]
    assert packaged.extra("plots") == "pip install 'winnow-qa[plots]'"


@pytest.mark.parametrize(
    "folder", ["winnow", "stateless", "content_node", "encoder_node", "head_node", "models", "docs"]
)
def test_nothing_advises_to_install_the_unrelated_winnow(folder: str) -> None:
    for file in (ROOT / folder).rglob("*.*"):
        if file.suffix in (".py", ".md"):
            text = file.read_text(encoding="utf-8")
            assert not re.search(r"pip install (\S+ +)*['\"]?winnow(\[|\s|['\"]|$)", text), file


def test_a_checkout_has_its_bundle_and_its_corpus_beside_the_package() -> None:
    assert packaged.checkout() == ROOT
    assert read_manifest(packaged.default_bundle()).name
    assert packaged.default_heads() == ROOT / "bundles" / "heads"
    assert (packaged.demo_corpus() / "passages.jsonl").is_file()
    assert packaged.generated_directory() == ROOT / "var"


@pytest.mark.parametrize(
    ("variable", "place"), [("/cache", "/cache/winnow"), ("", "/home/me/.cache/winnow")]
)
def test_an_installation_keeps_what_it_makes_in_the_users_cache(
    variable: str, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packaged, "checkout", lambda: None)
    monkeypatch.setenv("XDG_CACHE_HOME", variable)
    monkeypatch.setenv("HOME", "/home/me")
    assert packaged.generated_directory() == Path(place)


def test_the_demo_never_takes_the_index_of_other_passages_or_other_shards(tmp_path: Path) -> None:
    bundle, passages = packaged.default_bundle(), tmp_path / "passages.jsonl"
    passages.write_text("one")
    first = demo_index_directory(passages, bundle, 3)
    assert (
        first
        == demo_index_directory(passages, bundle, 3)
        != demo_index_directory(passages, bundle, 2)
    )
    passages.write_text("other")
    assert demo_index_directory(passages, bundle, 3) != first
    with pytest.raises(ArtefactError, match="cannot read nowhere"):
        demo_index_directory(Path("nowhere"), bundle, 3)
