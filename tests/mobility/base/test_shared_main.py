"""A main database that both zones use is refused on both sides, and the way out is named."""

import pytest
from django.db import connections

from mobility import celery, startup
from mobility.models import VaultStudy
from mobility.operations.findings import Level
from mobility.operations.probes import safety
from reports.models import Sender, SentStudy, Study
from reports.transfer.studies import create_study_rows
from tests.mobility.pages.small_study import definition_of

pytestmark = [pytest.mark.django_db(databases=["default", "vault"]), pytest.mark.usefixtures("data_dir")]


@pytest.fixture
def study() -> Study:
    return create_study_rows(definition_of(), by="olga")


@pytest.fixture
def sender() -> Sender:
    return Sender.objects.create(name="north", public_key="x", registered_by="ada")


def refusal(settings, zone, monkeypatch, capsys) -> str:
    settings.MOBILITY_ZONE = zone
    for name in ("refuse_unsafe", "hold_files", "refuse_outdated"):
        monkeypatch.setattr(startup, name, lambda: None)
    for connection in connections.all():
        monkeypatch.setattr(connection, "close", lambda: None)  # of the test's transaction
    (found,) = safety.own_main()
    try:
        celery._refuse_unsafe()
    except SystemExit as end:
        assert (end.code, found.level) == (startup.EXIT_CODE, Level.ERROR)
        said = capsys.readouterr().err
        assert str(found.facts["seen"]) in said
        assert "From a shared main database to zones apart" in said
        return said
    assert found.level == Level.OK
    return ""


def test_analysts_do_not_serve_studies_that_nobody_handed_over(study, sender, settings, monkeypatch, capsys):
    said = refusal(settings, "analyst", monkeypatch, capsys)
    assert f"1 of its studies were not handed over by a sender ({study.slug})" in said
    SentStudy.objects.create(study=study, sender=sender, digest="")
    assert refusal(settings, "analyst", monkeypatch, capsys) == ""


def test_an_operator_zone_does_not_count_where_a_server_has_senders(study, settings, monkeypatch, capsys):
    assert refusal(settings, "operator", monkeypatch, capsys) == ""
    Sender.objects.create(name="north", public_key="x", registered_by="ada")
    assert "it has a registered sender, north" in refusal(settings, "operator", monkeypatch, capsys)


def test_an_operator_zone_does_not_keep_its_vault_in_the_main_database(settings, monkeypatch, capsys) -> None:
    with connections["vault"].cursor() as cursor:
        cursor.execute("CREATE TABLE reports_study (id integer)")
    assert "VAULT_DATABASE_URL and DATABASE_URL lead to one" in refusal(
        settings, "operator", monkeypatch, capsys
    )


def test_one_installation_may_have_both(study, sender, settings, monkeypatch, capsys) -> None:
    VaultStudy.objects.create(slug=study.slug, definition={}, plan={}, key_id="k", n_shards=1)
    assert refusal(settings, "all", monkeypatch, capsys) == ""
    SentStudy.objects.create(study=study, sender=sender, digest="")  # adopted by a server that shares it
    assert f"hands over study {study.slug}" in refusal(settings, "all", monkeypatch, capsys)
