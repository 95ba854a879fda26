"""Comparisons: the right difference of the right numbers, judged row by row and as a table, said and drawn."""
# ruff: noqa: E501  (a table reads best with one row a line)

import json
import re
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from django.utils import translation

from ldp.estimation import windows
from ldp.estimation.contrasts import day_difference, sample_of, value_difference
from ldp.estimation.joint.table_change import table_change
from ldp.estimation.windows import window_difference
from reports.base import formats
from reports.base.status import Status
from reports.compare import charts as charts_compare
from reports.compare import queries as compare
from reports.compare import texts
from reports.compare.proposals import Proposal, better_windows
from reports.compare.queries import Comparison, NotComparableError, NoTest, Reason, Verdict
from reports.estimates import queries
from reports.estimates.queries import Window
from reports.studies.models import Indicator, Study
from tests.reports import report_factory as factory
from tests.reports.estimates.test_charts import STYLES, strings
from tests.reports.page_texts import check_document, csv_rows, words

pytestmark = pytest.mark.django_db
CALM = Window(1, 2)
BUSY = Window(2, 4)
WHOLE = Window(1, 4)


def tallies_of(indicator: Indicator) -> windows.IndicatorTallies:
    ((_, tallies),) = queries.reports_with_tallies([indicator], [[]])
    return tallies


def by_windows(indicator: Indicator, now: Window, then: Window, *, of: Any = "frequency") -> Comparison:
    return compare.compare_windows(indicator, now, then, of=of)


def by_categories(indicator: Indicator, window: Window, code: int, **changes: Any) -> Comparison:
    changes = {"category": None, "of": "frequency"} | changes
    return compare.compare_categories(indicator, window, reference=code, **changes)


def by_baseline(indicator: Indicator, day: int, *days: int, of: Any = "frequency") -> Comparison:
    return compare.compare_baseline(indicator, day, baseline=list(days) or None, of=of)


def refused(call: Any, *args: Any, **options: Any) -> NotComparableError:
    with pytest.raises(NotComparableError) as caught:
        call(*args, **options)
    return caught.value


def numbers(comparison: Comparison) -> list[list[float]]:
    return [[row.difference, row.low, row.high] for row in comparison.rows]


def columns(found: windows.WindowEstimate) -> list[Any]:
    rows = zip(found.value, found.ci_low, found.ci_high, strict=True)
    return [pytest.approx(list(row), abs=1e-9) for row in rows]


@pytest.mark.parametrize("of", ["frequency", "visitors"])
def test_windows_are_compared_per_category_with_their_published_values(age, of) -> None:
    found = by_windows(age, BUSY, CALM, of=of)
    first, second = windows.Window(1, 2), windows.Window(2, 4)
    assert numbers(found) == columns(window_difference(tallies_of(age), first=first, second=second, of=of))
    assert [row.category for row in found.rows] == age.categories
    ends = {"frequency": ("ci_low", "ci_high"), "visitors": ("visitors_ci_low", "visitors_ci_high")}[of]
    for window, side in ((BUSY, "value"), (CALM, "reference")):
        for row, estimate in zip(found.rows, queries.window_report(age, window).estimates, strict=True):
            shown = getattr(row, side)
            expected = [getattr(estimate, name) for name in (of, *ends)]
            assert [shown.value, shown.low, shown.high] == expected
    assert found.is_exact
    assert not by_windows(age, Window(1, 1), Window(4, 4)).is_exact  # windows apart are bounded
    back = by_windows(age, CALM, BUSY, of=of)  # the other way round is the negative
    for one, other in zip(found.rows, back.rows, strict=True):
        expected = [-other.difference, -other.high, -other.low]
        assert [one.difference, one.low, one.high] == pytest.approx(expected)


def test_verdicts_are_what_the_intervals_say() -> None:
    found = by_categories(factory.published(factory.MANY, epsilon="2").indicators.get(), WHOLE, 5)
    verdicts = {Verdict.HIGHER: 0, Verdict.LOWER: 0, Verdict.NOT_SHOWN: 0}
    for row in found.rows:
        expected = Verdict.HIGHER if row.low > 0 else Verdict.LOWER if row.high < 0 else Verdict.NOT_SHOWN
        assert row.alone == expected
        assert row.held in (row.alone, Verdict.NOT_SHOWN)
        verdicts[row.alone] += 1
    assert all(verdicts.values())
    assert 0 < found.n_held < found.n_alone
    assert found.largest.held != Verdict.NOT_SHOWN
    weakest = min((row for row in found.rows if row.held == row.alone != Verdict.NOT_SHOWN), key=span)
    assert all(span(row) < span(weakest) for row in found.rows if row.held != row.alone)


def span(row: compare.Row) -> float:
    return abs(row.difference) / (row.high - row.low)


@pytest.mark.parametrize("of", ["frequency", "visitors"])
def test_categories_share_their_reports(age, of) -> None:
    found = by_categories(age, BUSY, 1, of=of)
    sample = sample_of(tallies_of(age), windows.Window(2, 4))
    expected = columns(value_difference(sample, reference=1, of=of).estimate())
    assert numbers(found) == [expected[0], expected[2]]
    estimates = queries.window_report(age, BUSY).estimates
    assert {row.reference.value for row in found.rows} == {getattr(estimates[1], of)}
    assert [row.value.value for row in found.rows] == [getattr(estimates[code], of) for code in (0, 2)]
    alone = by_categories(age, WHOLE, 2, category=0)  # needs no correction
    assert ([row.category for row in alone.rows], alone.category) == (["<18"], "25 & older")
    assert alone.rows[0].held == alone.rows[0].alone == Verdict.HIGHER


def test_baseline_is_all_other_days_unless_chosen(age) -> None:
    found = by_baseline(age, 2)
    assert found.baseline == (1, 3, 4)
    contrast = day_difference(tallies_of(age), day=2, baseline=[1, 3, 4], of="frequency")
    assert numbers(found) == columns(contrast.estimate())
    assert not found.is_exact
    days = [queries.window_report(age, Window(day, day)).estimates for day in (1, 3, 4)]
    for code, row in enumerate(found.rows):
        assert row.reference.value == pytest.approx(sum(day[code].frequency for day in days) / 3)
        assert row.difference == pytest.approx(row.value.value - row.reference.value)
    assert by_baseline(age, 2, 2, 4, 9).baseline == (4,)
    before = by_baseline(age, 2, 1, of="visitors")
    assert before.is_exact
    assert numbers(before) == numbers(by_windows(age, Window(2, 2), Window(1, 1), of="visitors"))


def test_two_windows_have_one_test_of_all_categories(age) -> None:
    """It is that of the library, the same for shares and visitors, and in either order."""
    pieces, is_exact = windows.pieces_of(tallies_of(age), (CALM, BUSY), factors=(-1, 1), of="frequency")
    assert is_exact
    common = np.mean(
        [sample_of(tallies_of(age), each).estimates().consistent for each in (CALM, BUSY)], axis=0
    )
    expected = table_change([(pieces, tallies_of(age).channel)], common=common)
    for found in (by_windows(age, BUSY, CALM), by_windows(age, CALM, BUSY, of="visitors")):
        assert found.overall.p_value == pytest.approx(expected.p_value)
        assert found.overall.degrees == len(age.categories) - 1
        assert f"(p {formats.p_value(expected.p_value)})" in texts.overall_words(found.overall)
    assert by_categories(age, BUSY, 0).overall is None
    assert texts.overall_words(None) == ""
    for p_value, expected_text in (
        (0.0004, "the shares differ between the two date ranges (p < 0.001)"),
        (0.2, "no difference between the shares of the two date ranges was detected (p = 0.200)"),
    ):
        assert expected_text in texts.overall_words(replace(expected, p_value=p_value))


@pytest.mark.parametrize(
    ("indicators", "changes", "slug", "pair", "reason"),
    [
        ((factory.AGE,), {}, "age", (Window(1, 1), Window(3, 3)), NoTest.SHARED_PEOPLE),
        ((factory.STAY,), {}, "stay", (Window(1, 2), Window(2, 2)), NoTest.FIRST_DAYS),
        ((factory.AGE,), {"small_category": 600}, "age", (CALM, BUSY), NoTest.SMALL),
        ((factory.AGE,), {"small_cell": 500}, "age", (Window(1, 4), Window(1, 3)), NoTest.FEW),
    ],
)  # fmt: skip
def test_windows_whose_shared_people_are_unknown_have_no_test_and_say_why(
    indicators, changes, slug, pair, reason
) -> None:
    study = factory.published(*indicators, **changes)
    found = by_windows(study.indicators.get(slug=slug), *pair)
    assert found.overall == reason
    assert texts.overall_words(found.overall).startswith("No test of all categories together")
    assert len(texts.overall_words(found.overall)) > 60


@pytest.mark.parametrize("mechanism", ["smp-oue", "rsfd-grr", "rsfd-ouez"])
def test_bits_and_made_up_reports_have_a_test_too(mechanism) -> None:
    study = factory.published(factory.AGE, factory.GENDER, mechanism=mechanism)
    assert by_windows(study.indicators.get(slug="age"), CALM, BUSY).overall.degrees == 2


def test_windows_of_a_daily_indicator_that_begin_together_have_a_test() -> None:
    stay = factory.published(factory.STAY).indicators.get()
    assert by_windows(stay, WHOLE, CALM).overall.degrees == 1


def test_pages_files_and_programs_tell_the_test_of_a_table(reader) -> None:
    study = factory.published(factory.GENDER, factory.AGE, factory.BOTH, epsilon="2", n=12_000)
    expected = by_windows(study.indicators.get(slug="both"), CALM, BUSY)
    days = "from=2024-05-30&to=2024-05-31&with_from=2024-05-31&with_to=2024-06-02"
    address = "/studies/fair-2024/both/compare"
    page = words(reader.get(f"{address}/?kind=windows&{days}"))
    assert texts.overall_words(expected.overall) in page and "chi-square test of the shares" in page
    apart = words(reader.get(f"{address}/?kind=windows&from=2024-05-30&to=2024-05-30&with_from=2024-06-01"))
    assert "Choose date ranges that overlap or that follow each other" in apart and "chi-square" not in apart
    rows = csv_rows(reader.get(f"{address}.csv?kind=windows&{days}"))
    (in_file,) = {float(row["overall_p_value"]) for row in rows}
    assert in_file == pytest.approx(expected.overall.p_value)
    found = reader.get(f"/api/v1/studies/fair-2024/indicators/both/change?{days}").json()
    assert (found["degrees"], found["p_value"]) == (15, pytest.approx(expected.overall.p_value))
    assert found["differs"] == (found["p_value"] < 0.05) and found["reference_first_day"] == "2024-05-31"
    check_document(reader, "/api/v1/studies/{study}/indicators/{indicator}/change", answer=found)
    same = reader.get("/api/v1/studies/fair-2024/indicators/both/change?from=2024-05-30")
    assert same.status_code == 422
    table = reader.get(
        "/studies/fair-2024/crosstab/?indicator=both&from=2024-05-30&to=2024-05-31"
    ).content.decode()
    assert "/both/compare/?kind=windows&amp;from=2024-05-30&amp;to=2024-05-31" in table


def test_the_page_opens_with_two_days_and_each_other_day_is_one_press_away(reader) -> None:
    factory.published(gap=4)
    page = "/studies/fair-2024/gender/compare/"

    def sides(query: str) -> list[list[str]]:
        html = reader.get(f"{page}{query}").content.decode().replace("&amp;", "&")
        found = re.findall(r'aria-labelledby="side-\d">.*?</nav>', html, re.DOTALL)
        return [re.findall(r'href="([^"]+)" title="([^"]+)"( aria-current="true")?', each) for each in found]

    def chosen(query: str) -> list[str]:
        return [title for side in sides(query) for _, title, is_current in side if is_current]

    first, last = "Thu 30 May 2024", "Sat 1 Jun 2024"  # the last one has no visitors
    assert chosen("") == chosen("?from=2024-05-30&to=2024-06-02") == [last, first]
    assert chosen("?from=2024-05-31") == ["Fri 31 May 2024", first]
    assert chosen("?from=2024-05-30") == [first, last]
    assert chosen("?from=2024-05-30&to=2024-05-31") == []  # ranges have a form
    assert chosen("?to=2024-05-30") == [first, last]
    one, other = sides("")
    assert [len(one), len(other)] == [3, 3]  # no day is compared with itself
    for query, is_said in (
        ("?from=2024-05-30&to=2024-06-02", True),
        ("?from=2024-06-02&to=2024-05-30", True),
        ("?from=2024-06-01&to=2024-05-31", False),
        ("", False),
        ("?from=2024-05-31", False),
    ):
        assert ("You chose all days of the study" in words(reader.get(f"{page}{query}"))) is is_said
    (friday,) = [link for link, title, _ in one if title == "Fri 31 May 2024"]
    assert chosen(friday) == ["Fri 31 May 2024", first]
    assert "Fri 31 May 2024 compared with Thu 30 May 2024" in words(reader.get(f"{page}{friday}"))


@pytest.mark.parametrize(
    ("asked", "kept"),
    [
        ("kind=windows&measure=visitors&from=2024-05-30&to=2024-05-31&with_from=2024-06-01&with_to=2024-06-02", None),
        ("from=2024-05-31", "kind=windows&measure=frequency&from=2024-05-31&to=2024-05-31&with_from=2024-05-30&with_to=2024-05-30"),
        ("kind=categories&measure=visitors&from=2024-05-31&to=2024-05-31&reference=1", "kind=categories&measure=visitors&from=2024-05-31&to=2024-05-31"),
    ],
)  # fmt: skip
def test_another_indicator_is_compared_on_the_same_days(reader, age, asked, kept) -> None:
    page = (
        reader.get(f"/studies/{age.study.slug}/age/compare/?{asked}").content.decode().replace("&amp;", "&")
    )
    other = f"/studies/{age.study.slug}/gender/compare/?{kept or asked}"
    assert f'href="{other}"' in page
    assert reader.get(other).status_code == 200


def test_the_totals_are_compared_above_the_verdict_and_are_exact(reader) -> None:
    study = factory.published(n=900)
    found = by_windows(study.indicators.get(slug="gender"), BUSY, CALM)
    now, then = found.report.n_visitors, found.reference.n_visitors
    share = f"{formats.MINUS if now < then else '+'}{abs(now / then - 1):.1%}"
    word = "more" if now > then else "fewer"
    said = texts.total_words(found)
    assert said.startswith(f"{abs(now - then):,} {word} visitors in total ({share}): {now:,} (")
    days = "from=2024-05-31&to=2024-06-02&with_from=2024-05-30&with_to=2024-05-31"
    page = words(reader.get(f"/studies/fair-2024/gender/compare/?{days}"))
    assert page.index(said) < page.index(texts.summary(found))
    assert "Values are unbiased" in page
    turned = texts.total_words(by_windows(study.indicators.get(slug="gender"), CALM, BUSY))
    assert f"{abs(now - then):,} {'fewer' if word == 'more' else 'more'} visitors in total" in turned
    same = replace(found, reference=replace(found.reference, n_visitors=now))
    assert texts.total_words(same).startswith(f"The total number of visitors is the same: {now:,}")
    assert texts.total_words(by_categories(study.indicators.get(slug="gender"), CALM, 0)) == ""


def test_totals_of_a_range_within_another_do_not_tell_of_few_people() -> None:
    study = factory.create(slug="few", days=3, small_cell=10)
    factory.publish(study, factory.of_days(study, {0b011: 50, 0b110: 50, 0b100: 3}))
    gender = study.indicators.get(slug="gender")
    apart, within = (by_windows(gender, Window(1, 3), Window(*days)) for days in ((3, 3), (1, 2)))
    assert texts.total_words(apart).startswith("50 more visitors in total")
    assert texts.total_words(within) == ""  # 3 of them


def test_baseline_leaves_out_days_without_numbers() -> None:
    gender = factory.published(gap=3).indicators.get(slug="gender")
    found = by_baseline(gender, 1)
    assert (found.baseline, found.left_out) == ((2, 4), (3,))
    assert refused(by_baseline, gender, 1, 3).reason == Reason.NO_BASELINE
    blank = refused(by_baseline, gender, 3)
    assert (blank.reason, blank.report.window) == (Reason.BLANK, Window(3, 3))


def test_visitors_are_scaled_to_the_population() -> None:
    def differences(share: str, slug: str) -> list[Comparison]:
        age = factory.published(slug=slug, market_share=Decimal(share)).indicators.get(slug="age")
        calls = [(by_windows, BUSY, CALM), (by_categories, BUSY, 0), (by_baseline, 1)]
        return [call(age, *args, of="visitors") for call, *args in calls]

    for whole, half in zip(differences("1", "all"), differences("0.5", "half"), strict=True):
        for one, two in zip(whole.rows, half.rows, strict=True):
            scaled = [one.difference, one.low, one.high, one.value.value, one.reference.value]
            found = [two.difference, two.low, two.high, two.value.value, two.reference.value]
            assert found == pytest.approx([2 * each for each in scaled])
            assert two.alone == one.alone


def second_study(*categories: str, **changes: Any) -> Indicator:
    changes = {"slug": "fair-2025", "first_day": date(2025, 5, 29)} | changes
    made = factory.create(factory.indicator("band", *categories), **changes)
    factory.publish(made, factory.crowd(made, seed=2), key=bytes(15) + b"\1")
    return made.indicators.get()


def test_studies_are_compared_by_the_names_of_categories(age) -> None:
    band = second_study("25 & older", "<18", "18-24", market_share=Decimal("0.25"))
    found = compare.compare_studies(age, BUSY, other=band, other_window=CALM, of="visitors")
    here, there = queries.window_report(age, BUSY), queries.window_report(band, CALM)
    theirs = {estimate.category: estimate for estimate in there.estimates}
    for row, estimate in zip(found.rows, here.estimates, strict=True):
        other = theirs[row.category]
        assert (row.category, row.reference.value) == (estimate.category, other.visitors)
        assert row.difference == pytest.approx(estimate.visitors - other.visitors)
        width = (estimate.visitors - estimate.visitors_ci_low) ** 2
        width += (other.visitors_ci_high - other.visitors) ** 2
        assert row.low == pytest.approx(row.difference - width**0.5)
    assert found.is_exact


def test_indicators_with_the_same_categories_are_offered_and_others_or_the_same_days_refused(age) -> None:
    studies = Study.objects.all()
    other = second_study("<18", "18-24", "older")
    assert compare.comparable_indicators(age, among=studies) == []
    found = refused(compare.compare_studies, age, BUSY, other=other, other_window=CALM, of="frequency")
    assert found.reason == Reason.OTHER_CATEGORIES
    band = second_study("25 & older", "<18", "18-24", slug="fair-2026")
    assert compare.comparable_indicators(age, among=studies) == [band]
    assert compare.comparable_indicators(age.study.indicators.get(slug="gender"), among=studies) == []
    assert refused(by_windows, age, BUSY, BUSY).reason == Reason.SAME_WINDOWS
    assert refused(by_categories, age, BUSY, 1, category=1).reason == Reason.SAME_CATEGORIES


def test_suppressed_window_is_not_compared() -> None:
    study = factory.create(days=4)
    people = factory.absent_on(factory.crowd(study), day=3)
    people.bitmaps[:5] = 4  # five people on the third day
    factory.publish(study, people)
    Study.objects.update(small_cell=10)
    gender, day = Indicator.objects.get(slug="gender"), Window(3, 3)
    for call, *args in ((by_windows, CALM, day), (by_categories, day, 0), (by_baseline, 3)):
        found = refused(call, gender, *args, of="visitors")
        assert (found.reason, found.report.status) == (Reason.BLANK, "suppressed")
    assert by_baseline(gender, 1, of="visitors").left_out == (3,)


@pytest.fixture
def few() -> Indicator:
    gender = factory.published(n=400).indicators.get(slug="gender")
    day, window = (queries.window_report(gender, each) for each in (Window(1, 1), Window(1, 4)))
    assert (day.status, window.status) == (Status.NOT_RELIABLE, Status.OK)
    return gender


def not_judged(found: Comparison) -> bool:
    verdicts = {verdict for row in found.rows for verdict in (row.alone, row.held)}
    return found.status == Status.NOT_RELIABLE and verdicts == {Verdict.NOT_SHOWN}


def test_a_difference_is_as_reliable_as_both_of_its_sides(few, monkeypatch) -> None:
    # Even where an interval leaves out 0.
    monkeypatch.setattr(compare, "excludes_zero", lambda found: np.ones(found.value.size, np.bool_))
    monkeypatch.setattr(compare, "holm", lambda _, rows, **__: np.ones(rows.size, np.bool_))
    day = Window(1, 1)
    for first, second in ((day, WHOLE), (WHOLE, day)):
        found = by_windows(few, first, second)
        assert not_judged(found)
        assert all(row.low < row.difference < row.high for row in found.rows)
    assert not_judged(by_categories(few, day, 0, of="visitors"))
    both = by_windows(few, WHOLE, BUSY)
    assert (both.status, both.n_held) == (Status.OK, 3)


@pytest.mark.parametrize("of", ["frequency", "visitors"])
def test_the_mean_of_a_baseline_is_judged_by_its_own_intervals(few, of) -> None:
    days = [queries.window_report(few, Window(day, day)).status for day in range(1, 5)]
    assert days == [Status.NOT_RELIABLE] * 4
    mean, single = by_baseline(few, 1, of=of), by_baseline(few, 1, 3, of=of)
    assert {row.reference.status for row in mean.rows} == {Status.OK}
    assert not_judged(mean)  # the day itself is not reliable
    assert {row.reference.status for row in single.rows} == {Status.NOT_RELIABLE}


NONE = (Verdict.NOT_SHOWN, Verdict.NOT_SHOWN)
HIGHER, LOWER, NOT_SHOWN = Verdict.HIGHER, Verdict.LOWER, Verdict.NOT_SHOWN


@pytest.fixture
def comparison(fair) -> Comparison:
    found = by_windows(fair.indicators.get(slug="gender"), Window(2, 2), Window(1, 1))
    numbers = [(0.041, 0.012, 0.07), (-0.02, -0.05, -0.001), (0.0004, -0.02, 0.02)]
    told = [{"difference": each[0], "low": each[1], "high": each[2]} for each in numbers]
    return replace(found, rows=tuple(map(lambda row, each: replace(row, **each), found.rows, told)))


@pytest.fixture
def drawn(fair) -> Comparison:
    found = by_windows(fair.indicators.get(slug="age"), BUSY, CALM)
    return judged(found, (HIGHER, HIGHER), (LOWER, NOT_SHOWN), NONE)


def judged(comparison: Comparison, *verdicts: tuple[Verdict, Verdict]) -> Comparison:
    rows = zip(comparison.rows, verdicts, strict=True)
    return replace(comparison, rows=tuple(replace(row, alone=one, held=held) for row, (one, held) in rows))


def test_differences_have_a_sign_and_a_unit(comparison) -> None:
    shares = [texts.change(row, "frequency") for row in comparison.rows]
    assert shares == ["+4.1 points", "\u22122.0 points", "0.0 points"]
    assert texts.change_range(comparison.rows[0], "frequency") == "+1.2 to +7.0"
    people = replace(comparison.rows[0], difference=-1234.4, low=-2000.0, high=0.3)
    assert texts.change(people, "visitors") == "\u22121,234 visitors"
    assert texts.change_range(people, "visitors") == "\u22122,000 to 0"
    with translation.override("fr"):
        assert texts.change(comparison.rows[0], "frequency").startswith("+4,1")


def test_the_verdict_is_one_sentence_with_its_test_and_names_the_largest_difference_that_holds(
    comparison,
) -> None:
    together = replace(comparison.overall, p_value=0.0312)
    for verdicts, overall, text in (
        ([(HIGHER, HIGHER), (LOWER, LOWER), NONE], together, "2 of 3 categories differ (5% level, Holm test), most of all F: +4.1 points (95% interval +1.2 to +7.0)."),
        ([(HIGHER, NOT_SHOWN), (LOWER, LOWER), NONE], None, "1 of 3 categories differs (5% level, Holm test): M, by \u22122.0 points (95% interval \u22125.0 to \u22120.1)."),
        ([(HIGHER, NOT_SHOWN), NONE, NONE], None, "No difference was detected in any of the 3 categories (5% level, Holm test), but the noise may hide one."),
        ([NONE] * 3, NoTest.FEW, "No difference was detected in any of the 3 categories (5% level, Holm test), but the noise may hide one."),
        ([NONE] * 3, together, "The shares differ when all categories are tested together (chi-square test, p = 0.031), but no single one of the 3 categories is shown to differ (5% level, Holm test)."),
    ):  # fmt: skip
        assert texts.summary(replace(judged(comparison, *verdicts), overall=overall)) == text
    one = replace(comparison, rows=comparison.rows[:1])
    assert (
        texts.summary(one)
        == "No difference was detected (5% level): +4.1 points (95% interval +1.2 to +7.0)."
    )
    assert texts.summary(judged(one, (HIGHER, HIGHER))).startswith(
        "F: a difference was detected (5% level), +4.1"
    )


def test_other_windows_are_proposed_if_they_would_tell_the_observed_difference(fair) -> None:
    found = by_windows(fair.indicators.get(slug="gender"), Window(1, 1), Window(4, 4))
    found = judged(found, NONE, NONE, NONE)

    def proposed(*shares: float) -> Proposal:
        changed = (
            each._replace(frequency=each.frequency + by)
            for each, by in zip(found.reference.estimates, shares, strict=True)
        )
        observed = replace(found, report=replace(found.report, estimates=tuple(changed)))
        return better_windows(observed)

    large, small = proposed(0.01, -0.3, 0.1), proposed(0.002, -0.003, 0.001)
    error = by_windows(found.report.indicator, *large.windows).rows[1].std_error
    assert large.windows == (Window(1, 2), Window(3, 4)) and large.tells and large.category == "M"
    assert large.smallest == pytest.approx((2.39398 + 0.84162) * error, rel=1e-4)  # z(1 - 0.05 / 6), z(0.8)
    assert not small.tells and small.smallest > 0.003
    assert texts.proposal_words(large).startswith(
        "To see if M really differs (by 30.0 points here), compare Thu"
    )
    assert "is too small to be detected on dates near these" in texts.proposal_words(small)
    assert better_windows(judged(found, (HIGHER, HIGHER), NONE, NONE)) is None


@pytest.mark.parametrize(("n", "is_found"), [(200, False), (450, True)])
def test_reliable_windows_are_proposed_without_a_difference_that_is_not_shown(n, is_found) -> None:
    gender = factory.published(n=n).indicators.get(slug="gender")
    found = by_windows(gender, Window(1, 1), Window(4, 4))
    proposed = better_windows(found)
    assert found.status == Status.NOT_RELIABLE and (proposed is not None) is is_found
    if proposed is not None:
        assert proposed.observed is None and proposed.tells
        sides = [by_windows(gender, *proposed.windows)]
        assert {each.status for each in sides} == {Status.OK}
        assert "A difference of 25.1 points or more in any category" in texts.proposal_words(proposed)


def test_the_page_answers_first_and_folds_what_is_undecided(reader) -> None:
    factory.published(n=900)
    page = reader.get(
        "/studies/fair-2024/age/compare/?from=2024-05-31&to=2024-05-31&with_from=2024-05-30"
    ).content.decode()
    main = page[page.index('id="result-title"') :]
    assert main.index('id="total"') < main.index('id="verdict"')
    main = main[main.index('id="verdict"') :]
    assert "<strong>" in main[: main.index("</p>")] and main.count("<strong>No difference") == 1
    folded = main[main.index("<details>") : main.index("</details>")]
    assert 'data-figure="undecided-figure"' in folded and folded.count("<tr>") == 4
    assert "data-figure" not in main[: main.index("<details>")] and "<details open" not in main
    chooser = page[page.index('class="menu__panel stack"') :]
    assert (
        page.index('<summary class="button">Change what is compared')
        < page.index('id="with_from"')
        < page.index('id="result-title"')
    )
    assert 'aria-labelledby="side-1"' in chooser


@pytest.mark.parametrize(("of", "scale"), [("frequency", 100), ("visitors", 1)])
def test_dots_and_whiskers_are_the_differences(drawn, of, scale) -> None:
    figure = charts_compare.comparison_figure(replace(drawn, of=of))
    first, last = figure["layout"]["xaxis"]["range"]
    for place, (trace, row) in enumerate(zip(figure["data"], drawn.rows, strict=True)):
        assert (trace["y"], trace["x"]) == ([place], [pytest.approx(scale * row.difference, abs=0.06)])
        high = trace["x"][0] + trace["error_x"]["array"][0]
        low = trace["x"][0] - trace["error_x"]["arrayminus"][0]
        assert [low, high] == pytest.approx([scale * row.low, scale * row.high], abs=0.12)
        assert first < min(low, 0) <= max(high, 0) < last


def test_findings_differ_by_shape_and_name_and_have_no_other_name_in_the_legend(drawn) -> None:
    blank = charts_compare.comparison_figure(
        replace(
            drawn,
            rows=tuple(
                replace(row, value=replace(row.value, status=Status.NOT_RELIABLE)) for row in drawn.rows
            ),
        )
    )
    (trace,) = blank["data"]
    assert (trace["name"], trace["marker"]["color"]) == ("not reliable", "--muted")
    words = ["difference detected", "difference detected only before adjustment", "no difference detected"]
    for n in (3, 1):
        figure = charts_compare.comparison_figure(replace(drawn, rows=drawn.rows[:n]))
        assert [trace["name"] for trace in figure["data"]] == words[:n]
        assert len({trace["marker"]["symbol"] for trace in figure["data"]}) == n
    assert figure["layout"]["showlegend"] is False


def test_texts_are_safe_and_colours_are_those_of_the_style_sheet(drawn) -> None:
    figure = charts_compare.comparison_figure(drawn)
    assert figure["layout"]["yaxis"]["ticktext"] == ["&lt;18", "18-24", "25 &amp; older"]
    assert json.loads(json.dumps(figure, allow_nan=False)) == figure
    for text in strings(figure):
        assert not re.search(r"<(?!br>)", text)
        if text.startswith("--"):
            assert len(re.findall(rf"{text}: #[0-9a-f]{{6}};", STYLES)) >= 2, text
    hovers = [text for trace in figure["data"] for text in trace["hovertext"]]
    assert all(re.search(rf"<br>[+{formats.MINUS}]?\d+\.\d points \(.* to .*\)<br>", text) for text in hovers)
