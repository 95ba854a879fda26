"""From files to totals: the 28 windows, whatever the order of the files and however often they come."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from ldp.tallies import union
from mobility.errors import DayStateError, UploadBrokenError
from mobility.models import Batch, DayState, VaultDay
from mobility.services import outcomes, uploads
from reports.models import Plan
from reports.studyfile import StudyDefinition
from tests.mobility.services.conftest import STUDY_FILE, Pipeline
from tests.reference import Extract, read_extract, read_study

pytestmark = [pytest.mark.database, pytest.mark.django_db(databases=["default", "vault"])]
DAYS = 7
WINDOWS = [(first, last) for first in range(1, DAYS + 1) for last in range(first, DAYS + 1)]


@pytest.fixture(scope="module")
def truth(extract: list[Path]) -> Extract:
    return read_extract(extract, read_study(STUDY_FILE))


def halves_of(path: Path, folder: Path) -> Iterator[Path]:
    """The rows of a file in two files, alternately, so that no visit is whole in either."""
    header, *rows = path.read_text().splitlines(keepends=True)
    for part in (0, 1):
        half = folder / f"{part}-{path.name}"
        half.write_text(header + "".join(rows[part::2]))
        yield half


def test_counts_are_those_of_the_rules(pipeline: Pipeline, extract: list[Path]) -> None:
    for path in extract:
        (batch,) = pipeline.upload(path)
        expected = read_extract([path], read_study(STUDY_FILE))
        assert batch.state == Batch.State.DONE
        assert batch.rows_read == expected["rows_read"]
        assert batch.rows_accepted == expected["accepted"]
        assert batch.rows_ignored == dict(expected["ignored"])
        assert batch.rows_rejected == dict(expected["rejected"])


def test_window_totals_are_exact(pipeline: Pipeline, extract: list[Path], truth: Extract) -> None:
    batches = pipeline.upload(*extract)
    for first, last in WINDOWS:
        present = sum(any(first <= day <= last for day in days) for days in truth["presence"].values())
        assert pipeline.visitors(first, last) == present
    assert sum(batch.subscriber_days for batch in batches) == sum(map(len, truth["presence"].values()))
    assert sum(batch.subscribers_new for batch in batches) == sum(map(bool, truth["presence"].values()))


@pytest.mark.parametrize("mechanism", ["smp-grr", "spl-grr"])
def test_order_repeats_and_splits_change_nothing(
    make_pipeline: Callable[..., Pipeline],
    definition: StudyDefinition,
    extract: list[Path],
    tmp_path: Path,
    mechanism: str,
) -> None:
    plan = replace(definition.plan, mechanism=mechanism)
    plain = make_pipeline(plan=plan)
    plain.upload(*extract)
    other = make_pipeline(plan=plan, slug="other")
    shuffled = random.Random(3).sample(extract, DAYS)
    first_half, second_half = halves_of(shuffled[2], tmp_path)
    other.upload(*shuffled[:2])
    other.upload(shuffled[0])
    other.upload(first_half, more_to_come=True)
    other.upload(*shuffled[3:])
    other.upload(second_half)
    assert other.tallies() == plain.tallies()


def test_answers_add_up_to_the_visitors(pipeline: Pipeline, extract: list[Path]) -> None:
    """Smp: everyone answers exactly one of the seven indicators, each with probability 1/7."""
    pipeline.upload(*extract)
    tallies = pipeline.tallies()
    shape = (DAYS + 1, DAYS + 1)
    reports = {
        slug.removesuffix("/n_reports"): np.frombuffer(blob, "<i8").reshape(shape)
        for slug, blob in tallies.items()
        if slug.endswith("/n_reports")
    }
    assert len(reports) == 7
    assert (sum(reports.values()) == pipeline.visitor_tally()).all()
    n = pipeline.visitors(1, DAYS)
    for tally in reports.values():
        share = union(tally, first_day=1, last_day=DAYS) / n
        assert abs(share - 1 / 7) < 5 * (6 / 49 / n) ** 0.5


def test_same_file_again_says_so(pipeline: Pipeline, extract: list[Path]) -> None:
    pipeline.upload(extract[0])
    before = pipeline.tallies()
    (again,) = pipeline.upload(extract[0])
    assert outcomes.summary(again)["duplicate"] is True
    assert again.rows_read == 0
    assert pipeline.tallies() == before


def test_file_held_back_is_published_when_sent_without_the_flag(
    pipeline: Pipeline, extract: list[Path]
) -> None:
    pipeline.upload(extract[0], more_to_come=True)
    assert pipeline.visitors(1, 1) == 0
    (again,) = pipeline.upload(extract[0])
    assert again.duplicate_of is None
    assert pipeline.visitors(1, 1) > 0


def test_late_rows_add_presence_and_keep_answers(
    make_pipeline: Callable[..., Pipeline], extract: list[Path], truth: Extract, tmp_path: Path
) -> None:
    """The first half is published: visits get longer with the second, but daily answers are final."""
    pipeline = make_pipeline(min_publication=10)
    first, second = halves_of(extract[3], tmp_path)
    pipeline.upload(first)
    early = pipeline.visitors(4, 4)
    daily_before = union(_daily(pipeline), first_day=4, last_day=4)
    (late,) = pipeline.upload(second)
    assert pipeline.visitors(4, 4) == sum(4 in days for days in truth["presence"].values()) > early
    assert late.notes["late_change"] > 0
    assert (union(_daily(pipeline), first_day=4, last_day=4) >= daily_before).all()


def _daily(pipeline: Pipeline) -> np.ndarray:
    counts = np.frombuffer(pipeline.tallies()["visit_duration"], "<i8")
    return counts.reshape(-1, DAYS + 1, DAYS + 1)


def test_close_days_publishes_what_is_open_and_ends_it(
    pipeline: Pipeline, extract: list[Path], truth: Extract, tmp_path: Path
) -> None:
    first, second = halves_of(extract[0], tmp_path)
    pipeline.upload(first, second, more_to_come=True)
    assert pipeline.visitors(1, 1) == 0
    assert DayState.objects.exists()
    pipeline.close_days(through=2)
    assert pipeline.visitors(1, 1) == sum(1 in days for days in truth["presence"].values())
    assert not DayState.objects.exists()
    (late,) = pipeline.upload(extract[1])
    assert late.rows_accepted == 0
    assert late.rows_ignored["day_closed"] > 0
    assert pipeline.visitors(2, 2) == 0


def test_void_day_undoes_it_and_the_file_can_come_again(
    make_pipeline: Callable[..., Pipeline], extract: list[Path]
) -> None:
    plain, other = make_pipeline(), make_pipeline(slug="other")
    plain.upload(*extract)
    other.upload(*extract[:4])
    voided = other.void_day(2)
    assert other.visitors(2, 2) == 0
    assert voided.subscriber_days == -plain.visitors(2, 2)
    other.upload(*extract[4:], extract[1])
    assert other.tallies() == plain.tallies()
    assert Plan.objects.get(study__slug="other").voided_days == 1


def test_void_day_refuses_closed_and_untouched_days(pipeline: Pipeline, extract: list[Path]) -> None:
    pipeline.upload(extract[0])
    pipeline.close_days(through=1)
    with pytest.raises(DayStateError, match="closed"):
        pipeline.void_day(1)
    with pytest.raises(DayStateError, match="nothing was uploaded"):
        pipeline.void_day(3)


def test_void_day_respects_the_cap_of_the_plan(
    make_pipeline: Callable[..., Pipeline], definition: StudyDefinition, extract: list[Path]
) -> None:
    capped = make_pipeline(plan=replace(definition.plan, epsilon_profile=Decimal("7.5")))
    capped.upload(extract[0])
    with pytest.raises(DayStateError, match="epsilon_profile"):
        capped.void_day(1)


def test_small_changes_wait_and_subscribers_count_once(
    pipeline: Pipeline, extract: list[Path], tmp_path: Path
) -> None:
    """60 people on two days are 60, not 120: nothing may cross before 100 are covered."""
    people = _present_on(extract, days=(1, 2), n=60)
    for day in (1, 2):
        (batch,) = pipeline.upload(_only(extract[day - 1], people, tmp_path))
        assert batch.waiting_subscribers == 60
        assert pipeline.visitors(day, day) == 0
    (batch,) = pipeline.upload(extract[2])
    assert batch.waiting_subscribers == 0
    assert pipeline.visitors(1, 2) == 60


def _present_on(extract: list[Path], *, days: tuple[int, ...], n: int) -> set[str]:
    presence = read_extract(extract[: max(days)], read_study(STUDY_FILE))["presence"]
    people = sorted(who for who, when in presence.items() if set(days) <= when)[:n]
    assert len(people) == n
    return set(people)


def _only(path: Path, people: set[str], folder: Path) -> Path:
    header, *rows = path.read_text().splitlines(keepends=True)
    part = folder / path.name
    part.write_text(header + "".join(row for row in rows if row.split(",")[0] in people))
    return part


def test_bad_file_is_refused_whole(pipeline: Pipeline, extract: list[Path], tmp_path: Path) -> None:
    header, *rows = extract[0].read_text().splitlines(keepends=True)
    bad = tmp_path / "bad.csv"
    bad.write_text(header + "".join(rows[:900]) + "33600000001,yesterday,here,,,,,,\n" * 60)
    (batch,) = pipeline.upload(bad)
    assert batch.state == Batch.State.FAILED
    assert "max_bad_share" in batch.failure
    assert "902" in batch.failure  # the first line of them
    assert "33600000001" not in batch.failure
    assert not VaultDay.objects.exists()
    assert pipeline.visitors(1, DAYS) == 0


def test_upload_that_breaks_off_leaves_nothing(pipeline: Pipeline, data_dir: Path) -> None:
    class Broken:
        def __init__(self) -> None:
            self.parts = iter([b"msisdn,timestamp\n", b"33600000001,2017"])

        def read(self, _size: int) -> bytes:
            part = next(self.parts, None)
            if part is None:
                raise ConnectionResetError
            return part

    with pytest.raises(UploadBrokenError, match="broke off after 0 of 99 bytes"):
        uploads.receive(
            Broken(), study=pipeline.study, filename="x.csv", by="t", more_to_come=False, bytes_total=99
        )
    assert Batch.objects.get().state == Batch.State.FAILED
    assert list((data_dir / "staging").iterdir()) == []
    assert [path.name for path in (data_dir / "keystore").iterdir()] == [f"{pipeline.study.key_id}.key"]


def test_upload_shorter_than_announced_is_refused(pipeline: Pipeline, extract: list[Path]) -> None:
    with extract[0].open("rb") as stream, pytest.raises(UploadBrokenError):
        uploads.receive(
            stream, study=pipeline.study, filename="x.csv", by="t", more_to_come=False, bytes_total=10**9
        )
    batch = Batch.objects.get()
    pipeline.finished(batch)  # whoever is asked to run it finds it ended
    assert batch.state == Batch.State.FAILED
