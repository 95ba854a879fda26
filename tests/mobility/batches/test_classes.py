"""Classes from files to totals: the first of each subscriber, visitors and answers by class, undone days."""

from itertools import combinations_with_replacement

import numpy as np
import pytest

import ldp
from ldp.estimation.tallies import class_blocks
from ldp.estimation.unions import union
from mobility.batches.publication.min_publication import fewest_subscribers
from mobility.models import Batch, PresenceShard
from mobility.vault.state.changes import exact_tallies
from mobility.vault.studies import open_study
from reports.studies.studyfile import StudyDefinition
from tests.demo_study import parsed_study
from tests.mobility.class_study import (
    CLASSES,
    COLOURS,
    DAYS,
    class_text,
    recount,
    rows_of,
    some_rows,
    write_days,
)

pytestmark = pytest.mark.django_db(databases=["default", "vault"])
WINDOWS = list(combinations_with_replacement(range(1, DAYS + 1), 2))


@pytest.fixture(scope="module")
def definition() -> StudyDefinition:
    return parsed_study(class_text())


def blocks_of(pipeline, slug) -> np.ndarray:
    plan = ldp.PlanSpec.from_json(pipeline.study.plan)
    counts = np.frombuffer(pipeline.tallies()[slug], "<i8")
    shape = (plan.tally_sizes[plan.index(slug)], DAYS + 1, DAYS + 1)
    return class_blocks(counts.reshape(shape), n_classes=3)


def visitors_by_class(pipeline) -> np.ndarray:
    return np.frombuffer(pipeline.tallies()["stays"], "<i8").reshape(3, DAYS + 1, DAYS + 1)


def check(pipeline, rows) -> None:
    """Totals are those of a recount; at these epsilons answers are the values."""
    classes, colours, days = recount(rows)
    of_class, colour = visitors_by_class(pipeline), blocks_of(pipeline, "colour")
    duration = blocks_of(pipeline, "visit_duration")
    for first, last in WINDOWS:
        here = {who for who, when in days.items() if any(first <= day <= last for day in when)}
        for number, name in enumerate(CLASSES):
            own = {who for who in here if classes[who] == name}
            n_visitors = int(union(of_class[number], first_day=first, last_day=last))
            assert n_visitors == len(own)
            *counts, n_reports = union(colour[number], first_day=first, last_day=last).tolist()
            assert sum(counts) == n_reports
            of_others = int(union(duration[number], first_day=first, last_day=last)[-1])
            assert n_reports + of_others == len(own)
        assert pipeline.visitors(first, last) == len(here)
    counts = union(colour, first_day=1, last_day=DAYS)[:, :-1]
    for number, name in enumerate(CLASSES):
        own = [colours[who] for who in days if classes[who] == name]
        assert (counts[number] <= [own.count(each) for each in COLOURS]).all()


def test_first_class_counts_and_answers_are_in_its_block(make_pipeline, tmp_path):
    rows = some_rows()
    pipeline = make_pipeline()
    batches = pipeline.upload(*write_days(tmp_path, rows))
    assert [each.state for each in batches] == [Batch.State.DONE] * 3
    check(pipeline, [row for of_day in rows.values() for row in of_day])
    assert batches[1].notes["conflicting_value"] > 0


def test_undone_and_repeated_days_leave_the_same_totals(make_pipeline, tmp_path):
    rows = some_rows()
    paths = write_days(tmp_path, rows)
    plain = make_pipeline()
    plain.upload(*paths)
    other = make_pipeline(slug="other")
    other.upload(*paths[:2])
    before = other.tallies()
    other.upload(paths[2])
    other.void_day(3)
    assert other.tallies() == before
    other.upload(paths[2], paths[0])
    assert other.tallies() == plain.tallies()
    study = open_study(other.study)
    total = ldp.Delta.zero(study.plan)
    for shard in PresenceShard.objects.filter(study=other.study):
        total.add(exact_tallies(study.unseal_presence(shard), study.sanitiser))
    assert total.stays.tobytes() == other.tallies()["stays"]
    assert total.counts[0].tobytes() == other.tallies()["colour"]


def test_class_of_a_day_without_a_visit_is_final_while_the_day_is_open(make_pipeline, tmp_path):
    """The first stay is too short for a visit, and a later row says another class."""
    panel, standard = ({"contract": each, "colour": "red"} for each in ("PANEL", "STANDARD"))
    early = rows_of("p1", 1, contract="MINOR", colour="red", minutes=10)
    early += [row for n in range(20) for row in rows_of(f"x{n}", 1, **standard)]
    late = [row for who in ("p1", "x0", *(f"y{n}" for n in range(9))) for row in rows_of(who, 2, **panel)]
    pipeline = make_pipeline()
    pipeline.upload(*write_days(tmp_path, {1: early, 2: late}), more_to_come=True)
    pipeline.close_days(2)
    found = [int(union(each, first_day=1, last_day=2)) for each in visitors_by_class(pipeline)]
    assert found == [9, 20, 1]


def test_days_of_daily_indicators_alone_are_closed(make_pipeline, tmp_path):
    """Closing a day brings no rows, and so no column of classes."""
    changed = parsed_study(class_text(has_static=False))
    pipeline = make_pipeline(plan=changed.plan, classes=changed.classes, indicators=changed.indicators)
    pipeline.upload(*write_days(tmp_path, some_rows()), more_to_come=True)
    pipeline.close_days(DAYS)
    assert visitors_by_class(pipeline).sum() > 0


def test_an_answer_that_comes_later_is_by_the_class_of_the_first_file(make_pipeline, tmp_path):
    """At 0.01 a third of the answers is red, by the class of the second file all would be."""
    changed = parsed_study(class_text({"panel": 20, "standard": 1, "minor": 0.01}))
    pipeline = make_pipeline(plan=changed.plan, classes=changed.classes)
    said = {1: {"contract": "MINOR", "colour": ""}, 2: {"contract": "PANEL", "colour": "red"}}
    rows = {day: [row for n in range(300) for row in rows_of(f"p{n}", day, **said[day])] for day in said}
    pipeline.upload(*write_days(tmp_path, rows))
    red, *_, n_reports = union(blocks_of(pipeline, "colour"), first_day=1, last_day=2)[2].tolist()
    assert n_reports > 100
    assert red < n_reports / 2


def test_rows_without_a_class_of_the_list_are_rejected(make_pipeline, tmp_path):
    rows = [row for person in range(40) for row in rows_of(f"p{person}", 1, contract="PANEL", colour="blue")]
    wrong = [row for each in ("", "panel") for row in rows_of(f"q{each}", 1, contract=each, colour="blue")]
    (path,) = write_days(tmp_path, {1: [*rows, *wrong]})
    (batch,) = make_pipeline().upload(path)
    assert (batch.state, batch.rows_rejected, batch.rows_accepted) == ("done", {"unknown_value": 4}, 80)
    path.write_text("msisdn,time,colour\n" + "".join(row.replace("PANEL,", "") for row in rows))
    (batch,) = make_pipeline(slug="other").upload(path)
    assert batch.state == Batch.State.FAILED
    assert "contract" in str(batch.failure)


def test_opting_out_takes_people_out_of_their_class(make_pipeline, tmp_path):
    rows = some_rows()
    pipeline = make_pipeline()
    pipeline.upload(*write_days(tmp_path, rows))
    listed = tmp_path / "people.csv"
    gone = {f"p{person}" for person in range(0, 300, 3)}
    listed.write_text("".join(f"{who}\n" for who in sorted(gone)))
    pipeline.upload(listed, profile="opt-out")
    left = [row for of_day in rows.values() for row in of_day if row.split(",")[0] not in gone]
    check(pipeline, left)


@pytest.mark.parametrize("mechanism", ["smp-oue", "smp-adp"])
def test_each_class_answers_by_its_channel(make_pipeline, tmp_path, mechanism):
    """At 0.01 answers say next to nothing, at 20 all; with OUE they mark about half of the categories."""
    epsilons = {"panel": 20, "standard": 1, "minor": "0.01"}
    other = parsed_study(class_text({**epsilons, "minor": 0.01}, mechanism=mechanism))
    rows = some_rows(n=2000)
    pipeline = make_pipeline(plan=other.plan, classes=other.classes)
    pipeline.upload(*write_days(tmp_path, rows))
    spec = ldp.PlanSpec.from_json(pipeline.study.plan)
    classes, colours, days = recount([row for of_day in rows.values() for row in of_day])
    blocks = union(blocks_of(pipeline, "colour"), first_day=1, last_day=DAYS)
    of_class = union(visitors_by_class(pipeline), first_day=1, last_day=DAYS)
    for own, block, n_visitors, name in zip(spec.of_classes, blocks, of_class.tolist(), CLASSES, strict=True):
        people = [colours[who] for who in days if classes[who] == name]
        assert n_visitors == len(people)
        shares = np.array([people.count(each) for each in COLOURS]) / len(people)
        sizes = {"n_reports": int(block[-1]), "n_population": n_visitors}
        channel = own.answer_channel(0)
        found = ldp.pure_frequencies(block[:-1].copy(), channel=channel, **sizes)
        assert (abs(found.frequency - shares) < 4 * found.std_error + 1e-6).all()


def test_a_publication_never_counts_a_subscriber_twice(definition):
    plan = definition.plan_spec()
    delta = ldp.Delta.zero(plan)
    blocks = class_blocks(delta.counts[0], n_classes=3)
    blocks[1, 0, 0, 1] = blocks[1, -1, 0, 1] = delta.n_reports[0][0, 1] = delta.visitors[0, 1] = 4
    delta.stays[1, 0, 1] = 4
    assert fewest_subscribers(delta, plan=plan) == 4
