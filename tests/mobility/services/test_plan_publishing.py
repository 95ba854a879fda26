"""Publishing drafts: both databases or none, once, after a crash too, and never over data."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from threading import Barrier
from typing import Any
from uuid import uuid4

import numpy as np
import pytest
from django.db import DatabaseError, connections, transaction
from django.db.utils import IntegrityError
from django.utils import timezone
from pytest_django.fixtures import Settings

from ldp import Delta, PlanSpec
from mobility.models import Batch, ExtractProfile, PlanDraft, VaultDay, VaultStudy
from mobility.services import plan_publishing, studies, sweeping
from mobility.services.drafts import (
    DraftConflictError,
    DraftError,
    approve_draft,
    draft_new_study,
    draft_of_study,
    save_draft,
    submit_draft,
    withdraw_draft,
)
from mobility.services.plan_publishing import (
    NotReviewedError,
    StudyHasDataError,
    finish_interrupted,
    obstacle,
    publish_draft,
)
from mobility.services.studies import create_study
from reports.models import (
    Indicator,
    LedgerEntry,
    Plan,
    PlanIndicator,
    Publication,
    Study,
    Tally,
    VisitorTally,
)
from reports.selectors import current_plan, study_reports
from reports.services.plans import PlanInUseError
from reports.services.publications import PublicationError, apply_publication
from reports.services.studies import StudyExistsError
from reports.statement import privacy_statement
from reports.studyfile import StudyDefinition
from tests.mobility.services.killing import KillAt, Killed

pytestmark = [
    pytest.mark.database,
    pytest.mark.django_db(databases=["default", "vault"], transaction=True),
]
SLUG = "fimu-2017"


@pytest.fixture(autouse=True)
def _keys(data_dir: Path) -> Iterator[None]:
    yield


def with_epsilon(definition: StudyDefinition, epsilon: str) -> StudyDefinition:
    return replace(definition, plan=replace(definition.plan, epsilon=Decimal(epsilon)))


def approved(draft: PlanDraft) -> PlanDraft:
    submit_draft(draft, revision=draft.revision, by="adam")
    approve_draft(draft, revision=draft.revision, by="petra")
    return draft


def lowered(definition: StudyDefinition, epsilon: str = "0.5") -> PlanDraft:
    """A draft of the study's next version that needs nobody else."""
    draft = draft_of_study(SLUG, by="adam")
    save_draft(draft, with_epsilon(definition, epsilon), revision=1, by="adam")
    return draft


def check_whole(definition: StudyDefinition, *, version: int) -> None:
    """Both zones hold this very plan, with tallies of zero in its shape."""
    spec = definition.plan_spec(version=version)
    copy, study = VaultStudy.objects.get(slug=definition.slug), Study.objects.get(slug=definition.slug)
    plan = current_plan(study)
    assert StudyDefinition.from_json(copy.definition) == definition
    assert copy.plan == plan.spec == spec.to_json()
    assert copy.plan_hash == plan.spec_hash
    assert [plan.version for plan in study.plans.all()] == list(range(1, version + 1))
    assert [each.slug for each in study.indicators.all()] == [each.slug for each in definition.indicators]
    assert [each.categories for each in study.indicators.all()] == [
        list(each.categories) for each in definition.indicators
    ]
    tallies = Tally.objects.filter(plan__study=study).order_by("indicator__position")
    zero = Delta.zero(spec)
    assert [bytes(tally.counts) for tally in tallies] == [c.tobytes() for c in zero.counts[: spec.d]]
    assert bytes(VisitorTally.objects.get(study=study).counts) == zero.visitors.tobytes()
    assert PlanIndicator.objects.filter(plan__study=study).count() == spec.d
    assert study_reports(list(study.indicators.all()), None)


class TestNewStudy:
    def test_an_approved_draft_becomes_the_study(self, definition: StudyDefinition) -> None:
        draft = approved(draft_new_study(definition, by="adam"))
        publish_draft(draft, revision=1, by="adam")
        check_whole(definition, version=1)
        plan = Plan.objects.get()
        assert (plan.review, plan.reviewed_by, plan.published_by) == ("approved", "petra", "adam")
        assert plan.reviewed_at == draft.reviewed_at
        assert privacy_statement(Study.objects.get())["versions"][0]["reviewed_by"] == "petra"
        assert (draft.state, draft.is_unfinished) == ("published", False)
        kinds = LedgerEntry.objects.filter(kind__startswith="plan.").order_by("number")
        assert [each.kind for each in kinds] == ["plan.drafted", "plan.reviewed", "plan.published"]

    def test_without_approval_nothing_is_created(self, definition: StudyDefinition) -> None:
        draft = draft_new_study(definition, by="adam")
        with pytest.raises(NotReviewedError, match="by somebody who wrote nothing of it"):
            publish_draft(draft, revision=1, by="adam")
        assert not Study.objects.exists()
        assert not VaultStudy.objects.exists()

    def test_where_one_person_works_the_plan_says_so(
        self, definition: StudyDefinition, settings: Settings
    ) -> None:
        settings.MOBILITY_SECOND_PERSON = False
        publish_draft(draft_new_study(definition, by="adam"), revision=1, by="adam")
        plan = Plan.objects.get()
        assert (plan.review, plan.reviewed_by) == ("switched_off", "")
        assert LedgerEntry.objects.get(kind="plan.published").facts["review"] == "switched_off"

    def test_what_was_edited_since_is_not_published(self, definition: StudyDefinition) -> None:
        draft = approved(draft_new_study(definition, by="adam"))
        stale = PlanDraft.objects.get(pk=draft.pk)
        save_draft(draft, with_epsilon(definition, "20"), revision=1, by="adam")
        with pytest.raises(DraftConflictError):
            publish_draft(stale, revision=1, by="adam")
        with pytest.raises(NotReviewedError):
            publish_draft(draft, revision=2, by="adam")

    def test_a_study_that_came_in_between_stays(self, definition: StudyDefinition) -> None:
        draft = approved(draft_new_study(definition, by="adam"))
        create_study(replace(definition, name="By command"), by="command line")
        with pytest.raises(StudyExistsError):
            publish_draft(draft, revision=1, by="adam")
        draft.refresh_from_db()
        assert draft.state == "reviewed"
        assert Study.objects.get().name == "By command"

    def test_a_failure_leaves_the_draft_as_it_was(
        self, definition: StudyDefinition, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The worst place: the vault has committed already."""
        draft = approved(draft_new_study(definition, by="adam"))
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
        draft.refresh_from_db()
        assert (draft.state, draft.published_at) == ("reviewed", None)
        assert not VaultStudy.objects.exists()
        publish_draft(draft, revision=1, by="adam")
        check_whole(definition, version=1)

    @pytest.mark.parametrize("again", ["by hand", "by the sweep"])
    def test_a_crash_between_the_databases_is_taken_up(
        self, definition: StudyDefinition, monkeypatch: pytest.MonkeyPatch, again: str
    ) -> None:
        draft = approved(draft_new_study(definition, by="adam"))
        with monkeypatch.context() as dying:
            dying.setattr("mobility.services.handover.announce", die)
            dying.setattr(studies, "_withdraw", die)  # no handler of a dead process runs
            with pytest.raises(Killed):
                publish_draft(draft, revision=1, by="adam")
        draft.refresh_from_db()
        assert draft.is_unfinished
        assert not Study.objects.exists()
        with pytest.raises(DraftError):
            withdraw_draft(draft, revision=1, by="adam")
        if again == "by hand":
            publish_draft(draft, revision=1, by="bea")
        else:
            finish_interrupted(older_than_s=0)
        check_whole(definition, version=1)
        draft.refresh_from_db()
        assert not draft.is_unfinished
        assert Plan.objects.get().published_by == "adam"


def die(*_: Any, **__: Any) -> None:
    raise Killed


class TestReplacing:
    @pytest.fixture(autouse=True)
    def _study(self, definition: StudyDefinition) -> None:
        create_study(definition, by="adam")

    def test_the_new_plan_is_in_force_and_the_old_one_a_record(self, definition: StudyDefinition) -> None:
        new = replace(
            with_epsilon(definition, "0.5"), days=5, indicators=definition.indicators[1:], small_cell=20
        )
        draft = draft_of_study(SLUG, by="adam")
        save_draft(draft, new, revision=1, by="adam")
        publish_draft(draft, revision=2, by="adam")
        check_whole(new, version=2)
        old, current = Plan.objects.order_by("version")
        assert old.superseded_at is not None
        assert old.spec == definition.plan_spec().to_json()
        assert (current.review, current.superseded_at) == ("lowers_only", None)
        study = Study.objects.get()
        assert (study.days, study.small_cell) == (5, 20)
        kinds = LedgerEntry.objects.filter(kind__startswith="plan.").order_by("number")
        assert [each.kind for each in kinds][-2:] == ["plan.superseded", "plan.published"]
        first, second = privacy_statement(study)["versions"]
        assert (first["version"], first["review"], first["spec_sha256"]) == (1, "on_server", old.spec_hash)
        assert first["superseded_at"] is not None
        assert (second["version"], second["review"], second["published_by"]) == (2, "lowers_only", "adam")
        assert (second["reviewed_by"], second["superseded_at"]) == (None, None)

    def test_categories_and_order_may_change_before_there_is_data(self, definition: StudyDefinition) -> None:
        kept = Indicator.objects.get(slug="gender").pk
        first, *rest = definition.indicators
        new = replace(
            definition, indicators=(*reversed(rest), replace(first, categories=("a", "b"), name="New"))
        )
        draft = draft_of_study(SLUG, by="adam")
        save_draft(draft, new, revision=1, by="adam")
        publish_draft(approved(draft), revision=2, by="adam")
        check_whole(new, version=2)
        assert Indicator.objects.get(slug="gender").pk == kept

    def test_the_next_answers_count_under_the_new_plan_only(self, definition: StudyDefinition) -> None:
        old = VaultStudy.objects.get().plan_hash
        publish_draft(lowered(definition), revision=2, by="adam")
        copy = VaultStudy.objects.get()
        delta = Delta.zero(PlanSpec.from_json(copy.plan))
        sent: dict[str, Any] = {"study_slug": SLUG, "delta": delta, "voided_days": 0}
        one, two = uuid4(), uuid4()
        with pytest.raises(PublicationError, match="no plan with the hash"):
            apply_publication(**sent, publication_id=one, plan_hash=old)
        assert apply_publication(**sent, publication_id=two, plan_hash=copy.plan_hash)

    def test_a_second_draft_of_the_old_version_is_refused(self, definition: StudyDefinition) -> None:
        draft = lowered(definition)
        publish_draft(draft, revision=2, by="adam")
        again = draft_of_study(SLUG, by="adam")
        PlanDraft.objects.filter(pk=again.pk).update(base_plan_hash=draft.base_plan_hash, version=3)
        save_draft(again, with_epsilon(definition, "0.25"), revision=1, by="adam")
        with pytest.raises(DraftError, match="must be the one that the draft was compared with"):
            publish_draft(again, revision=2, by="adam")
        check_whole(with_epsilon(definition, "0.5"), version=2)

    def test_versions_follow_each_other(self, definition: StudyDefinition) -> None:
        first = lowered(definition)
        publish_draft(first, revision=2, by="adam")
        publish_draft(lowered(definition, "0.25"), revision=2, by="bea")
        check_whole(with_epsilon(definition, "0.25"), version=3)
        first.refresh_from_db()
        assert (first.state, first.ended_by) == ("superseded", "bea")

    def test_of_two_who_publish_at_once_one_does(
        self, definition: StudyDefinition, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The other one was past all checks when the first committed."""
        draft = lowered(definition)
        other = PlanDraft.objects.get(pk=draft.pk)
        with monkeypatch.context() as racing:

            def first_the_other(_: PlanDraft) -> None:
                racing.undo()
                publish_draft(other, revision=2, by="bea")

            racing.setattr(plan_publishing, "record_review", first_the_other)
            with pytest.raises(DraftConflictError, match="somebody else was faster"):
                publish_draft(draft, revision=2, by="adam")
        check_whole(with_epsilon(definition, "0.5"), version=2)
        assert current_plan(Study.objects.get()).published_by == "bea"
        with pytest.raises(DraftError, match="must be open to be published, got one that is published"):
            publish_draft(draft, revision=2, by="adam")

    @pytest.mark.skipif(
        connections["default"].vendor == "sqlite", reason="in memory: two threads share no database"
    )
    def test_of_several_processes_one_does(self, definition: StudyDefinition) -> None:
        draft, barrier = lowered(definition), Barrier(4)

        def one(name: str) -> str:
            barrier.wait()
            try:
                publish_draft(PlanDraft.objects.get(pk=draft.pk), revision=2, by=name)
            except DraftError as error:
                return type(error).__name__
            finally:
                connections.close_all()
            return "published"

        with ThreadPoolExecutor(4) as pool:
            ends = list(pool.map(one, ("adam", "bea", "carl", "dora")))
        assert ends.count("published") == 1, ends
        check_whole(with_epsilon(definition, "0.5"), version=2)

    @pytest.mark.parametrize(
        ("state", "word"), [("receiving", "waits or runs"), ("merging", "waits or runs")]
    )
    def test_a_batch_that_waits_makes_the_plan_final(
        self, definition: StudyDefinition, state: str, word: str
    ) -> None:
        draft = lowered(definition)
        Batch.objects.create(study=VaultStudy.objects.get(), state=state)
        with pytest.raises(StudyHasDataError, match=word):
            publish_draft(draft, revision=2, by="adam")
        check_whole(definition, version=1)
        draft.refresh_from_db()
        assert draft.state == "draft"

    def test_a_batch_that_changed_nothing_does_not(self, definition: StudyDefinition) -> None:
        Batch.objects.create(study=VaultStudy.objects.get(), state="failed", failure="too many bad rows")
        assert obstacle(SLUG) == ""
        publish_draft(lowered(definition), revision=2, by="adam")
        check_whole(with_epsilon(definition, "0.5"), version=2)

    def test_rows_make_the_plan_final(self, definition: StudyDefinition) -> None:
        draft = lowered(definition)
        VaultDay.objects.create(study=VaultStudy.objects.get(), day=1)
        assert "copy it to a new study instead" in obstacle(SLUG)
        with pytest.raises(StudyHasDataError, match="answers that were given cannot be asked again"):
            publish_draft(draft, revision=2, by="adam")
        check_whole(definition, version=1)

    def test_totals_of_a_lost_vault_make_it_final_too(self, definition: StudyDefinition) -> None:
        draft = lowered(definition)
        Publication.objects.create(
            study=Study.objects.get(), publication_id="0b0e7a86-0000-4000-8000-000000000001"
        )
        with pytest.raises(PlanInUseError, match="must have no answers yet"):
            publish_draft(draft, revision=2, by="adam")
        check_whole(definition, version=1)

    def test_profiles_that_would_not_fit_are_named(self, definition: StudyDefinition) -> None:
        ExtractProfile.objects.create(study=VaultStudy.objects.get(), name="operator-x", definition={})
        draft = draft_of_study(SLUG, by="adam")
        save_draft(draft, replace(definition, indicators=definition.indicators[1:]), revision=1, by="adam")
        with pytest.raises(DraftError, match="got operator-x: let an operator remove them first"):
            publish_draft(draft, revision=2, by="adam")
        save_draft(draft, with_epsilon(definition, "0.5"), revision=2, by="adam")
        publish_draft(draft, revision=3, by="adam")

    def test_whatever_kills_it_the_next_attempt_ends_the_same(self, definition: StudyDefinition) -> None:
        draft, n = lowered(definition), 0
        new = with_epsilon(definition, "0.5")
        unfinished = 0
        while True:
            n += 1
            kill, died = KillAt(n), False
            with ExitStack() as stack:
                for name in ("default", "vault"):
                    stack.enter_context(connections[name].execute_wrapper(kill))
                try:
                    publish_draft(PlanDraft.objects.get(pk=draft.pk), revision=2, by="adam")
                except Killed:
                    died = True
            if not died:
                break
            copy, plan = VaultStudy.objects.get(), current_plan(Study.objects.get())
            draft.refresh_from_db()
            unfinished += draft.is_unfinished
            assert (copy.plan_hash == plan.spec_hash) or draft.is_unfinished
            assert copy.plan_hash in (draft.plan_hash, draft.base_plan_hash)
        assert n > 20
        assert unfinished
        check_whole(new, version=2)
        assert LedgerEntry.objects.filter(kind="plan.published").count() == 1
        assert LedgerEntry.objects.filter(kind="plan.superseded").count() == 1

    def test_the_main_commit_may_fail_after_the_vault_s(
        self, definition: StudyDefinition, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        draft = lowered(definition)
        connection = connections["default"]

        def die_with_it() -> None:
            connection.rollback()
            raise Killed

        with monkeypatch.context() as dying:
            dying.setattr(plan_publishing, "record_review", lambda _: None)
            dying.setattr(connection, "commit", die_with_it)
            with pytest.raises(Killed):
                publish_draft(draft, revision=2, by="adam")
        draft.refresh_from_db()
        assert draft.is_unfinished
        assert current_plan(Study.objects.get()).version == 1
        sweeping.sweep()
        assert current_plan(Study.objects.get()).version == 1, "another process may be at work on it"
        PlanDraft.objects.filter(pk=draft.pk).update(published_at=timezone.now() - timedelta(minutes=2))
        sweeping.sweep()
        check_whole(with_epsilon(definition, "0.5"), version=2)


class TestLocks:
    """What was published cannot be changed, whoever asks."""

    @pytest.mark.parametrize(
        ("model", "values"),
        [
            (Plan, {"mechanism": "smp-oue"}),
            (Plan, {"unit": "attribute"}),
            (Plan, {"epsilon": 2}),
            (Plan, {"epsilon_profile": 99}),
            (Plan, {"spec": {}}),
            (Plan, {"spec_hash": "0"}),
            (Plan, {"published_by": "eve"}),
            (Plan, {"review": "lowers_only"}),
            (PlanIndicator, {"epsilon": 2}),
            (Indicator, {"categories": ["a", "b"]}),
            (Indicator, {"kind": "daily"}),
            (Indicator, {"slug": "other"}),
            (Indicator, {"max_values": 3}),
        ],
    )
    def test_the_database_refuses(
        self, definition: StudyDefinition, model: Any, values: dict[str, Any]
    ) -> None:
        create_study(definition, by="adam")
        row = (
            model.objects.filter(**{f"{next(iter(values))}__isnull": False}).first() or model.objects.first()
        )
        with pytest.raises(IntegrityError, match="is locked once published"), transaction.atomic():
            model.objects.filter(pk=row.pk).update(**values)

    def test_what_is_added_later_is_not_locked(self, definition: StudyDefinition) -> None:
        create_study(definition, by="adam")
        plan = Plan.objects.get()
        plan.voided_days = 1
        plan.save()
        indicator = Indicator.objects.get(slug="gender")
        indicator.name = "Gender, as registered"
        indicator.save()
        assert np.array_equal(Indicator.objects.get(slug="gender").categories, ["F", "M", "NR"])
