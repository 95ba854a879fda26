"""Pages of administrators: plans as they are, and studies drafted from files or not at all."""

import re
from html import unescape
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client, override_settings

from mobility.models import PlanDraft, VaultStudy
from mobility.services.drafts import approve_draft, submit_draft
from reports.models import Plan, Study
from reports.studyfile import parse_study
from tests.mobility.views.small_study import STUDY, page, text_of

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
CREATE_URL = "/administrator/create/"
DEMO = Path(__file__).parents[3] / "mobility" / "demo"


@pytest.fixture(autouse=True)
def _signed_in(client: Client, administrator: User, data_dir: Path) -> None:
    client.force_login(administrator)


def file(text: str | bytes, name: str = "study.toml") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, text if isinstance(text, bytes) else text.encode())


def demo_file(name: str) -> SimpleUploadedFile:
    return file((DEMO / name).read_bytes(), name)


def published(client: Client, sent: dict[str, object]) -> HttpResponse:
    """Draft a study, have it approved by somebody else, and publish it."""
    response = client.post(CREATE_URL, sent)
    assert response.status_code == 302, response.content.decode()
    draft = PlanDraft.objects.latest("pk")
    submit_draft(draft, revision=1, by="adam")
    approve_draft(draft, revision=1, by="petra")
    step = {"step": "publish", "revision": "1"}
    return client.post(f"/administrator/drafts/{draft.pk}/step/", step, follow=True)


class TestStudies:
    def test_without_a_study_it_leads_to_the_first(self, client: Client) -> None:
        assert "Create the first study" in page(client, "/administrator/")

    def test_a_study_is_listed_with_its_plan(self, client: Client, study: VaultStudy) -> None:
        shown = page(client, "/administrator/")
        assert (
            "Plan version 1, smp-grr Promise is about (unit) all values of a person (profile) "
            "Epsilon, certified per profile 1.5 " in shown
        )


class TestStudy:
    def test_it_shows_the_plan_and_what_it_certifies(self, client: Client, study: VaultStudy) -> None:
        shown = page(client, "/administrator/fair/")
        assert "Each person answers one of the 2 indicators" in shown
        assert "Epsilon, certified per profile 1.5" in shown
        assert "Epsilon, certified per attribute 1 " in shown
        # e / (e + 1), and e^0.5 / (e^0.5 + 9)
        assert "True in 73.1 % of cases; each other category takes its place in 26.9 %." in shown
        assert "True in 15.5 % of cases; each other category takes its place in 9.4 %." in shown
        assert "Daily: at most 3 answers per person, one a day." in shown
        assert "0.5 its own" in shown
        assert "at least 60 minutes between the first and the last event" in shown
        assert "every cell of the extract" in shown
        assert "Market share 100.0 %" in shown
        assert Plan.objects.get().spec_hash in shown
        assert "Plan version 1, published by adam" in shown

    @pytest.mark.parametrize(
        ("mechanism", "words"),
        [
            ("smp-oue", "Marks the true category in 50.0 % of cases, and each other category in 26.9 %."),
            ("rsfd-ouez", "Only 50.0 % of the reports are answers; the others are made up."),
        ],
    )
    def test_it_says_what_a_report_is(self, client: Client, mechanism: str, words: str) -> None:
        text = STUDY.replace("smp-grr", mechanism).replace("\nepsilon = 0.5\n", "\n")
        published(client, {"study_file": file(text)})
        assert words in page(client, "/administrator/fair/").replace("\u202f", " ")

    def test_unknown_study_is_not_found(self, client: Client) -> None:
        assert client.get("/administrator/nothing/").status_code == 404

    def test_undone_days_are_part_of_what_is_certified(self, client: Client, study: VaultStudy) -> None:
        Plan.objects.update(voided_days=1)
        shown = page(client, "/administrator/fair/")
        assert "Epsilon, certified per profile 2 " in shown
        assert "Daily: at most 4 answers per person" in shown


class TestCreate:
    def test_from_a_study_file(self, client: Client) -> None:
        response = published(client, {"study_file": file(STUDY)})
        assert response.redirect_chain == [("/administrator/fair/", 302)]
        assert "The study was created." in response.content.decode()
        assert Study.objects.get().created_by == "adam"
        assert VaultStudy.objects.get().slug == "fair"

    def test_the_small_cell_rule_is_shown(self, client: Client) -> None:
        for slug, line, shown in (("fair", "", "no such rule"), ("late", "small_cell = 30\n", "30")):
            text = STUDY.replace('slug = "fair"\n', f'slug = "{slug}"\n{line}')
            published(client, {"study_file": file(text)})
            facts = text_of(page(client, f"/administrator/{slug}/"))
            assert f"least visitors of a window that is shown {shown}" in facts

    def test_the_noise_of_places_is_seen_before_it_is_saved(self, client: Client) -> None:
        def sent(radius_m: int, **more: str) -> dict[str, object]:
            section = f'\n[location]\nlevel = "ln 4"\nradius_m = {radius_m}\ngrid_m = 2000\n'
            text = (DEMO / "study.toml").read_text() + section
            return {
                "study_file": file(text),
                "cells": demo_file("cells.csv"),
                "zones": demo_file("zones.geojson"),
                **more,
            }

        shown = client.post(CREATE_URL, sent(400)).content.decode()
        assert "Nothing was created yet." in shown
        assert "577 m from the true one on average, and 95 of 100 lie within 1\u202f369 m" in shown
        assert not PlanDraft.objects.exists()
        confirmed = re.search(r'name="confirmed" value="([0-9a-f]{64})"', shown)
        assert confirmed
        # of another radius it was not seen
        again = client.post(CREATE_URL, sent(800, confirmed=confirmed[1]))
        assert "1\u202f154 m from the true one on average" in again.content.decode()
        assert not PlanDraft.objects.exists()
        published(client, sent(400, confirmed=confirmed[1]))
        assert "577 m from the true one on average" in page(client, "/administrator/fimu-2017/")

    def test_with_the_files_of_its_area(self, client: Client) -> None:
        sent = {
            "study_file": demo_file("study.toml"),
            "cells": demo_file("cells.csv"),
            "zones": demo_file("zones.geojson"),
        }
        published(client, sent)
        assert Study.objects.get().area.n_cells == 62
        assert "62 cells, 10 zones" in page(client, "/administrator/fimu-2017/")

    def test_all_problems_are_listed_and_the_text_stays_for_correction(self, client: Client) -> None:
        bad = STUDY.replace("days = 3", "days = 0").replace('"old"', '"old "') + '[area]\ncells = "c.csv"\n'
        response = client.post(CREATE_URL, {"study_file": file(bad, "fair.toml")})
        assert response.status_code == 422
        shown = text_of(response.content.decode())
        assert "Nothing was created. 4 problems:" in shown
        assert "fair.toml: study.days: must be a whole number from 1 to 62, got 0" in shown
        assert "fair.toml: extract.cell: is missing" in shown
        assert "fair.toml: area.cells: must name a file that is given together with the study file" in shown
        assert "days = 0" in shown
        assert 'name="filename" value="fair.toml"' in response.content.decode()
        assert not PlanDraft.objects.exists()

    def test_the_corrected_text_becomes_the_draft(self, client: Client) -> None:
        sent = {"text": STUDY.replace("\n", "\r\n"), "filename": "fair.toml"}
        assert client.post(CREATE_URL, sent).status_code == 302
        assert PlanDraft.objects.get().slug == "fair"
        assert not Study.objects.exists()

    def test_a_chosen_file_wins_over_the_text(self, client: Client) -> None:
        sent = {"text": STUDY, "study_file": file(STUDY.replace('slug = "fair"', 'slug = "other"'))}
        client.post(CREATE_URL, sent)
        assert PlanDraft.objects.get().slug == "other"

    def test_htmx_gets_only_the_problems_so_that_chosen_files_stay(self, client: Client) -> None:
        response = client.post(CREATE_URL, {"study_file": file("days = ")}, headers={"HX-Request": "true"})
        assert response.status_code == 200
        assert "<html" not in response.content.decode()
        assert "study.toml: line 1, column 8: must be valid TOML" in text_of(response.content.decode())

    def test_htmx_is_sent_on_after_success(self, client: Client) -> None:
        response = client.post(CREATE_URL, {"study_file": file(STUDY)}, headers={"HX-Request": "true"})
        draft = PlanDraft.objects.get()
        assert response.headers["HX-Redirect"] == f"/administrator/drafts/{draft.pk}/"

    def test_nothing_chosen_is_said_in_one_line(self, client: Client) -> None:
        response = client.post(CREATE_URL, {})
        assert "Choose a study file" in response.content.decode()
        assert "1 problem:" in response.content.decode()

    def test_a_taken_name_is_a_problem(self, client: Client, study: VaultStudy) -> None:
        response = client.post(CREATE_URL, {"study_file": file(STUDY)})
        assert response.status_code == 422
        assert "there is a study of that name already" in response.content.decode()

    def test_bytes_that_are_no_text_are_a_problem(self, client: Client) -> None:
        response = client.post(CREATE_URL, {"study_file": file(b"\xff\xfe")})
        assert "must be UTF-8 text" in response.content.decode()
        assert "<textarea" not in response.content.decode()

    def test_markup_in_a_study_file_stays_text(self, client: Client) -> None:
        response = client.post(CREATE_URL, {"study_file": file("<script>alert(1)</script>", "<b>.toml")})
        assert "<script>alert" not in response.content.decode()
        assert "<b>" not in response.content.decode()

    def test_large_files_are_refused_in_words_and_never_reach_the_disk(
        self, client: Client, tmp_path: Path
    ) -> None:
        spool = tmp_path / "spool"
        spool.mkdir()
        large = file(b"cell_id,lon,lat\n" + b"x,1,1\n" * 500_000, "cells.csv")
        with override_settings(FILE_UPLOAD_TEMP_DIR=str(spool)):
            response = client.post(CREATE_URL, {"study_file": file(STUDY), "cells": large})
        assert response.status_code == 422
        shown = text_of(response.content.decode())
        assert "The files together must be at most 2.6 MB, got 3.0 MB" in shown
        assert list(spool.iterdir()) == []
        assert settings.FILE_UPLOAD_HANDLERS == ["django.core.files.uploadhandler.MemoryFileUploadHandler"]

    def test_without_the_token_it_is_refused(self, administrator: User) -> None:
        strict = Client(enforce_csrf_checks=True)
        strict.force_login(administrator)
        assert strict.post(CREATE_URL, {"study_file": file(STUDY)}).status_code == 403


def test_the_example_on_the_page_is_a_valid_study_file(client: Client) -> None:
    html = client.get(CREATE_URL).content.decode()
    example = unescape(html.split('<pre class="example"')[1].split(">", 1)[1].split("</pre>")[0])
    definition = parse_study(example.encode(), filename="example", read=lambda _: b"")
    assert definition.small_cell == 10
    assert definition.indicators[0].categories[0] == "under 18"
    commented = example.replace("# cell =", "cell =").replace("# epsilon =", "epsilon =")
    with_area = re.sub(r"# (\[area\]|cells =|zones =)", r"\1", commented)
    files = {name: (DEMO / name).read_bytes() for name in ("cells.csv", "zones.geojson")}
    assert parse_study(with_area.encode(), filename="example", read=files.__getitem__).area is not None


def test_pages_have_no_inline_script_or_style(client: Client, study: VaultStudy) -> None:
    for url in ("/administrator/", CREATE_URL, "/administrator/fair/"):
        html = client.get(url).content.decode()
        assert not re.search(r"\sstyle=|\son\w+=|<style", html), url
        assert not re.search(r"<script(?![^>]*\ssrc=)", html), url
