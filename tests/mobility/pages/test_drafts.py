"""Pages of drafts: from a file or a study, through the form, past a second person, into force."""
# The rules of the steps: tests/mobility/plans/test_drafts.py.

import re
from dataclasses import replace
from decimal import Decimal
from html import unescape

import pytest
from django.utils import timezone

from mobility.models import PlanDraft, VaultDay, VaultStudy
from mobility.plans.drafts import approve_draft, draft_new_study, save_draft, submit_draft
from mobility.plans.pages import urls as administrator_urls
from mobility.plans.pages.draft_typed import Typed
from reports.models import Plan, Study
from reports.privacy.budget.actions import propose_cap
from reports.studies.policies import Role
from reports.studies.studyfile import AreaDefinition, StudyDefinition
from reports.studies.studyfile.sections import RESERVED_STUDIES
from tests.mobility.class_study import class_text
from tests.mobility.pages.pages import (
    AS_ADMINISTRATOR,
    check_markup,
    field_of,
    file,
    html_of,
    lacks,
    mechanisms_of,
    page,
    said,
    says,
)
from tests.mobility.pages.small_study import STUDY
from tests.reports import report_factory as factory
from tests.reports import slot_factory
from tests.reports.page_texts import signed_in

pytestmark = AS_ADMINISTRATOR
ZONED = AreaDefinition(cells=(), zones=("a", "b"), geojson=None)
SLOTS = replace(slot_factory.DEFINITION, levels=())
CREATE_URL, LIST_URL = "/administrator/create/", "/administrator/drafts/"


@pytest.fixture
def officer(person):
    return signed_in(person("petra", Role.PRIVACY_OFFICER))


@pytest.fixture
def second(person):
    return signed_in(person("bea", Role.ADMINISTRATOR))


def url(draft, more=""):
    return f"{LIST_URL}{draft.pk}/{more}"


def send_file(client):
    return client.post(CREATE_URL, {"study_file": file(STUDY)})


@pytest.fixture
def draft(client) -> PlanDraft:
    send_file(client)
    return PlanDraft.objects.get()


def take(client, draft, name, **more):
    draft.refresh_from_db()
    sent = {"step": name, "revision": str(draft.revision), **more}
    response = client.post(url(draft, "step/"), sent, follow=True)
    assert response.status_code == 200
    draft.refresh_from_db()
    return said(response)


def filled(draft, **changes):
    draft.refresh_from_db()
    typed = Typed.of(StudyDefinition.from_json(draft.definition))
    rows, revision = [*typed.rows, *typed.classes], str(draft.revision)
    return {**typed.values, "row": rows, "revision": revision, "do": "save"} | changes


def edited(client, draft, changes=(), /, **more):
    """Send the form with changes; `plan__epsilon` stands for `plan.epsilon`."""
    named = {key.replace("__", "."): value for key, value in more.items()}
    response = client.post(url(draft, "edit/"), filled(draft, **dict(changes), **named))
    draft.refresh_from_db()
    return response


class TestSecondPerson:
    def test_a_study_is_drafted_reviewed_and_published(self, client, officer, draft):
        shown = page(client, url(draft))
        says(shown, "A second person must approve this draft because: This is a new study", "Request review")
        assert "Publish and create the study" not in shown
        assert "When the draft is ready, request a review." in page(client, LIST_URL)
        assert "for this step, or the draft has reached a different stage" in take(client, draft, "publish")
        assert not Study.objects.exists()
        assert "is waiting for review" in take(client, draft, "submit")
        assert "Waiting for your review (requested by adam)." in page(officer, "/administrator/")
        assert "who did not edit the draft" in page(client, url(draft))
        for name in ("submit", "publish", "withdraw"):
            assert "you do not have permission for this step" in take(officer, draft, name)
        assert "Describe what the author should change" in take(officer, draft, "send_back")
        take(officer, draft, "send_back", remark="Epsilon is too large.")
        assert draft.submitted_at is None
        assert "Comment by petra: Epsilon is too large." in page(client, url(draft))
        take(client, draft, "submit")
        assert "You approved the draft in its current form" in take(officer, draft, "approve", remark="fine")
        approved = page(client, url(draft))
        says(approved, "Comment by petra: fine", "by a second person was needed because: This is a new study")
        assert "must approve this draft" not in approved
        warning = "petra approved this draft. Saving a change cancels the approval."
        assert warning in page(client, url(draft, "edit/"))
        assert "The study has been created. Next, open the People page and check who" in take(
            client, draft, "publish"
        )
        assert Study.objects.get().created_by == "adam"
        assert VaultStudy.objects.get().plan_hash == Plan.objects.get().spec_hash == draft.plan_hash
        assert "Approved by petra at" in page(client, "/administrator/fair/")

    def test_one_person_may_work_alone_where_the_site_says_so(self, client, settings, draft):
        settings.MOBILITY_SECOND_PERSON = False
        sent = {"step": "publish", "revision": str(draft.revision)}
        html = client.post(url(draft, "step/"), sent, follow=True).content.decode()
        says(html, "The study has been created", '<a href="/people/">Open the People page</a>')
        assert "Not reviewed: this site does not require approval" in page(client, "/administrator/fair/")


def test_a_second_person_sees_where_epsilon_per_attribute_promises_nothing(client, officer):
    coin = factory.indicator("night", "in", "out", kind="daily", column=None, derive="visit_duration")
    draft = draft_new_study(factory.definition(coin, slug="days"), by="adam")
    assert "gives no guarantee" in page(officer, url(draft))


def test_a_second_person_sees_the_epsilon_of_each_class(client, officer):
    client.post(CREATE_URL, {"study_file": file(class_text({"panel": 3, "standard": 1, "minor": 0.5}))})
    shown = page(officer, url(PlanDraft.objects.get()))
    says(shown, "Column contract of the files says which class", "largest epsilon (Class panel)")
    for slug, epsilon in (("panel", "3"), ("standard", "1"), ("minor", "0.5")):
        names, value = f"Class {slug} (Classe {slug}) {slug}", f"value in the column: {slug.upper()}"
        says(shown, names, f"{value}; epsilon {epsilon}. Certified epsilon: ")
    says(shown, "Certified epsilon: 1 per attribute, 3 per profile.")


def test_a_draft_that_was_written_as_text_opens_with_its_classes_in_the_form(client):
    client.post(CREATE_URL, {"study_file": file(class_text({"panel": 3, "standard": 1, "minor": 0.5}))})
    draft = PlanDraft.objects.get()
    html = html_of(client, url(draft, "edit/"))
    assert 'value="contract"' in field_of(html, "plan.class_column")
    for place, (slug, epsilon, loss) in enumerate(
        [("panel", 3, 9), ("standard", 1, 3), ("minor", 0.5, "1.5")]
    ):
        says(field_of(html, f"class-{place}.slug"), f'value="{slug}"')
        certified = f"Certified epsilon: {epsilon} per attribute, {loss} per profile"
        says(field_of(html, f"class-{place}.epsilon"), f'value="{epsilon}"', certified)
    refused = edited(client, draft, {"class-0.epsilon": "2"}).content.decode()
    says(field_of(refused, "plan.epsilon"), "must be the largest epsilon of the classes, 2, got 3")
    lacks(refused, "Certified epsilon")
    assert edited(client, draft, {"class-2.epsilon": "0,25", "class-2.value": ""}).status_code == 302
    assert (
        draft.definition["classes"][2] | {"epsilon": "0.25", "value": "minor"}
        == (draft.definition["classes"][2])
    )
    more = edited(client, draft, {"do": "add-class"}).content.decode()
    says(more, "The list of indicators or classes has not been saved yet", 'name="class-3.epsilon"')
    left = edited(client, draft, {"do": "remove-class-1"}).content.decode()
    says(left, 'name="class-2.slug"')
    lacks(left, 'name="class-1.slug"')


class TestForm:
    def test_every_problem_stands_beside_its_field_and_nothing_that_was_typed_is_lost(self, client, draft):
        wrong = {"indicator-0.categories": "young\nyoung", "indicator-1.max_values": "99"}
        response = edited(
            client, draft, wrong, plan__epsilon="much", study__days="70", study__slug="Not A Slug",
            study__name="A & B", plan__unit="attribute",
        )  # fmt: skip
        assert response.status_code == 422
        assert "Nothing was saved. 5 problems are marked below." in said(response)
        html = response.content.decode()
        for name, shown in (
            ("plan.epsilon", "must be a number &gt; 0 and &lt;= 20"),
            ("study.days", "must be a whole number from 1 to 62, got 70"),
            ("indicator-0.categories", "category 2: must be unique in the indicator, got &quot;young&quot;"),
            ("indicator-1.max_values", "must be a whole number from 1 to"),
            ("study.slug", "must be 1 to 64 lower-case letters"), ("plan.epsilon", 'value="much"'),
            ("study.name", 'value="A &amp; B"'), ("plan.unit", '<option value="attribute" selected>'),
        ):  # fmt: skip
            assert shown in field_of(html, name), name
        assert draft.revision == 1

    def test_on_french_pages_only_a_problem_without_translation_is_marked_as_english(self, client, draft):
        client.defaults["HTTP_ACCEPT_LANGUAGE"] = "fr"
        html = edited(client, draft, study__days="70").content.decode()
        says(field_of(html, "study.days"), '<li class="break">doit être un nombre entier de 1 à 62')
        html = edited(client, draft, plan__epsilon_profile="0.5").content.decode()
        says(field_of(html, "plan.epsilon_profile"), '<li class="break" lang="en">“Epsilon maximal')

    def test_what_is_right_is_saved_and_compared(self, client, draft):
        changes = {"study.small_cell": "30", "indicator-0.weight": "2", "plan.tallies": "visits runs"}
        response = edited(client, draft, changes, plan__epsilon="0,5")
        assert draft.definition["plan"]["tallies"] == ["visits", "runs"]
        assert (response.status_code, draft.definition["plan"]["epsilon"]) == (302, "0.5")
        assert (draft.definition["small_cell"], draft.definition["indicators"][0]["weight"]) == (30, "2")
        assert (draft.revision, draft.edited_by) == (2, "adam")
        html = edited(client, draft, plan__epsilon_profile="0.5").content.decode()
        assert '<option value="visits runs" selected>' in field_of(html, "plan.tallies")
        assert "must be &gt;= the certified loss per profile" in field_of(html, "plan.epsilon_profile")

    def test_the_saved_draft_decides_which_mechanism_is_recommended(self, client, draft):
        html = html_of(client, url(draft, "edit/"))
        first, _others = mechanisms_of(html)
        assert first == ["smp-question"] and 'value="smp-grr" checked' in html.partition("<details ")[2]
        says(html, "Recommended: <strong>smp-question</strong>. By the simulator", "narrower on average than")
        html = edited(client, draft, plan__mechanism="smp-none").content.decode()
        says(html, "must be one of", 'value="smp-none" checked')
        assert edited(client, draft, plan__mechanism="smp-question").status_code == 302
        assert draft.definition["plan"]["mechanism"] == "smp-question"

    def test_hashed_values_have_fields_and_the_plan_says_both(self, client, draft):
        hashed = {"plan.mechanism": "smp-loloha", "plan.hash_cells": "optimal"}
        html = edited(client, draft, hashed, plan__epsilon="0.5", plan__epsilon_first="0,5").content.decode()
        assert "epsilon_first must be below the epsilon of visit_duration, 0.5, got 0.5" in html
        assert '<option value="optimal" selected>' in field_of(html, "plan.hash_cells")
        assert edited(client, draft, hashed, plan__epsilon_first="0,2").status_code == 302
        plan = StudyDefinition.from_json(draft.definition).plan
        assert (plan.mechanism, plan.epsilon_first, plan.hash_cells) == (
            "smp-loloha", Decimal("0.2"), "optimal",
        )  # fmt: skip
        text = said(client.get(url(draft)))
        says(text, "Epsilon of one report 0.2", "Number of sets of categories optimal")
        edited(client, draft, hashed | {"plan.hash_cells": ""}, plan__epsilon_first="")
        assert "epsilon_first" not in draft.definition["plan"]

    def test_streams_have_a_field_and_the_plan_says_what_a_window_loses(self, client, draft):
        stream = {"plan.mechanism": "smp-stream"}
        html = edited(client, draft, stream, plan__window_days="63").content.decode()
        assert "must be a whole number from 1 to 62" in field_of(html, "plan.window_days")
        assert edited(client, draft, stream, plan__window_days="2").status_code == 302
        plan = StudyDefinition.from_json(draft.definition).plan
        assert (plan.mechanism, plan.window_days) == ("smp-stream", 2)
        text = said(client.get(url(draft)))
        says(text, "Window length in days 2", "on at most one of any 2 consecutive days")
        edited(client, draft, stream, plan__window_days="")
        assert "window_days" not in draft.definition["plan"]

    def test_slots_have_fields_by_the_rules_of_the_study_file_and_the_page_says_what_they_promise(
        self, client, draft
    ):
        found = StudyDefinition.from_json(draft.definition)
        found = replace(found, area=ZONED, slots=SLOTS, extract=replace(found.extract, cell="cell"))
        save_draft(draft, found, revision=1, by="adam")
        html = edited(client, draft, slots__minutes="20").content.decode()
        assert "must be one of 15, 30, 60, 120, got 20" in field_of(html, "slots.minutes")
        edited(client, draft, slots__minutes="60", slots__slots_per_day="10", slots__epsilon_day="0,5")
        saved = StudyDefinition.from_json(draft.definition).slots
        assert (saved.minutes, saved.slots_per_day, saved.epsilon_day) == (60, 10, Decimal("0.5"))
        once = "Only each person&#x27;s first 10 time slots of the day are counted."
        says(said(client.get(url(draft))), "in time slots of 60 minutes", once)

    def test_the_second_of_two_who_edit_at_once_sees_it(self, client, second, draft):
        first = filled(draft)
        edited(second, draft, plan__epsilon="0.5")
        response = client.post(url(draft, "edit/"), {**first, "plan.epsilon": "3"})
        assert response.status_code == 409
        assert "the draft was saved by bea while you were editing it" in said(response)
        assert 'value="3"' in field_of(response.content.decode(), "plan.epsilon")
        draft.refresh_from_db()
        assert draft.definition["plan"]["epsilon"] == "0.5"

    def test_an_indicator_is_added_without_scripts(self, client, draft):
        for kind, there, absent in (
            ("static", "column", "parts"), ("joint", "parts", "column"), ("number", "cuts", "categories"),
        ):  # fmt: skip
            html = edited(client, draft, {"do": f"add-{kind}"}, plan__epsilon="0.25").content.decode()
            says(html, "has not been saved yet", f'name="indicator-2.{there}"')
            assert f'name="indicator-2.{absent}"' not in html
            assert 'value="0.25"' in field_of(html, "plan.epsilon")

    def test_indicators_of_every_kind_are_saved_kept_and_removed(self, client, draft):
        more = {
            "row": [f"indicator-{n}" for n in range(5)],
            "indicator-2.kind": "static", "indicator-2.slug": "region", "indicator-2.column": "region",
            "indicator-2.name": "Home region", "indicator-2.categories": "here\r\nelsewhere\r\n",
            "indicator-2.groups": "all: here\r\nall",
            "indicator-3.kind": "joint", "indicator-3.slug": "both", "indicator-3.parts": "age\r\nregion\r\n",
            "indicator-4.kind": "number", "indicator-4.slug": "spent", "indicator-4.column": "spent",
            "indicator-4.unit": "EUR", "indicator-4.cuts": "10\r\nmany\r\n",
        }  # fmt: skip
        refused = edited(client, draft, more).content.decode()
        assert "must be a list of 2 to 127 whole numbers" in field_of(refused, "indicator-4.cuts")
        assert "<select" not in field_of(refused, "indicator-4.unit")
        more["indicator-4.cuts"] = "10\r\n20, 50\r\n"
        assert edited(client, draft, more).status_code == 302
        says(html_of(client, url(draft)), "<strong>all</strong> here")
        assert edited(client, draft, plan__epsilon="0.75").status_code == 302
        region, both, spent = draft.definition["indicators"][2:]
        assert (region["slug"], region["categories"]) == ("region", ["here", "elsewhere"])
        assert region["groups"] == [["all", ["here"]]]
        assert (both["parts"], len(both["categories"]), both["column"]) == (["age", "region"], 9, None)
        assert spent["scale"] == {"cuts": [10, 20, 50], "minimum": 0, "unit": "EUR"}
        assert (spent["kind"], len(spent["categories"])) == ("static", 3)
        more = {"indicator-3.parts": "region\r\nvisit_duration\r\n", "indicator-3.max_values": "2"}
        assert edited(client, draft, more).status_code == 302
        both = draft.definition["indicators"][3]  # daily, as one of its parts is
        assert (both["kind"], both["max_values"], len(both["categories"])) == ("daily", 2, 33)
        html = edited(client, draft, {"do": "remove-indicator-0"}).content.decode()
        assert 'name="indicator-0.slug"' not in html
        edited(client, draft, {"row": ["indicator-2", "indicator-1"]})
        assert [each["slug"] for each in draft.definition["indicators"]] == ["region", "visit_duration"]

    def test_moves_need_zones_and_keep_their_number(self, client, draft):
        more = {"indicator-1.derive": "moves", "indicator-1.max_moves": "0"}
        refused = client.post(url(draft, "edit/"), {**filled(draft), **more}).content.decode()
        assert "must be a whole number from 1 to 100" in field_of(refused, "indicator-1.max_moves")
        assert "needs [area] with zones" in field_of(refused, "indicator-1.derive")
        assert "moves between zones" in refused

    def test_another_file_of_the_study_leads_to_the_draft_and_an_ended_one_is_not_edited(self, client, draft):
        again = send_file(client)
        assert again.status_code == 422
        assert f'<a href="{url(draft)}">Open the other draft</a>' in again.content.decode()
        assert "The draft was withdrawn" in take(client, draft, "withdraw")
        response = client.get(url(draft, "edit/"), follow=True)
        assert "This draft can no longer be edited." in response.content.decode()
        assert "adam withdrew the draft before it took effect." in page(client, LIST_URL)

    def test_markup_stays_text_and_a_form_that_nobody_made_breaks_nothing(self, client, draft):
        twice = {"row": ["indicator-0"] * 2, "revision": "-1"}
        for sent in ({}, {"row": "x"}, {"row": "indicator-99999"}, twice):
            assert client.post(url(draft, "edit/"), sent).status_code == 422
        for sent in ({"step": "approve", "revision": "9" * 40}, {"step": "no such step"}):
            assert client.post(url(draft, "step/"), sent).status_code == 302
        draft.refresh_from_db()
        assert draft.revision == 1
        edited(client, draft, {"study.name": "<b>x", "indicator-0.name": "<script>1</script>"})
        assert draft.revision == 2
        for address in (url(draft), url(draft, "edit/")):
            lacks(html_of(client, address), "<b>x", "<script>1")


class TestStudy:  # the next version of a study's plan, and copies of studies
    def test_raising_needs_a_second_person_and_lowering_nobody_else(self, client, second, study):
        client.post("/administrator/fair/draft/")
        next_version = PlanDraft.objects.get()
        assert "No changes yet: the draft matches the plan in force." in page(client, url(next_version))
        edited(client, next_version, plan__epsilon="1.2")
        shown = page(client, url(next_version))
        says(shown, "A second person must approve", "age: epsilon per answer rises from 1 to 1.2.")
        assert "you do not have permission for this step" in take(client, next_version, "publish")
        edited(client, next_version, plan__epsilon="0.5")
        shown = page(client, url(next_version))
        says(shown, "stronger protection age: epsilon per answer falls from 1 to 0.5.", "1 → 0.5")
        assert "No further approval is needed" in shown
        assert "Version 2 of the plan is now in force." in take(client, next_version, "publish")
        says(page(client, "/administrator/fair/"), "Version 2 in force", "Version 1 superseded")
        PlanDraft.objects.update(announced_at=None)  # as a crash leaves it: any administrator continues
        assert "partly published" in page(client, url(next_version))
        assert "Version 2 of the plan is now in force." in take(second, next_version, "finish")

    def test_a_study_with_rows_offers_a_copy(self, client, study):
        VaultDay.objects.create(study=study, day=1)
        shown = page(client, "/administrator/fair/")
        assert "is final, because rows were processed under it" in shown
        assert "Draft another version" not in shown
        assert "est définitif" in html_of(client, "/administrator/fair/", **{"accept-language": "fr"})
        response = client.post("/administrator/fair/draft/", follow=True)
        assert "Copy it to a new study instead" in said(response)
        assert not PlanDraft.objects.exists()
        client.post("/administrator/fair/draft/", {"copy_to": "fair-2"})
        draft = PlanDraft.objects.get()
        assert (draft.slug, draft.is_new_study, draft.base_slug) == ("fair-2", True, "fair")

    def test_a_study_has_one_draft_and_its_short_name_is_fixed(self, client, second, study):
        for slug in ("", "Not A Slug", "fair", "create", "drafts"):  # a copy needs its own name
            response = client.post("/administrator/fair/draft/", {"copy_to": slug}, follow=True)
            assert "study.slug" in said(response), slug
            assert not PlanDraft.objects.exists()
        response = client.post("/administrator/fair/draft/", follow=True)
        draft = PlanDraft.objects.get()
        assert response.redirect_chain[-1][0] == url(draft, "edit/")
        assert 'name="study.slug"' not in response.content.decode()
        response = edited(client, draft, study__slug="other", plan__epsilon="0.5")
        assert response.status_code == 422 and "must stay &quot;fair&quot;" in said(response)
        response = second.post("/administrator/fair/draft/", follow=True)
        assert response.redirect_chain[-1][0] == url(draft) and "edited by adam" in said(response)


def test_the_state_of_a_study_is_feminine_in_french(client, study):
    french = {"Accept-Language": "fr"}
    says(html_of(client, "/administrator/", **french), '<span class="badge badge--ok">ouverte</span>')
    VaultStudy.objects.update(closed_at=timezone.now())
    Study.objects.update(state="closed", closed_at=timezone.now())
    for address in ("/administrator/", "/administrator/fair/"):
        says(html_of(client, address, **french), '<span class="badge">clôturée</span>')


def test_no_study_is_named_as_a_page_of_administrators():
    routes = {str(each.pattern) for each in administrator_urls.urlpatterns}
    pages = {route.removesuffix("/") for route in routes if re.fullmatch(r"[-\w]+/", route)}
    assert "create" in pages <= RESERVED_STUDIES


class TestPages:
    def test_the_expected_visitors_change_the_intervals(self, client, draft):
        few, many = (page(client, url(draft, f"?visitors={n}")) for n in (100, 1_000_000))
        widths = [float(w) for text in (few, many) for w in re.findall(r"±([\d.]+)\s?points", text)]
        assert len(widths) == 4 and widths[0] > 20 * widths[2]
        for odd in ("x", "", "-5", "9" * 50):
            assert client.get(url(draft, f"?visitors={odd}")).status_code == 200

    def test_many_drafts_cost_few_queries_and_no_script(self, client, draft, django_assert_max_num_queries):
        submit_draft(draft, revision=1, by="adam")
        approve_draft(draft, revision=1, by="petra", remark="x")
        for address in (LIST_URL, url(draft), url(draft, "edit/")):
            check_markup(html_of(client, address))
        for n in range(20):
            draft.pk, draft.slug, draft.state, draft.ended_at = None, f"s{n}", "withdrawn", draft.created_at
            draft.save()
        with django_assert_max_num_queries(12):
            assert page(client, LIST_URL).count("Fair &amp; market") == 21

    def test_a_draft_shows_the_total_with_the_other_studies_of_its_population(self, client, draft):
        says(page(client, url(draft)), "The population subscribers has no other study whose losses would be")
        factory.create(slug="daily")
        shown = "Total epsilon with 1 other study of the population subscribers, all of a person's values"
        says(unescape(page(client, url(draft))), f"{shown} (profile): 5.5 (this study: 1.5).")

    def test_a_draft_over_the_budget_says_so_beside_the_next_step(self, client, officer, draft):
        assert "exceeds the remaining budget" not in page(client, url(draft))
        cap = {"population": "subscribers", "unit": "profile", "period": "year"}
        propose_cap(**cap, epsilon=Decimal("0.01"), by="adam")
        take(client, draft, "submit")
        for browser in (client, officer):
            assert "exceeds the remaining budget" in page(browser, url(draft))
