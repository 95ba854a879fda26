"""Pages of drafts: from a file or a study, through the form, past a second person, into force."""

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from mobility.models import PlanDraft, VaultDay, VaultStudy
from mobility.services.drafts import approve_draft, submit_draft
from mobility.views.draft_typed import Typed
from reports.models import Plan, Study
from reports.policies import Role
from reports.services.budgets import propose_cap
from reports.studyfile import StudyDefinition
from tests.mobility.views.small_study import STUDY, page, text_of

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
CREATE_URL = "/administrator/create/"


@pytest.fixture(autouse=True)
def _signed_in(client: Client, administrator: User, data_dir: Path) -> None:
    client.force_login(administrator)


@pytest.fixture
def officer(person: Callable[..., User]) -> Client:
    """A privacy officer's browser."""
    browser = Client()
    browser.force_login(person("petra", Role.PRIVACY_OFFICER))
    return browser


@pytest.fixture
def second(person: Callable[..., User]) -> Client:
    """Another administrator's browser."""
    browser = Client()
    browser.force_login(person("bea", Role.ADMINISTRATOR))
    return browser


def url(draft: PlanDraft, more: str = "") -> str:
    return f"/administrator/drafts/{draft.pk}/{more}"


def drafted(client: Client, text: str = STUDY) -> PlanDraft:
    client.post(CREATE_URL, {"study_file": SimpleUploadedFile("study.toml", text.encode())})
    return PlanDraft.objects.get()


def take(client: Client, draft: PlanDraft, name: str, **more: str) -> str:
    """Take a step and read what the next page says."""
    draft.refresh_from_db()
    sent = {"step": name, "revision": str(draft.revision), **more}
    response = client.post(url(draft, "step/"), sent, follow=True)
    assert response.status_code == 200
    draft.refresh_from_db()
    return text_of(response.content.decode())


def filled(draft: PlanDraft) -> dict[str, str | list[str]]:
    """The form as a browser would send it back."""
    typed = Typed.of(StudyDefinition.from_json(draft.definition))
    return {**typed.values, "row": typed.rows, "revision": str(draft.revision), "do": "save"}


def edited(client: Client, draft: PlanDraft, **changes: str) -> HttpResponse:
    draft.refresh_from_db()
    sent = filled(draft) | {key.replace("__", "."): value for key, value in changes.items()}
    return client.post(
        url(draft, "edit/"), {key.replace("indicator_", "indicator-"): v for key, v in sent.items()}
    )


def field_of(html: str, name: str) -> str:
    """The HTML of a field with what is said beside it."""
    found = re.search(
        rf'<div class="field[^"]*">(?:(?!<div class="field).)*name="{re.escape(name)}".*?</div>', html, re.S
    )
    assert found, name
    return found[0]


class TestSecondPerson:
    def test_a_study_is_drafted_reviewed_and_published(self, client: Client, officer: Client) -> None:
        draft = drafted(client)
        shown = page(client, url(draft))
        assert "A second person has to approve it, because: It is a new study" in shown
        assert "Ask for a review" in shown
        assert "Publish: create the study" not in shown
        assert not Study.objects.exists()
        assert "waits for a review now" in take(client, draft, "submit")
        assert "It waits for your review: adam asks for it." in page(officer, "/administrator/")
        assert "somebody who wrote nothing of it" in page(client, url(draft))
        assert "You approved the draft as it stands" in take(officer, draft, "approve", remark="fine")
        approved = page(client, url(draft))
        assert "petra remarks: fine" in approved
        assert "has to approve it" not in approved
        assert "It needed a second person, because: It is a new study" in approved
        published = take(client, draft, "publish")
        assert "The study was created. Next: see who can see it" in published
        assert "Who can see it" in published
        assert Study.objects.get().created_by == "adam"
        assert VaultStudy.objects.get().plan_hash == Plan.objects.get().spec_hash == draft.plan_hash
        assert "Approved by petra at" in page(client, "/administrator/fair/")

    def test_another_administrator_may_review_but_not_the_author(
        self, client: Client, second: Client
    ) -> None:
        draft = drafted(client)
        take(client, draft, "submit")
        assert "this step is not yours" in take(client, draft, "approve")
        assert draft.state == "draft"
        assert "You approved" in take(second, draft, "approve")

    def test_who_edited_does_not_review_either(self, client: Client, second: Client) -> None:
        draft = drafted(client)
        edited(second, draft, plan__epsilon="0.7")
        take(client, draft, "submit")
        for browser in (client, second):
            assert "this step is not yours" in take(browser, draft, "approve")
        assert draft.reviewed_at is None

    def test_a_privacy_officer_cannot_write(self, client: Client, officer: Client) -> None:
        draft = drafted(client)
        assert officer.get(url(draft, "edit/")).status_code == 404
        for name in ("submit", "publish", "withdraw"):
            assert "this step is not yours" in take(officer, draft, name)
        assert draft.state == "draft"

    def test_sending_back_needs_a_reason(self, client: Client, officer: Client) -> None:
        draft = drafted(client)
        take(client, draft, "submit")
        assert "Say what is to be changed" in take(officer, draft, "send_back")
        take(officer, draft, "send_back", remark="Epsilon is too large.")
        assert draft.submitted_at is None
        assert "petra remarks: Epsilon is too large." in page(client, url(draft))

    def test_publishing_without_a_review_is_refused(self, client: Client) -> None:
        draft = drafted(client)
        assert "this step is not yours, or not the next one" in take(client, draft, "publish")
        assert not Study.objects.exists()

    def test_an_approval_is_for_the_text_that_was_seen(self, client: Client, officer: Client) -> None:
        draft = drafted(client)
        take(client, draft, "submit")
        edited(client, draft, plan__epsilon="20")
        take(client, draft, "submit")
        response = officer.post(url(draft, "step/"), {"step": "approve", "revision": "1"}, follow=True)
        assert "since you looked at it: look again first" in text_of(response.content.decode())
        draft.refresh_from_db()
        assert draft.state == "draft"

    def test_an_edit_takes_the_approval_away(self, client: Client, officer: Client) -> None:
        draft = drafted(client)
        take(client, draft, "submit")
        take(officer, draft, "approve")
        assert "petra approved this draft. Saving a change takes the approval away." in page(
            client, url(draft, "edit/")
        )
        edited(client, draft, plan__epsilon="1.1")
        draft.refresh_from_db()
        assert (draft.state, draft.reviewed_by) == ("draft", "")
        assert "this step is not yours" in take(client, draft, "publish")

    def test_one_person_may_work_alone_where_the_site_says_so(
        self, client: Client, settings: Settings
    ) -> None:
        settings.MOBILITY_SECOND_PERSON = False
        draft = drafted(client)
        shown = page(client, url(draft))
        assert "This site asks for no second person" in shown
        assert "The study was created" in take(client, draft, "publish")
        assert "Nobody else looked at it: this site asks for no second person." in page(
            client, "/administrator/fair/"
        )


class TestForm:
    def test_every_problem_stands_beside_its_field(self, client: Client) -> None:
        draft = drafted(client)
        response = edited(
            client,
            draft,
            plan__epsilon="much",
            study__days="70",
            indicator_0__categories="young\nyoung",
            indicator_1__max_values="99",
            study__slug="Not A Slug",
        )
        assert response.status_code == 422
        html = response.content.decode()
        assert "Nothing was saved. 5 problems are marked below." in text_of(html)
        for name, rule in (
            ("plan.epsilon", "must be a number &gt; 0 and &lt;= 20"),
            ("study.days", "must be a whole number from 1 to 62, got 70"),
            ("indicator-0.categories", "category 2: must be unique in the indicator, got &quot;young&quot;"),
            ("indicator-1.max_values", "must be a whole number from 1 to"),
            ("study.slug", "must be 1 to 64 lower-case letters"),
        ):
            assert rule in field_of(html, name), name
        draft.refresh_from_db()
        assert draft.revision == 1

    def test_nothing_that_was_typed_is_lost(self, client: Client) -> None:
        draft = drafted(client)
        html = edited(
            client, draft, plan__epsilon="much", study__name="A & B", plan__unit="attribute"
        ).content.decode()
        assert 'value="much"' in field_of(html, "plan.epsilon")
        assert 'value="A &amp; B"' in field_of(html, "study.name")
        assert '<option value="attribute" selected>' in field_of(html, "plan.unit")

    def test_what_is_right_is_saved_and_compared(self, client: Client) -> None:
        draft = drafted(client)
        response = edited(client, draft, plan__epsilon="0,5", study__small_cell="30", indicator_0__weight="2")
        assert response.status_code == 302
        draft.refresh_from_db()
        assert draft.definition["plan"]["epsilon"] == "0.5"
        assert (draft.definition["small_cell"], draft.definition["indicators"][0]["weight"]) == (30, "2")
        assert (draft.revision, draft.edited_by) == (2, "adam")

    def test_a_cap_that_the_plan_breaks_is_named_at_its_field(self, client: Client) -> None:
        draft = drafted(client)
        html = edited(client, draft, plan__epsilon_profile="1").content.decode()
        assert "must be &gt;= the certified loss per profile 1.4999" in field_of(html, "plan.epsilon_profile")

    def test_the_second_of_two_who_edit_at_once_sees_it(self, client: Client, second: Client) -> None:
        draft = drafted(client)
        first = filled(draft)
        edited(second, draft, plan__epsilon="0.5")
        response = client.post(url(draft, "edit/"), {**first, "plan.epsilon": "3"})
        assert response.status_code == 409
        html = response.content.decode()
        assert "the draft was saved by bea while you edited it" in text_of(html)
        assert 'value="3"' in field_of(html, "plan.epsilon")
        draft.refresh_from_db()
        assert draft.definition["plan"]["epsilon"] == "0.5"

    def test_indicators_are_added_and_removed_without_scripts(self, client: Client) -> None:
        draft = drafted(client)
        sent = {**filled(draft), "do": "add-static", "plan.epsilon": "0.25"}
        html = client.post(url(draft, "edit/"), sent).content.decode()
        assert "not saved yet" in html
        assert 'name="indicator-2.column"' in html
        assert 'value="0.25"' in field_of(html, "plan.epsilon")
        new = {
            "row": ["indicator-0", "indicator-1", "indicator-2"],
            "indicator-2.kind": "static",
            "indicator-2.name": "Home region",
            "indicator-2.slug": "region",
            "indicator-2.column": "region",
            "indicator-2.categories": "here\r\nelsewhere\r\n",
        }
        assert client.post(url(draft, "edit/"), {**filled(draft), **new}).status_code == 302
        draft.refresh_from_db()
        added = draft.definition["indicators"][2]
        assert (added["slug"], added["categories"]) == ("region", ["here", "elsewhere"])
        fewer = {**filled(draft), "do": "remove-indicator-0"}
        assert 'name="indicator-0.slug"' not in client.post(url(draft, "edit/"), fewer).content.decode()
        edited_rows = {**filled(draft), "row": ["indicator-2", "indicator-1"]}
        client.post(url(draft, "edit/"), edited_rows)
        draft.refresh_from_db()
        assert [each["slug"] for each in draft.definition["indicators"]] == ["region", "visit_duration"]

    def test_an_ended_draft_is_not_edited(self, client: Client) -> None:
        draft = drafted(client)
        assert "The draft was withdrawn" in take(client, draft, "withdraw")
        response = client.get(url(draft, "edit/"), follow=True)
        assert "This draft cannot be edited any more." in response.content.decode()

    def test_markup_stays_text(self, client: Client) -> None:
        draft = drafted(client)
        html = edited(
            client, draft, study__name="<b>x", indicator_0__name="<script>1</script>"
        ).content.decode()
        html += page(client, url(draft)) + client.get(url(draft, "edit/")).content.decode()
        assert "<b>x" not in html
        assert "<script>1" not in html

    def test_a_form_that_nobody_made_breaks_nothing(self, client: Client) -> None:
        draft = drafted(client)
        for sent in (
            {},
            {"row": "x"},
            {"row": "indicator-99999"},
            {"row": ["indicator-0"] * 2, "revision": "-1"},
        ):
            assert client.post(url(draft, "edit/"), sent).status_code == 422
        assert client.post(url(draft, "step/"), {"step": "approve", "revision": "9" * 40}).status_code == 302
        assert client.post(url(draft, "step/"), {"step": "no such step"}).status_code == 302
        draft.refresh_from_db()
        assert draft.revision == 1


class TestStudy:
    """The next version of a study's plan, and copies of studies."""

    def test_lowering_needs_nobody_else(self, client: Client, study: VaultStudy) -> None:
        response = client.post("/administrator/fair/draft/", follow=True)
        assert response.redirect_chain[-1][0].endswith("/edit/")
        draft = PlanDraft.objects.get()
        assert "Nothing yet: the draft says what is in force." in page(client, url(draft))
        edited(client, draft, plan__epsilon="0.5")
        shown = page(client, url(draft))
        assert "protects more age: epsilon of an answer falls from 1 to 0.5." in shown
        assert "1 → 0.5" in shown
        assert "Nobody else has to approve it." in shown
        assert "Version 2 of the plan is in force now." in take(client, draft, "publish")
        shown = page(client, "/administrator/fair/")
        assert "Version 2 in force" in shown
        assert "Version 1 superseded" in shown

    def test_raising_does(self, client: Client, officer: Client, study: VaultStudy) -> None:
        client.post("/administrator/fair/draft/")
        draft = PlanDraft.objects.get()
        edited(client, draft, plan__epsilon="1.2")
        shown = page(client, url(draft))
        assert "A second person has to approve it, because: " in shown
        assert "age: epsilon of an answer rises from 1 to 1.2." in shown
        assert "this step is not yours" in take(client, draft, "publish")
        take(client, draft, "submit")
        take(officer, draft, "approve")
        take(client, draft, "publish")
        assert VaultStudy.objects.get().plan["version"] == 2

    def test_a_study_with_rows_offers_a_copy(self, client: Client, study: VaultStudy) -> None:
        VaultDay.objects.create(study=study, day=1)
        shown = page(client, "/administrator/fair/")
        assert "is final, since rows were taken in under it" in shown
        assert "Draft another version" not in shown
        response = client.post("/administrator/fair/draft/", follow=True)
        assert "copy it to a new study instead" in text_of(response.content.decode())
        assert not PlanDraft.objects.exists()
        client.post("/administrator/fair/draft/", {"copy_to": "fair-2"})
        draft = PlanDraft.objects.get()
        assert (draft.slug, draft.is_new_study, draft.base_slug) == ("fair-2", True, "fair")

    def test_rows_that_come_while_it_is_drafted_stop_it(self, client: Client, study: VaultStudy) -> None:
        client.post("/administrator/fair/draft/")
        draft = PlanDraft.objects.get()
        edited(client, draft, plan__epsilon="0.5")
        VaultDay.objects.create(study=study, day=1)
        assert "answers that were given cannot be asked again" in take(client, draft, "publish")
        assert (draft.state, Plan.objects.count()) == ("draft", 1)

    @pytest.mark.parametrize("slug", ["", "Not A Slug", "fair", "create", "drafts"])
    def test_a_copy_needs_a_name_of_its_own(self, client: Client, study: VaultStudy, slug: str) -> None:
        response = client.post("/administrator/fair/draft/", {"copy_to": slug}, follow=True)
        assert "study.slug" in text_of(response.content.decode())
        assert not PlanDraft.objects.exists()

    def test_the_second_draft_of_a_study_leads_to_the_first(
        self, client: Client, second: Client, study: VaultStudy
    ) -> None:
        client.post("/administrator/fair/draft/")
        response = second.post("/administrator/fair/draft/", follow=True)
        assert response.redirect_chain[-1][0] == url(PlanDraft.objects.get())
        assert "adam works on the other" in text_of(response.content.decode())

    def test_its_short_name_is_fixed(self, client: Client, study: VaultStudy) -> None:
        client.post("/administrator/fair/draft/")
        draft = PlanDraft.objects.get()
        assert 'name="study.slug"' not in client.get(url(draft, "edit/")).content.decode()
        response = edited(client, draft, study__slug="other", plan__epsilon="0.5")
        assert response.status_code == 422
        assert "must stay &quot;fair&quot;" in text_of(response.content.decode())


class TestPages:
    def test_an_unfinished_publication_says_so_and_goes_on(
        self, client: Client, second: Client, study: VaultStudy
    ) -> None:
        client.post("/administrator/fair/draft/")
        draft = PlanDraft.objects.get()
        edited(client, draft, plan__epsilon="0.5")
        take(client, draft, "publish")
        PlanDraft.objects.update(announced_at=None)  # as a crash leaves it
        assert "half published" in page(client, url(draft))
        assert "Version 2 of the plan is in force now." in take(second, draft, "finish")

    def test_the_expected_visitors_change_the_intervals(self, client: Client) -> None:
        draft = drafted(client)
        few, many = (page(client, url(draft, f"?visitors={n}")) for n in (100, 1_000_000))
        widths = [float(w) for text in (few, many) for w in re.findall(r"± ([\d.]+)\s?points", text)]
        assert len(widths) == 4
        assert widths[0] > 20 * widths[2]
        for odd in ("x", "", "-5", "9" * 50):
            assert client.get(url(draft, f"?visitors={odd}")).status_code == 200

    def test_a_draft_and_its_simulator_expect_the_same_visitors(self, client: Client) -> None:
        draft = drafted(client)
        definition = StudyDefinition.from_json(draft.definition)
        PlanDraft.objects.update(definition=replace(definition, expected_subscribers=70_000).to_json())
        expected = round(70_000 * min(1.5, definition.days) / definition.days)
        for address in (url(draft), f"/administrator/simulator/?draft={draft.pk}"):
            assert f'value="{expected}"' in client.get(address).content.decode()

    def test_the_list_says_what_became_of_each(self, client: Client) -> None:
        draft = drafted(client)
        assert "Ask for a review when it is as you want it." in page(client, "/administrator/drafts/")
        take(client, draft, "withdraw")
        assert "adam withdrew it. It changed nothing." in page(client, "/administrator/drafts/")

    def test_pages_have_no_inline_script_or_style(self, client: Client) -> None:
        draft = drafted(client)
        submit_draft(draft, revision=1, by="adam")
        approve_draft(draft, revision=1, by="petra", remark="x")
        for address in ("/administrator/drafts/", url(draft), url(draft, "edit/")):
            html = client.get(address).content.decode()
            assert not re.search(r"\sstyle=|\son\w+=|<style", html), address
            assert not re.search(r"<script(?![^>]*\ssrc=)", html), address

    def test_a_list_of_many_drafts_costs_a_few_queries(
        self, client: Client, django_assert_max_num_queries: Callable[..., object]
    ) -> None:
        draft = drafted(client)
        now = timezone.now()
        for n in range(20):
            draft.pk, draft.slug, draft.state, draft.ended_at = None, f"s{n}", "withdrawn", now
            draft.save()
        with django_assert_max_num_queries(12):
            shown = page(client, "/administrator/drafts/")
        assert shown.count("Fair &amp; market") == 21


class TestWhatStandsInTheWay:
    def test_a_second_draft_of_a_study_leads_to_the_first(self, client: Client) -> None:
        draft = drafted(client)
        again = client.post(CREATE_URL, {"study_file": SimpleUploadedFile("study.toml", STUDY.encode())})
        assert again.status_code == 422
        assert f'<a href="{url(draft)}">See the other draft</a>' in again.content.decode()

    def test_a_draft_over_the_budget_says_so_beside_the_next_step(
        self, client: Client, officer: Client
    ) -> None:
        draft = drafted(client)
        assert "more than the budget has left" not in page(client, url(draft))
        cap = {"population": "subscribers", "unit": "profile", "period": "year"}
        propose_cap(**cap, epsilon=Decimal("0.01"), by="adam")
        take(client, draft, "submit")
        for browser in (client, officer):
            assert "It takes more than the budget has left" in page(browser, url(draft))
