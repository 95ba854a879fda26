"""Presence noise in the vault: a cell crosses once, complete, with its noise, under any faults."""

from dataclasses import replace
from decimal import Decimal
from typing import Any
from uuid import uuid4

import jsonschema
import numpy as np
import pytest

from ldp.estimation.tallies import Delta
from ldp.keyed.noise.presence import noise_delta
from mobility.batches import outcomes, requests
from mobility.batches.publication import merging, publishing
from mobility.models import Batch, OutboxDelta, PresenceShard, VaultPublication, VaultStudy
from mobility.plans.closing import Leave, StudyNotClosedError, close_study
from mobility.vault.studies import open_study
from reports.models import Plan, Study
from reports.transfer.publications import apply_publication
from reports.transfer.slots import PublicationError
from tests.mobility.batches.killing import ON_POSTGRES, check_deaths
from tests.mobility.pipeline import SCHEMA, Pipeline, raising, some_people

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)

DAYS = 7


@pytest.fixture
def make_noisy(make_pipeline, definition):
    def make(*, slug: str = "noisy", days: int = DAYS, n_shards: int = 1, **changes: Any) -> Pipeline:
        plan = replace(definition.plan, presence_epsilon=Decimal(1), presence_days=days)
        return make_pipeline(slug=slug, plan=plan, n_shards=n_shards, **changes)

    return make


@pytest.fixture
def make_exact(make_pipeline):
    return lambda: make_pipeline(slug="exact", min_publication=1, n_shards=1)


def counts_of(pipeline: Pipeline) -> dict[str, np.ndarray]:
    """Counts that have crossed, noise and all; categories along the first axis."""
    blobs = pipeline.tallies().items()
    return {name: np.frombuffer(blob, "<i8").reshape(-1, DAYS + 1, DAYS + 1) for name, blob in blobs}


def without_noise(pipeline: Pipeline, *, through: int) -> dict[str, np.ndarray]:
    """Counts that have crossed, less the noise that the study's key draws for these days."""
    study = open_study(pipeline.study)
    noise = noise_delta(study.plan, prf=study.prf, first_day=1, last_day=through)
    found = counts_of(pipeline)
    drawn = {"visitors": noise.visitors[np.newaxis], "stays": noise.stays}
    for spec, counts, n_reports in zip(study.plan.indicators, noise.counts, noise.n_reports, strict=True):
        drawn |= {spec.slug: counts, f"{spec.slug}/n_reports": n_reports[np.newaxis]}
    return {name: found[name] - drawn[name] for name in found}


def same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def visitors_by_hand(pipeline: Pipeline, *, cap: int = DAYS) -> np.ndarray:
    """Gap cells of the first days of each subscriber, one after the other."""
    study, cells = open_study(pipeline.study), np.zeros((DAYS + 1, DAYS + 1), np.int64)
    for row in PresenceShard.objects.filter(study=pipeline.study):
        for bitmap in study.unseal_presence(row).days.tolist():
            previous = 0
            for day in [day for day in range(1, DAYS + 1) if bitmap >> (day - 1) & 1][:cap]:
                cells[previous, day] += 1
                previous = day
    return cells


def test_nothing_crosses_before_days_close_and_then_what_an_exact_study_counts(make_noisy, make_exact, few):
    noisy, exact = make_noisy(n_shards=2), make_exact()
    exact.upload(*few)
    batches = noisy.upload(*few)
    assert not any(map(any, noisy.tallies().values()))
    assert [outcomes.is_published(batch) for batch in batches] == [False] * 3
    assert "presence noise" in next(outcomes.notes_for_reader(batches[0]))
    assert outcomes.is_published(noisy.close_days(through=3))
    assert Study.objects.get(slug="noisy").noisy_through == 3
    assert same(without_noise(noisy, through=3), counts_of(exact))
    assert exact.visitors(1, 3) > 50
    noise = counts_of(noisy)["visitors"] - counts_of(exact)["visitors"]
    assert np.count_nonzero(noise[0]) > 3  # of the six cells: [0..2][1..3]
    assert not noise[0, :, 4:].any()
    # Days without visitors are as noisy as others, and the minimum is not asked.
    noisy.close_days(through=DAYS)
    assert same(without_noise(noisy, through=DAYS), counts_of(exact))
    (visitors,) = counts_of(noisy)["visitors"] - counts_of(exact)["visitors"]
    assert np.count_nonzero(visitors[np.triu_indices(DAYS + 1, 1)]) > 20
    assert not OutboxDelta.objects.exists()


def test_the_first_days_of_a_subscriber_count_in_any_order_of_files_and_closings(make_noisy, few):
    """Rows of an earlier day may shift which days are the first ones, until that day is closed."""
    at_once, stepwise = (
        make_noisy(slug=slug, days=1, n_shards=n) for n, slug in enumerate(("at-once", "stepwise"), start=1)
    )
    at_once.upload(few[2], few[0], few[1])
    at_once.close_days(through=3)
    found, expected = without_noise(at_once, through=3), visitors_by_hand(at_once, cap=1)
    assert not np.array_equal(expected, visitors_by_hand(at_once, cap=2))
    assert np.array_equal(found["visitors"][0], expected)
    answers = sum(int(found[name].sum()) for name in found if name.endswith("/n_reports"))
    assert 0 < answers <= expected.sum()  # each person answers one indicator, on one day
    stepwise.upload(few[0])
    stepwise.close_days(through=1)
    after_one_day = counts_of(stepwise)
    stepwise.upload(few[2])
    assert same(counts_of(stepwise), after_one_day)
    stepwise.upload(few[1])
    stepwise.close_days(through=2)
    for _ in range(2):
        stepwise.close_days(through=3)
        assert same(counts_of(at_once), counts_of(stepwise))


@pytest.mark.parametrize(
    "n_deaths",
    [pytest.param(3, marks=[pytest.mark.database, ON_POSTGRES]), pytest.param(None, marks=pytest.mark.long)],
)
def test_a_death_at_any_statement_of_a_closing_changes_nothing(make_noisy, few, n_deaths):
    def begun(slug):
        pipeline = make_noisy(slug=slug, n_shards=2)
        pipeline.upload(few[0])
        batch = requests.request_close_days(pipeline.study, through=2, by="test")
        pipeline.queue.clear()
        pipeline.queue.append(("advance", str(batch.pk)))
        return pipeline, batch

    def result_of(pipeline):
        return pipeline.tallies(), VaultPublication.objects.filter(study=pipeline.study).count()

    check_deaths(begun, result_of, n_deaths=n_deaths)


def test_what_comes_after_a_day_was_closed_changes_nothing_of_it(make_noisy, few, tmp_path):
    noisy = make_noisy()
    noisy.upload(few[0])
    noisy.close_days(through=1)
    before = counts_of(noisy)
    (left,) = noisy.upload(some_people(few[0], tmp_path), profile="opt-out")
    assert left.subscriber_days < 0
    assert same(counts_of(noisy), before)
    noisy.upload(few[1])
    noisy.close_days(through=2)
    after = counts_of(noisy)
    assert all(np.array_equal(after[name][..., :2], before[name][..., :2]) for name in before)
    found = without_noise(noisy, through=2)["visitors"][0]
    assert np.array_equal(found[:, 2], visitors_by_hand(noisy)[:, 2])


def test_day_undone_before_it_is_closed_had_not_crossed(make_noisy, make_exact, few, monkeypatch):
    """And a closing that fails lets nothing cross without its noise."""
    noisy, exact = make_noisy(), make_exact()
    exact.upload(few[0], few[2])
    noisy.upload(*few)
    noisy.void_day(2)
    assert VaultStudy.objects.get(slug="noisy").voided_days == 0
    with monkeypatch.context() as patch:
        patch.setattr(merging, "finish", raising(RuntimeError))
        failed = noisy.close_days(through=2)
    assert failed.state == Batch.State.FAILED
    assert OutboxDelta.objects.filter(batch=failed).exists()
    publishing.publish(open_study(noisy.study))
    assert not any(map(any, noisy.tallies().values()))
    noisy.close_days(through=3)
    assert not OutboxDelta.objects.filter(batch__study=noisy.study).exists()
    assert same(without_noise(noisy, through=3), counts_of(exact))


def test_analyst_zone_takes_each_noisy_day_once_and_nothing_else(make_noisy, make_exact):
    noisy, exact = make_noisy(), make_exact()
    study = open_study(noisy.study)

    def sent(pipeline, delta):
        place = {"study_slug": pipeline.study.slug, "plan_hash": pipeline.study.plan_hash}
        return apply_publication(**place, publication_id=uuid4(), delta=delta, voided_days=0)

    def send(first, last, through):
        noise = noise_delta(study.plan, prf=study.prf, first_day=first, last_day=last)
        return sent(noisy, replace(noise, noisy_through=through))

    def check_refused(refusals):
        before = noisy.tallies()
        for days, reason in refusals.items():
            with pytest.raises(PublicationError, match=reason):
                send(*days)
        assert noisy.tallies() == before

    later = "must bring later days and their noise, got days through 0"
    check_refused({(1, 2, 0): later, (1, 3, 2): "must have days 1 to 2 only"})
    assert send(1, 2, 2)
    other = {(2, 4, 4): "must have days 3 to 4 only", (1, 2, 2): "through day 2", (3, 4, 8): "through 8"}
    check_refused(other)
    with pytest.raises(PublicationError, match="has exact totals"):
        sent(exact, replace(Delta.zero(open_study(exact.study).plan), noisy_through=1))
    assert "presence" not in Plan.objects.get(study__slug="exact").spec


def test_study_is_closed_when_all_its_days_have_crossed_and_its_certificate_counts_nobody(make_noisy, few):
    """Counts do not depend on who was there: the certificate crosses, too."""
    noisy = make_noisy()
    noisy.upload(*few[:2])
    noisy.close_days(through=1)
    with pytest.raises(StudyNotClosedError, match="2017-06-01"):
        close_study(noisy.study, by="test", leave=Leave())
    noisy.close_days(through=2)
    before = noisy.tallies()
    certificate = close_study(noisy.study, by="test", leave=Leave())
    jsonschema.validate(certificate, SCHEMA)
    assert certificate["dropped"] == {"waiting_subscribers": None, "unpublished_days": []}
    counted = {name for name, count in certificate["erased"].items() if count is not None}
    assert counted == {"damaged_shards", "publications", "staged_uploads"}
    assert "exact" not in next(row["text"] for row in certificate["kept"] if row["name"] == "totals")
    assert noisy.tallies() == before
