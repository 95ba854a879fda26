"""From files to totals for every mechanism: what is counted is what the reports say, one person at a time."""

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, get_args

import numpy as np
import pytest

from ldp import KeyedPrf, PlanSpec, UnaryChannel, cmac64, derive_subkey, fake_data_answers, oracle_answers
from ldp.keyed.designs import threshold
from ldp.privacy.plans import Mechanism
from ldp.protocols.numbers.threshold import Scale, ThresholdChannel
from mobility.vault.models.batch import Batch
from reports.studies.studyfile import VISIT_DURATION_BANDS, StudyDefinition
from tests.demo_study import STUDY_FILE
from tests.mobility.pipeline import MASTER_KEY, Pipeline
from tests.mobility.vault import keyed
from tests.reference import Extract, read_extract, read_study
from tests.reports.report_factory import joint

pytestmark = [pytest.mark.django_db(databases=["default", "vault"])]
DAYS, DAYS_SENT = 7, 3
SANITISE_KEY = derive_subkey(MASTER_KEY, purpose="sanitise")
MECHANISMS = get_args(Mechanism)
SCALE = Scale(cuts=(120, 240, 540), unit="min")
Supported = list[list[int] | None]  # per person: the values that a report supports; None for no report


def study_of(definition: StudyDefinition, mechanism: str, unit: str = "profile") -> dict[str, Any]:
    """Changes to the demo's study; a promise about one value and fake data suit no daily indicator."""
    if mechanism == "joint":
        parts = [each for each in definition.indicators if each.slug in ("gender", "region")]
        return {"indicators": (*definition.indicators, joint("both", *parts))}
    if mechanism == "number":
        names = tuple(f"{cut} min or more" for cut in SCALE.cuts)
        number = {"scale": SCALE, "categories": names, "categories_fr": None}
        return {
            "indicators": tuple(
                replace(each, **number) if each.derive else each for each in definition.indicators
            )
        }
    plan = replace(definition.plan, mechanism=mechanism, unit=unit)  # type: ignore[arg-type]
    static = tuple(each for each in definition.indicators if each.kind == "static")
    only_static = mechanism.startswith("rsfd") and unit == "attribute"
    return {"plan": plan, "indicators": static if only_static else definition.indicators}


@dataclass(frozen=True)
class ByHand:
    """Counts of one indicator by (value, previous day, day), and reports."""

    counts: np.ndarray
    n_reports: np.ndarray


def reports_of(plan: PlanSpec, pseudonyms: np.ndarray, values: list[np.ndarray]) -> list[Supported]:
    given = {"pseudonyms": pseudonyms, "prf": KeyedPrf(SANITISE_KEY), "plan_version": plan.version}
    if plan.has_fakes:
        sent: Any = fake_data_answers(values, channel=plan.fake_data, **given)
    else:
        if plan.is_sampled:
            asked = np.array([keyed.asked(SANITISE_KEY, int(p), plan) for p in pseudonyms])
            values = [np.where(asked == i, column, -1).astype(np.int32) for i, column in enumerate(values)]
        channels = [plan.answer_channel(index) for index in range(plan.d)]
        sent = [
            (threshold.answers if isinstance(channel, ThresholdChannel) else oracle_answers)(  # type: ignore[operator]
                column, channel=channel, indicator=index, **given
            )
            for index, (channel, column) in enumerate(zip(channels, values, strict=True))
        ]
    found = []
    for index, (reports, column) in enumerate(zip(sent, values, strict=True)):
        of_each = zip(reports.tolist(), column.tolist(), strict=True)
        found.append([None if value < 0 else supported(plan, index, report) for report, value in of_each])
    return found


def supported(plan: PlanSpec, index: int, report: Any) -> list[int]:
    channel = plan.answer_channel(index)
    if not isinstance(channel, UnaryChannel):
        return [report]
    return [value for value in range(channel.domain_size) if report[value // 64] >> value % 64 & 1]


def tallies_by_hand(definition: StudyDefinition, truth: Extract) -> dict[str, ByHand]:
    plan = definition.plan_spec()
    people = sorted(who for who, days in truth["presence"].items() if days)
    pseudonyms = pseudonyms_of(people)

    def values_of(kind, value_of):
        found = []
        for each in definition.indicators:
            column = [value_of(who, each.slug) if each.kind == kind else None for who in people]
            if each.parts and kind == "static":
                pairs = [[value_of(who, part) or "no value" for part in each.parts] for who in people]
                column = [" / ".join(pair) for pair in pairs]
            names = VISIT_DURATION_BANDS if each.scale else each.categories
            codes = [-1 if value is None else names.index(value) for value in column]
            if each.scale:  # band i begins after i + 1 hours
                codes = [-1 if i < 0 else sum(cut <= 60 * (i + 1) for cut in SCALE.cuts) for i in codes]
            found.append(np.array(codes, np.int32))
        return found

    static = values_of("static", lambda who, slug: truth["static"][who].get(slug))
    found_static, found = reports_of(plan, pseudonyms, static), {}
    for day in range(1, DAYS + 1):
        values = values_of("daily", lambda who, _, day=day: truth["duration"].get((who, day)))
        found[day] = reports_of(plan, pseudonyms, values)
    result = {}
    for index, each in enumerate(definition.indicators):
        counts = np.zeros((plan.tally_sizes[index], DAYS + 1, DAYS + 1), np.int64)
        n_reports = np.zeros((DAYS + 1, DAYS + 1), np.int64)
        for row, who in enumerate(people):
            previous = 0
            for day in sorted(truth["presence"][who]):
                report = (found_static if each.kind == "static" else found[day])[index][row]
                n_reports[previous, day] += report is not None
                for value in report or []:
                    counts[value, previous, day] += 1
                previous = day
        result[each.slug] = ByHand(counts, n_reports)
    return result


def pseudonyms_of(people: list[str]) -> np.ndarray:
    texts = [who.encode() for who in people]
    offsets = np.cumsum([0, *map(len, texts)])
    data = np.frombuffer(b"".join(texts), np.uint8)
    return cmac64(derive_subkey(MASTER_KEY, purpose="pseudonym"), data, offsets)


def assert_counted(pipeline: Pipeline, expected: dict[str, ByHand]) -> None:
    tallies = pipeline.tallies()
    for slug, by_hand in expected.items():
        counts = np.frombuffer(tallies[slug], "<i8").reshape(by_hand.counts.shape)
        n_reports = np.frombuffer(tallies[f"{slug}/n_reports"], "<i8").reshape(by_hand.n_reports.shape)
        assert np.array_equal(counts, by_hand.counts), slug
        assert np.array_equal(n_reports, by_hand.n_reports), slug


@pytest.fixture(scope="module")
def gappy(extract, tmp_path_factory):
    """Three days, where every fifth subscriber has no gender and every seventh no region."""
    folder = tmp_path_factory.mktemp("gappy")
    paths = []
    for path in extract[:DAYS_SENT]:
        header, *rows = path.read_text().splitlines()
        names = header.split(",")
        lines = [header]
        for row in rows:
            fields = row.split(",")
            for name, every in (("gender", 5), ("region", 7)):
                if len(fields) == len(names) and fields[0].isdigit() and int(fields[0]) % every == 0:
                    fields[names.index(name)] = ""
            lines.append(",".join(fields))
        paths.append(folder / path.name)
        paths[-1].write_text("\n".join(lines) + "\n")
    return paths


@pytest.fixture(scope="module")
def truth(gappy):
    return read_extract(gappy, read_study(STUDY_FILE))


@pytest.mark.parametrize("mechanism", [*MECHANISMS, "joint", "number"])
def test_totals_are_those_of_the_reports(make_pipeline, definition, gappy, truth, mechanism):
    changes = study_of(definition, mechanism)
    pipeline = make_pipeline(**changes)
    batches = pipeline.upload(*gappy)
    assert {batch.state for batch in batches} == {Batch.State.DONE}
    assert pipeline.visitors(1, DAYS) == sum(map(bool, truth["presence"].values()))
    definition = replace(definition, **changes)
    expected = tallies_by_hand(definition, truth)
    assert_counted(pipeline, expected)
    # A subscriber without a value sends no report on it, neither answer nor fake.
    n_gender = sum("gender" in truth["static"][who] for who, days in truth["presence"].items() if days)
    asked_all = mechanism.startswith(("spl", "rsfd"))
    assert (expected["gender"].n_reports[0].sum() == n_gender) == asked_all
    counted = [(each.kind, expected[each.slug].n_reports) for each in definition.indicators]
    answers = sum((by_day if kind == "daily" else by_day[0]).sum() for kind, by_day in counted)
    assert sum(batch.reports for batch in batches) == answers


def test_fake_data_that_hide_one_value_and_weighted_indicators(make_pipeline, definition, gappy, truth):
    fakes, weighted = study_of(definition, "rsfd-adp", unit="attribute"), study_of(definition, "smp-adp")
    first, *others = weighted["indicators"]
    weighted["indicators"] = (replace(first, weight=Decimal(6)), *others)
    for slug, changes in (("fakes", fakes), ("weighted", weighted)):
        pipeline = make_pipeline(slug=slug, **changes)
        pipeline.upload(*gappy)
        expected = tallies_by_hand(replace(definition, **changes), truth)
        assert_counted(pipeline, expected)
    n_asked = [expected[each.slug].n_reports[0].sum() for each in weighted["indicators"]]
    assert n_asked[0] > max(n_asked[1:]) * 3


@pytest.mark.parametrize("mechanism", ["smp-oue", "rsfd-ouez"])
def test_late_answer_is_counted_on_all_days(make_pipeline, definition, extract, gappy, mechanism):
    """Values missing at first come with later files; what was reported before stays."""
    changes = study_of(definition, mechanism)
    pipeline = make_pipeline(**changes, min_publication=1)
    pipeline.upload(*gappy[:2])
    early = pipeline.tallies()
    pipeline.upload(*extract[:2])
    truth = read_extract(extract[:2], read_study(STUDY_FILE))
    expected = tallies_by_hand(replace(definition, **changes), truth)
    assert_counted(pipeline, expected)
    grown = expected["gender"].n_reports.sum() - np.frombuffer(early["gender/n_reports"], "<i8").sum()
    assert grown > 0
