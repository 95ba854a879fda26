"""Tasks and boards on the first page: for each role what it can do, and nothing else."""
# Rules about who may decide on a draft, an undo or a cap: tests of drafts, undoing and budgets.

from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from mobility.home import views, waiting
from mobility.models import Batch, DayUndo, FeedToken, PlanDraft
from mobility.plans.drafts import draft_of_study, submit_draft
from mobility.uploads.watched_folder import ACTOR
from reports.boards.actions import note_use
from reports.models import Board, BudgetCap, BudgetPopulation, Study
from reports.studies.policies import Role
from tests.mobility.batches.quality.deliveries_by_hand import day_hours
from tests.mobility.pages.pages import IN_BOTH, check_markup, html_of, lacks, page, says
from tests.reports.page_texts import signed_in

pytestmark = IN_BOTH
TITLE, HOUR = "Waiting for you", timedelta(hours=1)
State = Batch.State


@pytest.fixture
def olga(person, study):
    return signed_in(person("olga", Role.OPERATOR, studies=[Study.objects.get()]))


@pytest.fixture
def petra(person, study):
    return signed_in(person("petra", Role.PRIVACY_OFFICER))


def ended(study, state, *, hours_ago=1, days=(), **fields) -> Batch:
    hours = {str(day): day_hours(100) for day in days}
    failure = "the header has no column time" if state == State.FAILED else ""
    given = {"filename": "day.csv", "finished_at": timezone.now() - hours_ago * HOUR, "failure": failure}
    given |= {"days_touched": list(days), "checks": {"hours": hours}}
    return Batch.objects.create(study=study, state=state, **given | fields)


def test_nothing_is_said_when_nothing_waits(olga, petra, study):
    ended(study, State.DONE, days=[1])
    ended(study, State.FAILED, validate_only=True)
    ended(study, State.FAILED, hours_ago=31 * 24)
    for reader in (olga, petra):
        lacks(page(reader, "/"), TITLE, "Recent boards")


class TestFailedBatches:
    def test_a_failed_file_waits_until_a_later_one_brings_its_days(self, olga, petra, study):
        failed = ended(study, State.FAILED, hours_ago=3, days=[2])
        html = html_of(olga, "/")
        check_markup(html)
        says(
            html,
            TITLE,
            f'href="/operator/batches/{failed.pk}/">Check the failed file day.csv in Fair &amp; market<',
        )
        says(html, "the header has no column time")
        lacks(page(petra, "/"), TITLE)
        ended(study, State.DONE, hours_ago=2, days=[1], filename="other.csv")
        says(page(olga, "/"), "day.csv")
        ended(study, State.DONE, days=[2], filename="again.csv")
        lacks(page(olga, "/"), TITLE)

    def test_what_closes_days_waits_until_it_is_done(self, olga, study):
        closing = {"kind": Batch.Kind.CLOSE_DAYS, "filename": "", "day": 1}
        ended(study, State.FAILED, hours_ago=2, **closing)
        says(page(olga, "/"), "Check the failed batch in Fair &amp; market")
        ended(study, State.DONE, **closing)
        lacks(page(olga, "/"), TITLE)

    def test_a_failed_list_of_people_waits_until_it_comes_again_by_name_or_content(self, olga, study):
        people = {"kind": Batch.Kind.SUBSCRIBERS, "content_hash": "a"}
        ended(study, State.FAILED, hours_ago=3, **people)
        ended(
            study,
            State.DONE,
            hours_ago=2,
            filename="other.csv",
            kind=Batch.Kind.SUBSCRIBERS,
            content_hash="b",
        )
        says(page(olga, "/"), "Check the failed file day.csv")
        again = ended(study, State.DONE, filename="renamed.csv", **people)
        lacks(page(olga, "/"), TITLE)
        Batch.objects.filter(pk=again.pk).update(filename="day.csv", content_hash="c")
        lacks(page(olga, "/"), TITLE)

    def test_operators_of_other_studies_and_of_closed_ones_have_nothing_to_do(self, olga, person, study):
        ended(study, State.FAILED)
        lacks(page(signed_in(person("oscar", Role.OPERATOR, studies=[])), "/"), TITLE)
        says(page(olga, "/"), TITLE)
        study.closed_at = timezone.now()
        study.save()
        lacks(page(olga, "/"), TITLE)


def test_late_days_of_a_feed_lead_to_the_calendar(olga, petra, study):
    token = FeedToken.objects.create(
        study=study, name="nightly", digest="x", expires_at=timezone.now() + HOUR, created_by=ACTOR
    )
    html = html_of(olga, "/")
    says(
        html,
        'href="/operator/fair/coverage/">Find the overdue files for Fair &amp; market<',
        "The automatic uploads for 3 days are missing",
    )
    lacks(page(petra, "/"), TITLE)
    ended(study, State.DONE, days=[1, 2], created_by=f"feed {token.name}")
    says(page(olga, "/"), "The automatic upload for 1 day is missing: Fri 3 May 2024")


def test_requests_wait_for_those_who_did_not_make_them(petra, person, olga, study):
    boss = signed_in(person("adam", Role.ADMINISTRATOR))
    DayUndo.objects.create(study=study, day=2, voided_days=1, asked_by="olga")
    population = BudgetPopulation.objects.create(name="Residents")
    BudgetCap.objects.create(
        population=population, unit="profile", period="ever", needs_second=True, set_by="adam"
    )
    draft = draft_of_study("fair", by="adam")
    complete = f'href="/administrator/drafts/{draft.pk}/">Complete your draft plan for Fair &amp; market<'
    says(html_of(boss, "/"), complete)
    lacks(page(petra, "/"), "draft plan")
    submit_draft(draft, revision=draft.revision, by="adam")
    html = html_of(petra, "/")
    undo = "Decide whether to undo the uploads to Fair &amp; market for Thu 2 May 2024"
    says(
        html,
        f'href="/administrator/fair/">{undo}<',
        'href="/budget/">Decide on the proposed privacy budget cap for Residents<',
    )
    says(
        html,
        f'href="/administrator/drafts/{draft.pk}/">Review the draft plan for Fair &amp; market<',
        "Requested by olga.",
    )
    own = page(boss, "/")
    says(own, undo)
    lacks(own, "proposed privacy budget cap", "Review the draft plan", "Complete your draft plan")
    lacks(page(olga, "/"), TITLE)
    PlanDraft.objects.filter(pk=draft.pk).update(
        state=PlanDraft.State.REVIEWED, reviewed_by="petra", reviewed_at=timezone.now(),
        reviewed_hash=draft.definition_hash,
    )  # fmt: skip
    says(page(boss, "/"), "Publish the draft plan for Fair &amp; market")
    lacks(page(petra, "/"), "draft plan for")


def test_only_the_newest_failures_are_listed(olga, study, monkeypatch):
    monkeypatch.setattr(waiting, "FAILED_SHOWN", 1)
    for hours_ago in (2, 1):
        ended(study, State.FAILED, hours_ago=hours_ago, filename=f"{hours_ago}.csv")
    text = page(olga, "/")
    says(text, "1.csv")
    lacks(text, "2.csv")


def test_boards_opened_last_lead_back_to_them(person, study):
    fair = Study.objects.get()
    anna = person("anna", Role.ANALYST, studies=[fair])
    board = Board.objects.create(study=fair, owner=anna, name="Week")
    Board.objects.create(study=fair, owner=anna, name="Never opened")
    note_use(board, by=anna)
    html = html_of(signed_in(anna), "/")
    check_markup(html)
    says(html, "Recent boards", f'href="/studies/fair/boards/{board.pk}/">Week<')
    lacks(html, "Never opened", TITLE)
    anna.study_grants.all().delete()
    lacks(page(signed_in(anna), "/"), "Recent boards", "Week")


def test_home_shows_the_rest_when_the_vault_is_away(olga, monkeypatch):
    def away(reader):
        raise OperationalError("connection refused")

    monkeypatch.setattr(views, "tasks_of", away)
    says(
        page(olga, "/"),
        "Upload an extract",
        "Tasks cannot be listed right now because the vault is not responding.",
    )
