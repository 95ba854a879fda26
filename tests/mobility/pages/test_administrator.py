"""Pages of administrators: plans, studies drafted from files or not at all, and their end; the simulator."""

import json
import re
from html import unescape
from unittest.mock import Mock

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.test import override_settings

from mobility.demo.population import FOLDER
from mobility.models import Batch, PlanDraft, VaultDay, VaultStudy
from mobility.plans import closing
from mobility.plans.drafts import approve_draft, draft_new_study, submit_draft
from mobility.vault.keystore import keystore
from reports.models import Plan, Study
from reports.studies.studyfile import parse_study
from tests import demo_study
from tests.demo_study import AREA_FILES
from tests.mobility.pages import pages
from tests.mobility.pages.pages import (
    check_markup,
    file,
    html_of,
    lacks,
    mechanisms_of,
    page,
    said,
    says,
    text_of,
)
from tests.mobility.pages.small_study import STUDY, definition_of
from tests.study_text import static

pytestmark = pages.AS_ADMINISTRATOR
SIMULATOR_URL = "/administrator/simulator/"
CREATE_URL, STUDY_URL = "/administrator/create/", "/administrator/fair/"
CLOSE_URL, CERTIFICATE_URL = f"{STUDY_URL}close/", f"{STUDY_URL}certificate.json"
HTMX = {"HX-Request": "true"}


def demo_files(text=""):
    sent = {"study_file": file(demo_study.study_text() + text)}
    return sent | {name.partition(".")[0]: file((FOLDER / name).read_bytes(), name) for name in AREA_FILES}


def published(client, sent):
    response = client.post(CREATE_URL, sent)
    assert response.status_code == 302, response.content.decode()
    draft = PlanDraft.objects.latest("pk")
    submit_draft(draft, revision=1, by="adam")
    approve_draft(draft, revision=1, by="petra")
    step = {"step": "publish", "revision": "1"}
    return client.post(f"/administrator/drafts/{draft.pk}/step/", step, follow=True)


class TestStudy:
    def test_it_shows_the_plan_and_what_it_certifies(self, client, study):
        unit = "Privacy unit all of a person's values (profile)"
        assert f"{unit} Certified epsilon per profile 1.5 " in page(client, "/administrator/")
        shown = page(client, "/administrator/fair/")
        says(shown, "Each person reports on one of the 2 indicators", "Certified epsilon per profile 1.5")
        says(shown, "Certified epsilon per attribute 1 ", "Daily: at most 3 answers per person, one per day.")
        for kept, other in (("73.1", "26.9"), ("15.5", "9.4")):  # e / (e + 1), and e^0.5 / (e^0.5 + 9)
            says(shown, f"true category in {kept}% of cases, and each of the other categories in {other}% of")
        says(shown, "0.5 separate epsilon", "if at least 60 minutes pass between")
        says(shown, "all cells in the extract", "Market share 100.0%", Plan.objects.get().spec_hash)
        Plan.objects.update(voided_days=1)  # undone days are part of what is certified
        shown = page(client, "/administrator/fair/")
        says(shown, "Certified epsilon per profile 2 ", "Daily: at most 4 answers per person")
        shares = {"name": "Survey", "indicator": "gender", "valid_from": "2024-01-01", "valid_to": None}
        shares["shares"] = [{"category": "F", "share": "0.38", "low": "0.3", "high": "0.5"}]
        Study.objects.update(category_shares=[shares])
        shown = page(client, "/administrator/fair/")
        says(shown, "Survey ( gender , valid from Mon 1 Jan 2024) F 38.0% (30.0%\u201350.0%).")


class TestCreate:
    def test_from_a_study_file_of_a_name_that_is_not_taken(self, client):
        assert "Create the first study" in page(client, "/administrator/")
        response = published(client, {"study_file": file(STUDY)})
        assert response.redirect_chain == [("/administrator/fair/", 302)]
        assert "The study has been created." in response.content.decode()
        assert (Study.objects.get().created_by, VaultStudy.objects.get().slug) == ("adam", "fair")
        assert "date range to be shown 0: no date ranges are suppressed" in said(response)
        response = client.post(CREATE_URL, {"study_file": file(STUDY)})
        assert response.status_code == 422
        assert "a study with this name already exists" in response.content.decode()

    def test_the_noise_of_places_is_seen_before_it_is_saved(self, client):
        def sent(radius_m, **more):
            section = f'\n[location]\nlevel = "ln 4"\nradius_m = {radius_m}\ngrid_m = 2000\n'
            return {**demo_files(section), **more}

        shown = client.post(CREATE_URL, sent(400)).content.decode()
        assert "Nothing has been created yet" in shown
        assert "577 m from the true place. Of 100 reported places, 95 are within 1,369 m" in shown
        assert not PlanDraft.objects.exists()
        confirmed = re.search(r'name="confirmed" value="([0-9a-f]{64})"', shown)[1]
        again = client.post(CREATE_URL, sent(800, confirmed=confirmed))  # of another radius it was not seen
        assert "1,154 m from the true place" in again.content.decode()
        assert not PlanDraft.objects.exists()
        published(client, sent(400, confirmed=confirmed))
        assert Study.objects.get().area.n_cells == 62
        shown = page(client, "/administrator/fimu-2017/")
        says(shown, "62 cells, 10 zones", "On average, a reported place is 577 m from the true place")

    def test_all_problems_are_listed_and_the_text_stays_for_correction(self, client):
        bad = STUDY.replace("days = 3", "days = 0").replace('"old"', '"old "') + '[area]\ncells = "c.csv"\n'
        response = client.post(CREATE_URL, {"study_file": file(bad, "fair.toml")})
        assert response.status_code == 422
        shown = said(response)
        says(
            shown,
            "Nothing was created. 4 problems were found:",
            "“Number of days”: must be a whole number from 1 to 62, got 0 (fair.toml: study.days)",
            "“Cell column”: is missing (fair.toml: extract.cell)",
            "“Name of the cell file”: Choose c.csv again.",
            "days = 0",
        )
        assert 'name="filename" value="fair.toml"' in response.content.decode()
        assert not PlanDraft.objects.exists()
        corrected = {"text": STUDY.replace("\n", "\r\n"), "filename": "fair.toml"}
        assert (client.post(CREATE_URL, corrected).status_code, PlanDraft.objects.get().slug) == (302, "fair")
        assert not Study.objects.exists()
        chosen = file(STUDY.replace('slug = "fair"', 'slug = "other"'))  # wins over the text
        client.post(CREATE_URL, {"text": STUDY, "study_file": chosen})
        assert PlanDraft.objects.latest("pk").slug == "other"

    def test_htmx_gets_only_the_problems_so_that_chosen_files_stay(self, client):
        response = client.post(CREATE_URL, {"study_file": file("days = ")}, headers=HTMX)
        assert response.status_code == 200 and "<html" not in response.content.decode()
        assert "study.toml: line 1, column 8: must be valid TOML" in said(response)
        response = client.post(CREATE_URL, {"study_file": file(STUDY)}, headers=HTMX)
        assert response.headers["HX-Redirect"] == f"/administrator/drafts/{PlanDraft.objects.get().pk}/"

    def test_what_is_wrong_is_said_and_markup_stays_text(self, client):
        says(client.post(CREATE_URL).content.decode(), "Choose a study file", "1 problem was found:")
        binary = client.post(CREATE_URL, {"study_file": file(b"\xff\xfe")}).content.decode()
        assert "must be UTF-8 text" in binary and ">\n</textarea>" in binary
        marked = client.post(
            CREATE_URL, {"study_file": file(b"<script>alert(1)", "<b>.toml")}
        ).content.decode()
        assert "1 problem was found:" in marked
        lacks(marked, "<script>alert", "<b>")

    def test_large_files_are_refused_in_words_and_never_reach_the_disk(self, client, tmp_path):
        large = file(b"cell_id,lon,lat\n" + b"x,1,1\n" * 500_000, "cells.csv")
        with override_settings(FILE_UPLOAD_TEMP_DIR=str(tmp_path)):
            before = list(tmp_path.iterdir())
            response = client.post(CREATE_URL, {"study_file": file(STUDY), "cells": large})
            assert list(tmp_path.iterdir()) == before
        assert response.status_code == 422
        assert "The files total 3.0 MB, but the limit is 2.6 MB" in said(response)
        assert settings.FILE_UPLOAD_HANDLERS == ["django.core.files.uploadhandler.MemoryFileUploadHandler"]


def test_the_example_on_the_page_is_a_valid_study_file_and_pages_have_no_inline_script(client, study):
    for address in ("/administrator/", CREATE_URL, STUDY_URL):
        check_markup(html_of(client, address))
    html = html_of(client, CREATE_URL)
    example = unescape(html.split('<pre class="example"')[1].split(">", 1)[1].split("</pre>")[0])
    definition = definition_of(example)
    assert (definition.small_cell, definition.indicators[0].categories[0]) == (10, "under 18")
    commented = example.replace("# cell =", "cell =").replace("# epsilon =", "epsilon =")
    with_area = re.sub(r"# (\[area\]|cells =|zones =)", r"\1", commented)
    found = parse_study(with_area.encode(), filename="x", read=lambda name: (FOLDER / name).read_bytes())
    assert found.area is not None


def refused(client, **typed):
    response = client.post(CLOSE_URL, typed)
    assert response.status_code == 422
    study = VaultStudy.objects.get()
    assert study.closed_at is None
    assert keystore().exists(study.key_id)
    return said(response)


class TestClosing:
    @pytest.fixture(autouse=True)
    def _compacted_elsewhere(self, study, monkeypatch):  # tests/mobility/plans/test_closing.py
        monkeypatch.setattr(closing, "compact", lambda *_: None)

    def test_it_says_what_goes_and_what_stays_and_wants_the_short_name(self, client):
        assert CLOSE_URL in html_of(client, STUDY_URL)
        shown = page(client, CLOSE_URL)
        says(shown, "The study key", "The reports: totals of randomised answers")
        lacks(shown, "Discard the unpublished rows", "unfinished batch")
        assert "This field is required" in refused(client, slug="")
        for typed in ("fare", "Fair & market"):
            assert "This is not the short name of the study" in refused(client, slug=typed)

    def test_confirmed_it_closes_and_gives_the_certificate(self, client, operator):
        assert "There is no erasure certificate" in said(client.get(CERTIFICATE_URL, follow=True))
        response = client.post(CLOSE_URL, {"slug": " fair "}, follow=True)
        assert response.redirect_chain == [(STUDY_URL, 302)]
        shown = said(response)
        says(shown, "The study is closed.", "Closed by adam at 20", "Earlier backups of the vault")
        study = VaultStudy.objects.get()
        assert not keystore().exists(study.key_id)
        assert Study.objects.get().closed_at == study.closed_at
        file = client.get(CERTIFICATE_URL)
        assert json.loads(file.content) == study.certificate
        assert file["Content-Disposition"] == 'attachment; filename="fair-erasure-certificate.json"'
        assert client.get(CLOSE_URL).status_code == 302
        assert CLOSE_URL not in html_of(client, STUDY_URL)
        client.force_login(operator)
        html = html_of(client, "/operator/fair/")
        assert "This study was closed on" in html
        assert "<form" not in html.partition("<main")[2].partition("</main>")[0] and "upload.js" not in html
        assert "closed" in page(client, "/operator/")

    def test_batches_and_unpublished_days_are_asked_about_and_merging_is_waited_for(self, client, study):
        batch = Batch.objects.create(study=study, state=Batch.State.MERGING)
        assert "1 batch is being merged" in page(client, CLOSE_URL)
        assert "have not ended (1 merging)" in refused(client, slug="fair")
        Batch.objects.update(state=Batch.State.QUEUED)
        assert "Cancel 1 unfinished batch" in page(client, CLOSE_URL)
        assert "This field is required" in refused(client, slug="fair")
        VaultDay.objects.create(study=study, day=2)
        assert "Days with unpublished rows: Thu 2 May 2024" in page(client, CLOSE_URL)
        assert "This field is required" in refused(client, slug="fair", cancel_batches="on")
        assert "This field is required" in refused(client, slug="fair", drop_unpublished="on")
        sent = {"slug": "fair", "cancel_batches": "on", "drop_unpublished": "on"}
        assert client.post(CLOSE_URL, sent).status_code == 302
        batch.refresh_from_db()
        assert batch.state == Batch.State.CANCELLED
        assert "Unpublished days discarded 2024-05-02" in page(client, STUDY_URL)

    def test_an_interrupted_closing_is_finished(self, client, monkeypatch):
        with monkeypatch.context() as patch:
            patch.setattr(closing, "compact", Mock(side_effect=ImproperlyConfigured))
            with pytest.raises(ImproperlyConfigured):
                client.post(CLOSE_URL, {"slug": "fair"})
        assert client.get(CERTIFICATE_URL).status_code == 302
        assert "Resume closing" in page(client, STUDY_URL)
        assert "Its key has been destroyed or will be destroyed" in page(client, CLOSE_URL)
        client.post(CLOSE_URL, {"slug": "fair"})
        assert client.get(CERTIFICATE_URL).status_code == 200


def shown(client, query=""):
    return unescape(text_of(html_of(client, SIMULATOR_URL + query)))


def value_of(html, name):
    value = re.search(r'value="([^"]*)"', re.search(rf'<input[^>]*name="{name}"[^>]*>', html)[0])
    return "" if value is None else value[1]


def links(html, words):
    return [unescape(found) for found in re.findall(rf'<a href="([^"]*)">{words}</a>', html)]


class TestSimulator:
    def test_with_nothing_it_asks_made_up_questions_and_both_ends_of_every_slider_are_named(self, client):
        html = html_of(client, SIMULATOR_URL)
        known = "With 10,000 visitors a day, shares are accurate to about ±8.2 points."
        says(unescape(text_of(html)), "Simulator", "Indicator 5", known)
        sliders = re.findall(r'<input class="slider".*?</p>', html, re.S)
        assert len(sliders) == 5
        for slider in sliders:
            small, large = re.findall(r"(?:small|large) values: *</span>(?:<[^>]*>← </span>)?([^<]+)", slider)
            assert "" not in (small.strip(), large.strip()) and small != large

    def test_of_a_study_it_asks_its_questions_under_its_plan(self, client, study):
        html = html_of(client, f"{SIMULATOR_URL}?study=fair")
        given = ["epsilon", "k-age", "k-visit_duration", "study"]
        assert [value_of(html, name) for name in given] == ["1", "2", "10", "fair"]
        assert "Fair &amp; market: simulator" in html
        assert "epsilon 19.61" in html and "These epsilons have different units" in html
        assert links(html, "Fair &amp; market") == ["/administrator/fair/"] and "Try it" in html
        for address in ("/administrator/", "/administrator/fair/"):
            assert f'href="{SIMULATOR_URL}' in html_of(client, address)
        assert "This indicator has its own epsilon" in shown(client, "?study=fair&wanted=5&of=visit_duration")

    def test_one_mechanism_is_recommended_and_each_says_what_it_is_for(self, client):
        html = html_of(client, SIMULATOR_URL)
        (first,), others = mechanisms_of(html)
        assert first == "smp-adp" and len(others) == 10
        assert len(set(re.findall(r'-use">([^<]+)</p>', html))) == 11
        says(html, "Recommended: <strong>smp-adp</strong>", "answered by the method with the smaller error")
        noisy = html_of(client, f"{SIMULATOR_URL}?presence_epsilon=1")
        says(noisy, "Recommended: <strong>smp-grr</strong>. Noise on visitor numbers needs answers")
        assert re.search(r'value="smp-grr" checked', noisy)

    def test_the_recommendation_follows_the_settings_without_touching_the_choice(self, client):
        query = f"{SIMULATOR_URL}?mechanism=smp-adp&daily=5&visitors=100000"
        fragment = client.get(query, headers=HTMX).content.decode()
        assert 'data-mechanism="smp-question" hx-swap-oob="true"' in fragment and "radio" not in fragment
        whole = html_of(client, query)
        assert mechanisms_of(whole)[0] == ["smp-question"] and "hx-swap-oob" not in whole
        assert '<details id="id-mechanism-others" open>' in whole
        assert "swap-oob" not in client.get(f"{query}&epsilon=x", headers=HTMX).content.decode()

    def test_hashed_daily_values_have_their_own_numbers(self, client):
        text = shown(client, "?mechanism=smp-loloha&daily=2&epsilon=1&epsilon_first=0.4&hash_cells=optimal")
        says(text, "Each report on a daily indicator has new noise", "smp-loloha")
        says(text, "Two daily reports do not show for certain whether a person's value changed")
        assert "Daily reports can show whether" not in text
        query = "?mechanism=smp-loloha&daily=2&epsilon=1&epsilon_first=1"
        assert "This must be lower than epsilon." in shown(client, query)
        keys = '"smp-loloha"\nepsilon_first = 0.25\nhash_cells = "optimal"'
        draft = draft_new_study(definition_of(STUDY.replace('"smp-grr"', keys)), by="adam")
        html = html_of(client, f"{SIMULATOR_URL}?draft={draft.pk}")
        assert 'value="0.25"' in html and '<option value="optimal" selected>' in html

    def test_renewed_reports_have_the_same_numbers(self, client):
        common = "indicators=2&epsilon=1&epsilon_first=0.4"
        text = shown(client, f"?mechanism=smp-allomfree&{common}")
        says(text, "smp-allomfree", "New noise in every report (smp-loloha, smp-allomfree)")
        query = "?mechanism=smp-allomfree&epsilon=1&epsilon_first=1"
        assert "This must be lower than epsilon." in shown(client, query)

    def test_of_a_draft_it_asks_what_is_drafted_and_what_is_missing_is_not_found(self, client):
        text = STUDY.replace("epsilon = 1.0", "epsilon = 2.5").replace("ers = 10", "ers = 3000")
        draft = draft_new_study(definition_of(text), by="adam")
        html = html_of(client, f"{SIMULATOR_URL}?draft={draft.pk}")
        given = ["epsilon", "draft", "visitors"]
        # 3,000 in 3 days, each on 1.5 days
        assert [value_of(html, name) for name in given] == ["2.5", str(draft.pk), "1500"]
        assert value_of(html_of(client, f"/administrator/drafts/{draft.pk}/"), "visitors") == "1500"
        assert PlanDraft.objects.count() == 1
        for query in ("?study=nothing", "?draft=99", "?draft=x", "?draft="):
            assert client.get(SIMULATOR_URL + query).status_code == 404

    def test_every_number_of_the_address_counts(self, client):
        query = "?mechanism=spl-grr&unit=attribute&epsilon=2&visitors=3000&stay=2&days=4"
        html = html_of(client, f"{SIMULATOR_URL}{query}&indicators=2&daily=1&categories=5&cap=2")
        given = ["epsilon", "visitors", "stay", "days", "categories"]
        assert [value_of(html, name) for name in given] == ["2", "3000", "2", "4", "5"]
        text = text_of(html)
        says(text, "Indicator 2 (daily)", "6,000 unique visitors", "not everyone answers every day")
        assert "1,500" in text  # reports of the daily one: 2 days of 4

    def test_links_keep_the_state_but_for_what_they_change(self, client, study):
        html = html_of(client, f"{SIMULATOR_URL}?study=fair&visitors=5000&k-age=4&mechanism=smp-oue")
        (tried,) = [link for link in links(html, "Try it") if "mechanism=spl-grr" in link]
        assert {"study=fair", "visitors=5000", "k-age=4"} < set(tried.removeprefix("?").split("&"))
        other = html_of(client, SIMULATOR_URL + tried)
        assert value_of(other, "visitors") == "5000"
        assert re.search(r'value="spl-grr" checked', other)

    def test_a_combination_says_what_it_shows_and_what_it_costs(self, client):
        draft = draft_new_study(definition_of(STUDY + static("region", "here", "elsewhere")), by="adam")
        start = f"?draft={draft.pk}&visitors=5000"
        assert "Combination:" not in shown(client, start)
        found = shown(client, f"{start}&combine_1=age&combine_2=region")
        says(found, "Combination: Age / Region", "There are 9 combinations", "Without the combination")
        for query, words in (
            ("&combine_1=age", "Choose at least two indicators to combine."),
            ("&combine_1=age&combine_2=age", "Choose each indicator only once."),
            ("&combine_1=age&combine_2=visit_duration", "Combination: Age / "),
            (
                "&combine_1=age&combine_2=region&mechanism=spl-grr",
                "must be absent under “spl-grr: all indicators for each person; each",
            ),
        ):
            assert words in shown(client, start + query), query

    def test_htmx_gets_the_result_only_and_nothing_is_posted(self, client):
        html = html_of(client, f"{SIMULATOR_URL}?epsilon=2", **{"HX-Request": "true"})
        says(html, "Expected accuracy", 'id="figure"')
        assert "<html" not in html
        assert client.post(SIMULATOR_URL, {"epsilon": "2"}).status_code == 405

    def test_what_is_wrong_or_impossible_is_said_and_no_crash(self, client):
        for query, words in (
            ("?epsilon=0", "Epsilon: Ensure this value is greater than or equal to 0.001."),
            ("?stay=8", "A person cannot be present on more days than the study has. Enter at most 7."),
            ("?daily=1&cap=8", "Enter at most 7. This is the number of days in the study."),
            ("?daily=6", "Enter a number that is no greater than the number of indicators in the plan."),
            ("?mechanism=none", "Mechanism: Select a valid choice."),
            ("?presence_epsilon=1&presence_days=8", "Enter at most 7. This is the number of days"),
        ):
            text = shown(client, query)
            assert (words in text, "Expected accuracy" in text) == (True, False), query
        for query, words in (
            ("?mechanism=rsfd-grr&unit=attribute&daily=1", "must be static"),
            (
                "?mechanism=smp-oue&presence_epsilon=1",
                "Leave “Presence epsilon (leave empty for exact totals)” empty",
            ),
            ("?visitors=1&indicators=50&stay=1", "too few people would report on this indicator"),
            ("?visitors=100&wanted=0.01", "up to 20 achieves this accuracy. The best possible accuracy is ±"),
        ):
            assert words in shown(client, query), query

    def test_a_wanted_error_leads_to_its_epsilon(self, client):
        query = "?visitors=10000&mechanism=smp-grr&indicators=2&categories=4&wanted=3"
        html = html_of(client, SIMULATOR_URL + query)
        found = re.search(r"The smallest epsilon that achieves this accuracy is ([\d.]+),", html)[1]
        (use,) = links(html, "Use this epsilon")
        assert f"epsilon={found}" in use and "wanted" not in use
        assert "±3.0 points" in shown(client, use)
        assert float(found) > 0.5


def test_the_simulator_shows_errors_of_numbers_of_events(client):
    query = "?mechanism=smp-oue&epsilon=1&days=31&indicators=1&daily=0&categories=17&events_per_day=81"
    assert 'id="events-title"' not in html_of(client, SIMULATOR_URL)
    html = html_of(client, SIMULATOR_URL + query + "&max_events=2")
    says(html, "81 events take place on each day", "Epsilon is 1 for all values of an event.")
    says(html, "For all answered events of a person, epsilon is 2.")
    refused = html_of(client, SIMULATOR_URL + query.replace("daily=0", "daily=1"))
    says(refused, "These settings do not suit a study of events.")
