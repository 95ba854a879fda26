"""Studies of events through the pipeline: a row counts once, however often it comes."""

import random
import re
from collections import Counter
from html import unescape
from io import StringIO

import numpy as np
import pytest
from django.core.management import call_command
from django.db import OperationalError
from django.utils.translation import override

from ldp.keyed.events import event_keys
from ldp.keyed.sanitiser import Sanitiser
from mobility.batches.publication import merging
from mobility.models import Batch, DayState, VaultDay
from mobility.operations.doctor import tallies as doctor
from mobility.operations.findings import Level
from mobility.plans.closing import Leave, close_study
from mobility.vault.profiles import find_profile, profile_names
from mobility.vault.studies import open_study
from reports.events.queries import events_by_day, known_periods, period_reports
from reports.models import Study
from reports.studies.policies import Role
from tests.mobility.event_study import SLUG, TEXT, as_changes, event_definition, in_area, rows_of, write_rows
from tests.mobility.pipeline import raising, resume

pytestmark = pytest.mark.django_db(databases=["default", "vault"], transaction=True)
DAYS = (1, 2, 300, 399)


@pytest.fixture
def pipeline(make_pipeline):
    return make_pipeline(n_shards=1, **as_changes(event_definition()))


@pytest.fixture
def send(pipeline, tmp_path):
    def sent(rows, name="rows.csv", **options) -> Batch:
        (batch,) = pipeline.upload(write_rows(tmp_path / name, rows), **options)
        assert batch.state == Batch.State.DONE, batch.failure
        return batch

    return sent


def by_day() -> dict[int, int]:
    counts = events_by_day(Study.objects.get(slug=SLUG))
    return {day: n for day, n in enumerate(counts, start=1) if n}


def expected(rows) -> dict[int, int]:
    days = Counter(row[:10] for row in in_area(rows))
    study = Study.objects.get(slug=SLUG)
    return {day: days[f"{study.date_of(day)}"] for day in range(1, 401) if days[f"{study.date_of(day)}"]}


def test_each_row_counts_once_and_answers_one_question_with_its_key(pipeline, send):
    assert profile_names(pipeline.study) == ["default"]  # no lists of people
    rows = rows_of(*DAYS)
    batch = send(rows, more_to_come=True)
    assert (batch.more_to_come, by_day()) == (False, expected(rows))
    assert batch.rows_accepted == batch.subscriber_days == len(in_area(rows))
    study = open_study(pipeline.study)
    coder = study.row_coder(find_profile(pipeline.study, "default"))
    assert coder.slots == 2
    reported = 0
    for slug in ("reason", "zone"):
        indicator = Study.objects.get(slug=SLUG).indicators.get(slug=slug)
        (year,) = [each for each in known_periods(indicator.study, "year") if each.name == "2024"]
        report = period_reports(indicator, [year])[0].report
        assert report.n_visitors == sum(n for day, n in expected(rows).items() if 13 <= day <= 378)
        assert sum(each.reports for each in report.estimates) == report.n_reports
        reported += report.n_reports
    assert 0 < reported <= sum(by_day().values())


def test_the_same_file_counts_once_and_so_do_its_rows_in_other_files(pipeline, send):
    rows = rows_of(*DAYS)
    send(rows)
    before = pipeline.tallies()
    assert send(rows).duplicate_of is not None
    shuffled = random.Random(3).sample(rows, len(rows))
    again = send(shuffled, "other.csv")
    assert (again.duplicate_of, again.rows_ignored["duplicate"]) == (None, len(in_area(rows)))
    more = send(rows + rows_of(5), "more.csv")
    assert more.subscriber_days == len(in_area(rows_of(5)))
    assert by_day() == expected(rows + rows_of(5))
    assert pipeline.tallies() != before


def test_equal_rows_of_a_file_are_events_of_their_own_and_share_no_bits(pipeline, send):
    row = "2023-12-21T10:00:00,C1,fire"
    send([row] * 400)
    assert by_day() == {2: 400}
    assert send([row] * 399, "fewer.csv").subscriber_days == 0
    assert send([row] * 403, "more.csv").subscriber_days == 3
    indicator = Study.objects.get(slug=SLUG).indicators.get(slug="reason")
    report = period_reports(indicator, known_periods(indicator.study, "year")[:1])[0].report
    reports = {each.category: each.reports for each in report.estimates}
    # GRR at epsilon 1 with 3 categories keeps 58%: shared bits would give one category all of them.
    assert 0.4 * report.n_reports < reports["fire"] < 0.75 * report.n_reports
    assert min(reports.values()) > 0.1 * report.n_reports


def test_any_split_into_files_and_chunks_gives_the_same_totals(pipeline, send, settings, monkeypatch):
    rows = rows_of(*range(1, 6), each=60)
    send(rows[::2], "a.csv")
    send(rows[1::2], "b.csv")
    split = pipeline.tallies()
    for day in range(1, 6):
        pipeline.void_day(day)
    assert not by_day()
    monkeypatch.setattr("mobility.extracts.readers.chunks.GRAIN_BYTES", 1_000)
    settings.MOBILITY_CHUNK_BYTES = 1_000
    monkeypatch.setattr("mobility.batches.reading.MIN_CHUNK_BYTES", 1_000)
    assert send(rows, "whole.csv").chunks.count() > 3
    assert pipeline.tallies() == split


def test_a_worker_that_dies_half_way_changes_nothing(pipeline, tmp_path, monkeypatch):
    """After the first of two shards."""
    rows, pipeline.study.n_shards = rows_of(*DAYS), 2
    pipeline.study.save(update_fields=["n_shards"])
    with monkeypatch.context() as dying:
        real, calls = merging._store, []

        def once(*args):
            calls.append(1)
            return real(*args) if len(calls) == 1 else raising(OperationalError)()

        dying.setattr(merging, "_store", once)
        batch = pipeline.receive(write_rows(tmp_path / "rows.csv", rows))
        pipeline.queue.append(("advance", str(batch.pk)))
        with pytest.raises(OperationalError):
            pipeline.work()
    resume(pipeline, batch)
    assert (batch.state, by_day()) == (Batch.State.DONE, expected(rows))


def test_one_more_event_after_an_undo_is_not_published_alone(pipeline, send):
    rows = rows_of(1, 2)
    send(rows)
    pipeline.void_day(2)
    batch = send([*rows, "2023-12-21T23:30:00,C1,fire"], "one-more.csv")
    # Published, it would differ from the totals before the undo by this event alone.
    assert (batch.waiting_subscribers, by_day()) == (31, expected(rows_of(1)))
    send(rows_of(3), "later.csv")
    assert by_day() == {**expected(rows_of(1, 2, 3)), 2: expected(rows)[2] + 1}


def test_an_undone_day_that_comes_back_waits_as_the_difference_alone(pipeline, send):
    few = rows_of(2, each=8)
    send(rows_of(1) + few)
    before = pipeline.tallies()
    assert pipeline.void_day(2).waiting_subscribers == 6
    batch = send([*few, "2023-12-21T23:30:00,C1,fire"], "one-more.csv")
    assert (batch.waiting_subscribers, pipeline.tallies()) == (1, before)
    assert send(rows_of(3), "later.csv").waiting_subscribers == 0
    assert by_day() == {**expected(rows_of(1) + few + rows_of(3)), 2: 7}


def test_a_closed_day_takes_no_rows_and_keeps_no_keys_and_the_doctor_finds_other_totals(pipeline, send):
    send(rows_of(1, 2))
    assert pipeline.close_days(1).state == Batch.State.DONE
    assert set(DayState.objects.values_list("day", flat=True)) == {2}
    late = send(["2023-12-20T05:05:05,C1,fire"] * 20 + rows_of(3), "late.csv")
    assert late.rows_ignored["day_closed"] == 20
    assert by_day() == expected(rows_of(1, 2, 3))
    assert VaultDay.objects.get(day=1).state == VaultDay.State.CLOSED
    assert {found.level for found in doctor.recomputed()} == {Level.OK}
    DayState.objects.filter(day=2).first().delete()
    assert Level.ERROR in {found.level for found in doctor.recomputed()}


@pytest.mark.parametrize(
    ("language", "dropped", "kept"),
    [
        ("en", "fewer than 10 events when the study was closed", "Exact event counts"),
        ("fr", "ils portaient sur moins de 10 événements", "Nombres exacts d\u2019événements"),
    ],
)
def test_after_the_end_texts_are_about_events(pipeline, send, client, person, language, dropped, kept):
    batch = send(rows_of(1, each=6))
    assert (batch.waiting_subscribers, by_day()) == (5, {})  # fewer than min_publication
    with override(language):
        certificate = close_study(pipeline.study, by="test", leave=Leave())
    assert certificate["kept"][0]["text"].startswith(kept)
    client.force_login(person("olga", Role.OPERATOR, Role.ADMINISTRATOR))
    client.cookies["django_language"] = language
    assert dropped in unescape(client.get(f"/operator/batches/{batch.pk}/").content.decode())
    end = unescape(client.get(f"/administrator/{SLUG}/").content.decode()).split('id="end-title"')[1]
    about_people = "pseudonym|subscriber|visit|abonné"
    assert not re.findall(about_people, end.split("</section>")[0].lower())


def test_a_column_of_ids_tells_equal_rows_of_two_files_apart(make_pipeline, tmp_path):
    text = TEXT.replace('timestamp = "at"', 'timestamp = "at"\nevent = "number"')
    pipeline = make_pipeline(**as_changes(event_definition(text)))
    for name, start in (("a.csv", 0), ("b.csv", 30)):
        path = tmp_path / name
        rows = "".join(f"{start + n},2023-12-21T10:00:00,C1,fire\n" for n in range(40))
        path.write_text("number,at,cell_id,reason\n" + rows)
        pipeline.upload(path)
    assert by_day() == {2: 70}


@pytest.mark.parametrize("mechanism", ["smp-adp", "spl-grr"])
def test_other_mechanisms_count_all_reports(make_pipeline, tmp_path, mechanism):
    pipeline = make_pipeline(n_shards=2, **as_changes(event_definition(TEXT.replace("smp-grr", mechanism))))
    rows = rows_of(1, 2)
    (batch,) = pipeline.upload(write_rows(tmp_path / "rows.csv", rows))
    assert (batch.state, by_day()) == (Batch.State.DONE, expected(rows))


def test_answers_are_those_of_the_keys_which_go_when_the_study_is_closed(pipeline, send):
    rows = rows_of(7, each=150)
    send(rows)
    study = open_study(pipeline.study)
    found = np.concatenate([study.unseal_events(row).pseudonym for row in DayState.objects.filter(day=7)])
    assert len(np.unique(found)) == len(in_area(rows))
    asked = Sanitiser(study.plan, study.prf).asked(found)
    assert 0.3 < (asked == 0).mean() < 0.7
    assert not np.isin(found, event_keys(found, prf=study.event_prf)).any()
    assert close_study(pipeline.study, by="test", leave=Leave())
    assert not DayState.objects.exists()
    assert by_day() == expected(rows)


def test_the_study_is_made_filled_and_printed_by_commands(pipeline, send):
    send(rows_of(1, 40))
    out = StringIO()
    call_command(
        "export_report", SLUG, "--indicator", "zone", "--period", "month", "--format", "csv", stdout=out
    )
    lines = out.getvalue().splitlines()
    assert lines[0].startswith("study,indicator,plan_version,mechanism,epsilon,unit,period,first_day")
    assert [line.split(",")[6] for line in lines[1:]] == ["2023-12", "2023-12", "2024-01", "2024-01"]
