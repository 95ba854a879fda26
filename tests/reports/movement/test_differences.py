"""Movements: which rows differ from the others, said first; values that fit their totals."""

import re
from dataclasses import replace

import numpy as np
import pytest

from ldp import NoReportsError, Window
from ldp.estimation.movement import new_part
from ldp.estimation.windows import part_of, parts_difference
from reports.estimates.queries import reports_with_tallies
from reports.movement import texts
from reports.movement.figures import Show
from reports.movement.queries import consistent, movement
from reports.studies.models import Indicator
from tests.reports import report_factory as factory
from tests.reports.page_texts import data_of, words

pytestmark = pytest.mark.django_db


def planted(*, differs: bool = True, n: int = 3000, epsilon: str = "3") -> Indicator:
    """People of the days 1 and 2, then as many of 2 and 3; if they differ, each have their own value."""
    study = factory.create(factory.GENDER, epsilon=epsilon)
    people = factory.of_days(study, {0b0011: n, 0b0110: n})
    codes = np.repeat([0, 1], n) if differs else np.tile([0, 1], n)
    factory.publish(study, replace(people, static={"gender": codes.astype(np.int32)}))
    return study.indicators.get()


@pytest.mark.parametrize(
    ("show", "signs"),
    [(Show.ARRIVALS, "-+"), (Show.RETURNING, "+-"), (Show.DEPARTURES, "+-"), (Show.WINDOW, "-+")],
)
def test_who_comes_or_leaves_is_compared_with_the_others_of_the_day(show, signs) -> None:
    found = movement(planted(), show=show)
    differing = {(found.points[each.place].day, each.code): each.value for each in found.findings.differences}
    # On day 2 half of the visitors come, all of one value, and the others leave.
    expected = {(2, code): float(f"{sign}1") for code, sign in enumerate(signs)}
    assert differing == pytest.approx(expected, abs=0.1)
    assert found.findings.proposal is None
    assert texts.verdict(found).startswith(
        "New and returning visitors differ in 2 of 3 categories" if show == Show.WINDOW else "2 of "
    )


@pytest.mark.parametrize("show", Show)
def test_nothing_is_found_where_all_are_alike(show) -> None:
    found = movement(planted(differs=False), show=show)
    assert found.findings is None or found.findings.differences == ()
    assert found.findings is None or re.search(r"not shown|shown to differ", texts.verdict(found))


def test_intervals_are_exact_and_hold_for_all_rows_at_once() -> None:
    gender = planted()
    found = movement(gender, show=Show.WINDOW)
    [(_, tallies)] = reports_with_tallies([gender], [[]])
    window = Window(*found.window)
    new = new_part(tallies, window, since=1)
    parts = (part_of(tallies, window).minus(new), new)
    expected = parts_difference(tallies, parts=parts, level=1 - 0.05 / 3)
    for each in found.findings.differences:
        assert (each.low, each.high) == (expected.ci_low[each.code], expected.ci_high[each.code])
    shares = [part.counts / part.n_reports for part in parts]
    assert np.sign(expected.value[:2]).tolist() == np.sign(shares[1] - shares[0])[:2].tolist()
    with pytest.raises(NoReportsError):
        parts_difference(tallies, parts=(new, new.minus(new)), level=0.95)


def test_the_number_of_tests_is_that_of_all_rows(fair) -> None:
    found = movement(fair.indicators.get(slug="age"), show=Show.ARRIVALS)
    read = [point.status == point.estimates[0].status == "ok" for point in found.points]
    assert found.findings.n_tests == 3 * sum(read[1:]) > 3  # the first day has no other visitors


@pytest.mark.parametrize("n", [100, 3000])
def test_days_are_proposed_if_they_would_tell(n) -> None:
    found = movement(planted(differs=False, n=n, epsilon="1"), show=Show.RETURNING)
    proposal = found.findings.proposal
    assert proposal is not None and proposal.window.first_day >= 2
    assert proposal.tells == (proposal.observed >= proposal.smallest)
    sentence = texts.proposal_words(found)
    assert sentence.startswith("To see if ") == proposal.tells
    certain = replace(found, findings=replace(found.findings, proposal=replace(proposal, observed=1.0)))
    assert "really differs (by 100.0 points here)" in texts.proposal_words(certain)


def test_the_page_shows_values_that_fit_and_unbiased_ones_on_request(reader) -> None:
    gender = planted(n=2000, epsilon="1")
    raw = movement(gender, show=Show.ARRIVALS)
    assert min(each.value for point in raw.points for each in point.estimates if each.value is not None) < 0
    for point in consistent(raw).points:
        values = [each.value for each in point.estimates if each.value is not None]
        assert all(value >= 0 for value in values)
        assert not values or sum(values) == pytest.approx(point.low, abs=1e-6)
    address = "/studies/fair-2024/gender/movement/?show=arrivals"
    least = []
    for more in ("", "&values=unbiased"):
        traces = data_of(reader.get(f"{address}{more}").content.decode(), "figure")["data"]
        least.append(min(y for trace in traces for y in trace["y"] if y is not None))
    assert least[0] >= 0 > least[1]


@pytest.mark.parametrize("differs", [True, False])
def test_the_page_answers_first_and_folds_the_rest(reader, differs) -> None:
    planted(differs=differs)
    answer = reader.get("/studies/fair-2024/gender/movement/")
    page = answer.content.decode()
    verdict = texts.verdict(answer.context["found"])
    assert verdict in words(answer)
    assert (
        page.index('id="verdict"') < page.index('aria-label="Figures"') < page.index('data-figure="figure"')
    )
    assert ('id="differing"' in page) is differs
    folded = page[page.index('<details id="undecided">') : page.index('id="totals-title"')]
    assert ('data-figure="figure"' in folded) is not differs and "<tfoot>" in folded
