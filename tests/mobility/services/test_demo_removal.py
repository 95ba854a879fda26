"""Removing the demo: nothing of it stays in either zone, and nothing else goes."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from mobility.keystore import keystore
from mobility.models import Batch, PresenceShard, VaultStudy
from mobility.services import demo, demo_removal, staging
from mobility.services.accounts import ensure_demo_accounts
from mobility.services.demo_removal import NoDemoError, remove_demo
from reports.models import SavedView, Study, Tally
from reports.services.access import save_view
from tests.mobility.services.conftest import Pipeline

# Real transactions: old pages are given back outside of any.
pytestmark = [
    pytest.mark.database,
    pytest.mark.django_db(databases=["default", "vault"], transaction=True),
]
ADDRESS = "/administrator/demo/remove/"
SMALL = {"expected_subscribers": 100, "min_publication": 10}


@pytest.fixture
def two(make_pipeline: Callable[..., Pipeline], extract: list[Path]) -> tuple[Pipeline, Pipeline]:
    """The demo with a day, and another study with the same day."""
    pair = make_pipeline(**SMALL), make_pipeline(**SMALL, slug="real-2017")
    Study.objects.filter(slug="fimu-2017").update(created_by="demo")
    for pipeline in pair:
        pipeline.upload(extract[0])
    (demo.folder() / "extract").mkdir(parents=True)
    (demo.folder() / "extract.json").write_text("{}")
    ensure_demo_accounts(demo.accounts_file())
    return pair


def test_nothing_of_the_demo_stays_and_nothing_else_goes(two: tuple[Pipeline, Pipeline]) -> None:
    gone, stays = two
    before = stays.tallies()
    assert PresenceShard.objects.filter(study=gone.study).exists()
    remove_demo(by="adam")
    assert list(Study.objects.values_list("slug", flat=True)) == ["real-2017"]
    assert list(VaultStudy.objects.values_list("slug", flat=True)) == ["real-2017"]
    assert set(PresenceShard.objects.values_list("study", flat=True)) == {stays.study.pk}
    assert set(Batch.objects.values_list("study", flat=True)) == {stays.study.pk}
    assert not keystore().exists(gone.study.key_id)
    assert keystore().exists(stays.study.key_id)
    assert not staging.staged_batches()
    assert not demo.folder().exists()
    assert not demo.accounts_file().exists()
    assert stays.tallies() == before
    with pytest.raises(NoDemoError):
        remove_demo(by="adam")


def test_kept_views_and_links_of_the_demo_go_and_those_of_others_stay(
    two: tuple[Pipeline, Pipeline], analyst: User, administrator: User
) -> None:
    for person in (analyst, administrator):
        for name, address in (
            ("demo", "/studies/fimu-2017/gender/?from=2017-05-31"),
            ("start", "/studies/fimu-2017/"),
            ("real", "/studies/real-2017/gender/"),
            ("compared", "/studies/real-2017/gender/compare/?kind=studies&with=fimu-2017/gender"),
        ):
            save_view(name=name, address=address, by=person)
    remove_demo(by="adam")
    for person in (analyst, administrator):
        assert [view.name for view in SavedView.objects.filter(owner=person)] == ["compared", "real"]
    assert "analyst" in User.objects.values_list("username", flat=True)  # the account, not its file


def test_interrupted_removal_is_done_again(
    two: tuple[Pipeline, Pipeline], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_tables: object) -> None:
        raise RuntimeError("power cut")

    monkeypatch.setattr(demo_removal, "compact", fails)
    with pytest.raises(RuntimeError, match="power cut"):
        remove_demo(by="adam")
    assert Study.objects.filter(slug="fimu-2017").exists()
    monkeypatch.undo()
    remove_demo(by="adam")
    assert not Study.objects.filter(slug="fimu-2017").exists()


def test_study_of_a_person_under_that_name_is_no_demo(two: tuple[Pipeline, Pipeline]) -> None:
    Study.objects.filter(slug="fimu-2017").update(created_by="adam")
    Study.objects.filter(slug="real-2017").update(created_by="demo")
    with pytest.raises(NoDemoError, match="there is no demo"):
        remove_demo(by="adam")
    assert Study.objects.count() == 2
    assert Tally.objects.exists()


def test_one_click_and_a_confirmation(
    two: tuple[Pipeline, Pipeline], administrator: User, analyst: User
) -> None:
    client = Client()
    client.force_login(administrator)
    home = client.get("/").content.decode()
    assert ADDRESS in home
    assert home.count("demo: made-up people") == 1
    assert "No other study is touched" in client.get(ADDRESS).content.decode()
    assert Study.objects.count() == 2  # looking removes nothing
    page = client.post(ADDRESS, follow=True).content.decode()
    assert "The demo is removed" in page
    assert ADDRESS not in page
    assert Study.objects.count() == 1
    assert client.get(ADDRESS).status_code == 404


def test_others_remove_nothing(
    two: tuple[Pipeline, Pipeline], analyst: User, operator: User, client: Client
) -> None:
    assert client.post(ADDRESS).status_code == 302
    for person in (analyst, operator):
        client.force_login(person)
        assert client.post(ADDRESS).status_code == 404
        assert ADDRESS not in client.get("/").content.decode()
    assert Study.objects.count() == 2
