"""Publishing drafts: both databases or none, once, after a crash too, and never over data."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from threading import Barrier
from uuid import uuid4

import numpy as np
import pytest
from django.db import DatabaseError, connections, transaction
from django.db.utils import IntegrityError
from django.utils import timezone

from ldp import Delta, PlanSpec
from ldp.estimation.series.counts import SlotCounts
from mobility.models import Batch, ExtractProfile, PlanDraft, VaultDay, VaultStudy
from mobility.operations import sweeping
from mobility.plans import drafts, studies
from mobility.plans import publishing as plan_publishing
from mobility.plans.publishing import NotReviewedError, StudyHasDataError, obstacle, publish_draft
from mobility.plans.studies import create_study
from reports.estimates.queries import study_reports
from reports.models import Indicator, LedgerEntry, Plan, PlanIndicator, Publication, Study, StudySlots, Tally
from reports.privacy.statement.document import privacy_statement
from reports.studies.queries import current_plan
from reports.studies.studyfile import StudyDefinition
from reports.studies.studyfile.origins import VISITOR_CATEGORIES, VISITOR_CATEGORY, OriginRule
from reports.transfer.plans import PlanInUseError
from reports.transfer.publications import apply_publication
from reports.transfer.slots import PublicationError
from reports.transfer.studies import StudyExistsError
from tests.mobility.batches.killing import Killed, dies
from tests.mobility.pipeline import fresh, raising
from tests.mobility.plans.test_drafts import with_epsilon
from tests.reports import slot_factory

IN_BOTH = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
pytestmark = [IN_BOTH, pytest.mark.usefixtures("data_dir")]
IS_SQLITE = connections["default"].vendor == "sqlite"
SLUG = "fimu-2017"


def approved(draft: PlanDraft) -> PlanDraft:
    drafts.submit_draft(draft, revision=draft.revision, by="adam")
    drafts.approve_draft(draft, revision=draft.revision, by="petra")
    return draft


def lowered(definition: StudyDefinition, epsilon: str = "0.5") -> PlanDraft:
    draft = drafts.draft_of_study(SLUG, by="adam")
    drafts.save_draft(draft, with_epsilon(definition, epsilon), revision=1, by="adam")
    return draft


def check_whole(definition: StudyDefinition, *, version: int) -> None:
    spec = definition.plan_spec(version=version)
    copy, study = VaultStudy.objects.get(slug=definition.slug), Study.objects.get(slug=definition.slug)
    plan = current_plan(study)
    assert StudyDefinition.from_json(copy.definition) == definition
    assert copy.plan == plan.spec == spec.to_json()
    assert copy.plan_hash == plan.spec_hash
    assert [plan.version for plan in study.plans.all()] == list(range(1, version + 1))
    wanted = [(each.slug, list(each.categories)) for each in definition.indicators]
    assert [(each.slug, each.categories) for each in study.indicators.all()] == wanted
    tallies = Tally.objects.filter(plan__study=study).order_by("indicator__position")
    zero = Delta.zero(spec)
    assert [bytes(tally.counts) for tally in tallies] == [c.tobytes() for c in zero.counts[: spec.d]]
    assert bytes(study.visitor_tally.counts) == zero.visitors.tobytes()
    assert PlanIndicator.objects.filter(plan__study=study).count() == spec.d
    assert study_reports(list(study.indicators.all()), None)


class TestNewStudy:
    @pytest.mark.database
    def test_an_approved_draft_becomes_the_study(self, definition):
        draft = drafts.draft_new_study(definition, by="adam")
        with pytest.raises(NotReviewedError, match="by a person who did not edit it"):
            publish_draft(draft, revision=1, by="adam")
        assert (Study.objects.count(), VaultStudy.objects.count()) == (0, 0)
        publish_draft(approved(draft), revision=1, by="adam")
        check_whole(definition, version=1)
        plan = Plan.objects.get()
        assert (plan.review, plan.reviewed_by, plan.published_by) == ("approved", "petra", "adam")
        assert plan.reviewed_at == draft.reviewed_at
        assert privacy_statement(Study.objects.get())["versions"][0]["reviewed_by"] == "petra"
        assert (draft.state, draft.is_unfinished) == ("published", False)
        kinds = LedgerEntry.objects.filter(kind__startswith="plan.").order_by("number")
        assert [each.kind for each in kinds] == ["plan.drafted", "plan.reviewed", "plan.published"]

    def test_where_one_person_works_the_plan_says_so(self, definition, settings):
        settings.MOBILITY_SECOND_PERSON = False
        publish_draft(drafts.draft_new_study(definition, by="adam"), revision=1, by="adam")
        plan = Plan.objects.get()
        assert (plan.review, plan.reviewed_by) == ("switched_off", "")
        assert LedgerEntry.objects.get(kind="plan.published").facts["review"] == "switched_off"

    def test_a_study_that_came_in_between_stays(self, definition):
        draft = approved(drafts.draft_new_study(definition, by="adam"))
        create_study(replace(definition, name="By command"), by="command line")
        with pytest.raises(StudyExistsError):
            publish_draft(draft, revision=1, by="adam")
        assert (fresh(draft).state, Study.objects.get().name) == ("reviewed", "By command")

    def test_a_failure_leaves_the_draft_as_it_was(self, definition, monkeypatch):
        draft = approved(drafts.draft_new_study(definition, by="adam"))
        connection = connections["default"]
        commit = connection.commit

        def fail() -> None:
            if Study.objects.exists():
                connection.rollback()
                raise DatabaseError("disk I/O error")
            commit()

        with monkeypatch.context() as broken:
            broken.setattr(connection, "commit", fail)
            with pytest.raises(DatabaseError, match="disk I/O error"):
                publish_draft(draft, revision=1, by="adam")
        assert (fresh(draft).state, draft.published_at) == ("reviewed", None)
        assert not VaultStudy.objects.exists()
        publish_draft(draft, revision=1, by="adam")
        check_whole(definition, version=1)

    @pytest.mark.parametrize("again", ["by hand", "by the sweep"])
    def test_a_crash_between_the_databases_is_taken_up(self, definition, monkeypatch, again):
        draft = approved(drafts.draft_new_study(definition, by="adam"))
        with monkeypatch.context() as dying:
            dying.setattr("mobility.batches.publication.handover.announce", raising(Killed))
            dying.setattr(studies, "_withdraw", raising(Killed))  # no handler of a dead process runs
            with pytest.raises(Killed):
                publish_draft(draft, revision=1, by="adam")
        assert (fresh(draft).is_unfinished, Study.objects.exists()) == (True, False)
        with pytest.raises(drafts.DraftError):
            drafts.withdraw_draft(draft, revision=1, by="adam")
        if again == "by hand":
            publish_draft(draft, revision=1, by="bea")
        else:
            sweeping.sweep()
            assert not Study.objects.exists(), "another process may be at work on it"
            PlanDraft.objects.update(published_at=timezone.now() - timedelta(minutes=2))
            sweeping.sweep()
        check_whole(definition, version=1)
        assert (fresh(draft).is_unfinished, Plan.objects.get().published_by) == (False, "adam")


class TestReplacing:
    @pytest.fixture(autouse=True)
    def _study(self, data_dir, definition):
        create_study(definition, by="adam")

    def test_the_new_plan_is_in_force_and_the_old_one_a_record(self, definition):
        kept = Indicator.objects.get(slug="gender").pk
        first, *rest = definition.indicators
        others = (*reversed(rest), replace(first, categories=("a", "b"), categories_fr=None, name="New"))
        new = replace(with_epsilon(definition, "0.5"), days=5, small_cell=20, indicators=others)
        draft = drafts.draft_of_study(SLUG, by="adam")
        drafts.save_draft(draft, new, revision=1, by="adam")
        publish_draft(approved(draft), revision=2, by="adam")
        check_whole(new, version=2)
        assert Indicator.objects.get(slug="gender").pk == kept
        old, current = Plan.objects.order_by("version")
        assert (old.superseded_at is None, current.superseded_at) == (False, None)
        assert old.spec == definition.plan_spec().to_json()
        study = Study.objects.get()
        assert (study.days, study.small_cell) == (5, 20)
        kinds = LedgerEntry.objects.filter(kind__startswith="plan.").order_by("number")
        assert [each.kind for each in kinds][-2:] == ["plan.superseded", "plan.published"]
        before, now = privacy_statement(study)["versions"]
        assert (before["version"], before["review"], before["spec_sha256"]) == (1, "on_server", old.spec_hash)
        assert before["superseded_at"] is not None
        assert (now["version"], now["published_by"], now["superseded_at"]) == (2, "adam", None)
        sent = {"study_slug": SLUG, "delta": Delta.zero(PlanSpec.from_json(current.spec)), "voided_days": 0}
        with pytest.raises(PublicationError, match="no plan with the hash"):
            apply_publication(**sent, publication_id=uuid4(), plan_hash=old.spec_hash)
        assert apply_publication(**sent, publication_id=uuid4(), plan_hash=current.spec_hash)

    def test_slots_are_those_of_the_plan_in_force_and_final_once_one_is_published(self, definition):
        for version, minutes in ((2, 60), (3, 120)):
            changed = replace(slot_factory.DEFINITION, minutes=minutes, slots_per_day=12, levels=())
            draft = drafts.draft_of_study(SLUG, by="adam")
            drafts.save_draft(draft, replace(definition, slots=changed), revision=1, by="adam")
            publish_draft(approved(draft), revision=2, by="adam")
            slots, plan = StudySlots.objects.get(), Plan.objects.get(version=version)
            assert slots.spec == plan.spec["slots"] == changed.spec.to_json()
            entry = LedgerEntry.objects.filter(kind="plan.published").latest("number")
            assert entry.facts["slots"] == slots.spec
        counts = SlotCounts(first_slot=0, counts=np.zeros((1, len(slots.zones)), np.int64))
        zero = Delta.zero(PlanSpec.from_json(plan.spec))
        sent = {"study_slug": SLUG, "plan_hash": plan.spec_hash, "delta": zero, "voided_days": 0}
        assert apply_publication(**sent, publication_id=uuid4(), slots=counts)
        draft = drafts.draft_of_study(SLUG, by="adam")
        with pytest.raises(PlanInUseError, match="must have no answers yet, got some"):
            publish_draft(draft, revision=1, by="adam")
        assert StudySlots.objects.get().closed == 1

    def test_a_lower_epsilon_needs_no_second_person(self, definition):
        first = lowered(definition)
        publish_draft(first, revision=2, by="adam")
        assert Plan.objects.get(version=2).review == "lowers_only"
        told = privacy_statement(Study.objects.get())["versions"][1]
        assert (told["review"], told["reviewed_by"]) == ("lowers_only", None)
        second = lowered(definition, "0.25")
        base = second.base_plan_hash
        PlanDraft.objects.filter(pk=second.pk).update(base_plan_hash=first.base_plan_hash)
        with pytest.raises(drafts.DraftError, match="has changed since the draft was started"):
            publish_draft(second, revision=2, by="bea")
        check_whole(with_epsilon(definition, "0.5"), version=2)
        PlanDraft.objects.filter(pk=second.pk).update(base_plan_hash=base)
        publish_draft(fresh(second), revision=2, by="bea")
        check_whole(with_epsilon(definition, "0.25"), version=3)
        assert (fresh(first).state, first.ended_by) == ("superseded", "bea")

    def test_of_two_who_publish_at_once_one_does(self, definition, monkeypatch):
        draft = lowered(definition)
        other = PlanDraft.objects.get(pk=draft.pk)
        with monkeypatch.context() as racing:

            def first_the_other(_: PlanDraft) -> None:
                racing.undo()
                publish_draft(other, revision=2, by="bea")

            racing.setattr(plan_publishing, "record_review", first_the_other)
            with pytest.raises(drafts.DraftConflictError, match="another person changed the draft first"):
                publish_draft(draft, revision=2, by="adam")
        check_whole(with_epsilon(definition, "0.5"), version=2)
        assert current_plan(Study.objects.get()).published_by == "bea"
        with pytest.raises(drafts.DraftError, match="must be open to be published, but it is published"):
            publish_draft(draft, revision=2, by="adam")

    def test_what_is_edited_at_the_last_moment_is_not_published(self, definition, monkeypatch):
        draft = lowered(definition)
        other = PlanDraft.objects.get(pk=draft.pk)

        def edited(_: PlanDraft) -> None:
            drafts.save_draft(other, with_epsilon(definition, "20"), revision=2, by="bea")

        monkeypatch.setattr(plan_publishing, "record_review", edited)
        with pytest.raises(drafts.DraftConflictError):
            publish_draft(draft, revision=2, by="adam")
        check_whole(definition, version=1)
        assert PlanDraft.objects.get().state == "draft"

    @pytest.mark.database
    @pytest.mark.skipif(IS_SQLITE, reason="in memory: two threads share no database")
    def test_of_several_processes_one_does(self, definition):
        draft, barrier = lowered(definition), Barrier(4)

        def one(name: str) -> str:
            barrier.wait()
            try:
                publish_draft(PlanDraft.objects.get(pk=draft.pk), revision=2, by=name)
            except drafts.DraftError as error:
                return type(error).__name__
            finally:
                connections.close_all()
            return "published"

        with ThreadPoolExecutor(4) as pool:
            ends = list(pool.map(one, ("adam", "bea", "carl", "dora")))
        assert ends.count("published") == 1, ends
        check_whole(with_epsilon(definition, "0.5"), version=2)

    def test_batches_rows_and_totals_of_a_lost_vault_make_the_plan_final(self, definition):
        draft = lowered(definition)
        for state in ("receiving", "merging"):
            batch = Batch.objects.create(study=VaultStudy.objects.get(), state=state)
            with pytest.raises(StudyHasDataError, match="is waiting or running"):
                publish_draft(draft, revision=2, by="adam")
            Batch.objects.filter(pk=batch.pk).update(state="failed", failure="too many bad rows")
            assert obstacle(SLUG) == ""
        day = VaultDay.objects.create(study=VaultStudy.objects.get(), day=1)
        assert "Copy it to a new study instead" in obstacle(SLUG)
        with pytest.raises(StudyHasDataError, match="their answers cannot be asked again"):
            publish_draft(draft, revision=2, by="adam")
        day.delete()
        publication = Publication.objects.create(study=Study.objects.get(), publication_id=uuid4())
        with pytest.raises(PlanInUseError, match="must have no answers yet"):
            publish_draft(draft, revision=2, by="adam")
        check_whole(definition, version=1)
        assert fresh(draft).state == "draft"
        publication.delete()
        publish_draft(draft, revision=2, by="adam")
        check_whole(with_epsilon(definition, "0.5"), version=2)

    def test_profiles_that_would_not_fit_are_named(self, definition):
        fewer = replace(definition, indicators=definition.indicators[1:])
        given = {"study": VaultStudy.objects.get(), "name": "operator-x", "definition": {}}
        profile = ExtractProfile.objects.create(**given)
        draft = drafts.draft_of_study(SLUG, by="adam")
        drafts.save_draft(draft, fewer, revision=1, by="adam")
        with pytest.raises(drafts.DraftError, match="operator-x: ask an operator to remove these profiles"):
            publish_draft(draft, revision=2, by="adam")
        profile.delete()
        publish_draft(draft, revision=2, by="adam")
        check_whole(fewer, version=2)

    def test_a_changed_home_list_is_named_with_what_to_do(self, definition):
        def planned(home: str) -> PlanDraft:
            rule = OriginRule(operator_column="mcc", home=(home,), countries=("FR",))
            who = replace(
                definition.indicators[0], slug="who", column="home", derive=VISITOR_CATEGORY, origin=rule,
                categories=VISITOR_CATEGORIES, categories_fr=None, name_fr=None,
            )  # fmt: skip
            draft = drafts.draft_of_study(SLUG, by="adam")
            drafts.save_draft(
                draft, replace(definition, indicators=(who, *definition.indicators)), revision=1, by="adam"
            )
            return approved(draft)

        publish_draft(planned("25"), revision=2, by="adam")
        given = {"study": VaultStudy.objects.get(), "name": "operator-x", "definition": {}}
        ExtractProfile.objects.create(**given)
        expected = r"draft changes who \(home\)\. Profiles of this study: operator-x: ask an operator"
        with pytest.raises(drafts.DraftError, match=expected):
            publish_draft(planned("90"), revision=2, by="adam")

    @pytest.mark.database
    def test_whatever_kills_it_the_next_attempt_ends_the_same(self, definition):
        draft, n, unfinished = lowered(definition), 1, 0
        while dies(lambda: publish_draft(PlanDraft.objects.get(), revision=2, by="adam"), at=n):
            copy, plan = VaultStudy.objects.get(), current_plan(Study.objects.get())
            unfinished += fresh(draft).is_unfinished
            assert (copy.plan_hash == plan.spec_hash) or draft.is_unfinished
            assert copy.plan_hash in (draft.plan_hash, draft.base_plan_hash)
            n += 1
        assert (n > 20, unfinished > 0) == (True, True)
        check_whole(with_epsilon(definition, "0.5"), version=2)
        kinds = list(LedgerEntry.objects.values_list("kind", flat=True))
        assert (kinds.count("plan.published"), kinds.count("plan.superseded")) == (1, 1)


LOCKED = {
    Plan: {
        "mechanism": "smp-oue", "unit": "attribute", "epsilon": 2, "epsilon_profile": 99, "spec": {},
        "spec_hash": "0", "published_by": "eve", "review": "lowers_only",
    },
    PlanIndicator: {"epsilon": 2},
    Indicator: {"categories": ["a", "b"], "kind": "daily", "slug": "other", "max_values": 3},
}  # fmt: skip


@pytest.mark.database
def test_the_database_refuses_changes_of_what_was_published(definition):
    create_study(definition, by="adam")
    for model, values in LOCKED.items():
        for name, value in values.items():
            row = model.objects.filter(**{f"{name}__isnull": False}).first() or model.objects.first()
            with pytest.raises(IntegrityError, match="is locked once published"), transaction.atomic():
                model.objects.filter(pk=row.pk).update(**{name: value})
    plan, indicator = Plan.objects.get(), Indicator.objects.get(slug="gender")
    plan.voided_days = 1  # later additions are not locked
    plan.save()
    indicator.name = "Gender, as registered"
    indicator.save()
    assert Indicator.objects.get(slug="gender").categories == ["F", "M", "NR"]
