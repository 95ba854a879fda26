"""Two plans side by side: what they reveal, and the error to expect."""

from dataclasses import replace
from decimal import Decimal
from math import sqrt
from pathlib import Path

import pytest

from reports.plan_effects import plan_effects
from reports.studyfile import StudyDefinition, parse_study

DEMO = Path(__file__).parents[2] / "mobility" / "demo"


@pytest.fixture(scope="module")
def demo() -> StudyDefinition:
    text = (DEMO / "study.toml").read_bytes()
    return parse_study(text, filename="study.toml", read=lambda name: (DEMO / name).read_bytes())


def halved(demo: StudyDefinition) -> StudyDefinition:
    return replace(demo, plan=replace(demo.plan, epsilon=Decimal("0.5")))


def test_half_of_epsilon_keeps_fewer_answers_and_widens_intervals(demo: StudyDefinition) -> None:
    found = plan_effects(demo, halved(demo), visitors=10_000)
    assert found.before is not None
    assert (found.before.epsilon_attribute, found.after.epsilon_attribute) == (
        pytest.approx(Decimal(1)),
        pytest.approx(Decimal("0.5")),
    )
    gender = next(row for row in found.rows if row.slug == "gender")
    assert gender.before is not None
    assert gender.after is not None
    # Of three categories: p = e / (e + 2) before.
    assert (gender.before.kept_of_100, gender.after.kept_of_100) == (58, 45)
    assert gender.before.half_width < gender.after.half_width
    # 1.96 sqrt((q(1-q) + f(p-q)(1-p-q)) / (n (p-q)^2) + f(1-f)/n (N-n)/(N-1)) at n = 10000 / 7, f = 1/3
    p, q, n, f = 0.57611688, 0.21194156, 10_000 / 7, 1 / 3
    noise = (q * (1 - q) + f * (p - q) * (1 - p - q)) / (n * (p - q) ** 2)
    sample = f * (1 - f) / n * (10_000 - n) / 9_999
    assert gender.before.half_width == pytest.approx(1.959964 * sqrt(noise + sample), rel=1e-5)


def test_more_visitors_narrow_the_interval(demo: StudyDefinition) -> None:
    few, many = (plan_effects(None, demo, visitors=n).rows[0].after for n in (1_000, 100_000))
    assert few is not None
    assert many is not None
    assert few.half_width == pytest.approx(10 * many.half_width, rel=0.01)


def test_what_is_new_or_gone_stands_alone(demo: StudyDefinition) -> None:
    fewer = replace(demo, indicators=demo.indicators[1:])
    gone = plan_effects(demo, fewer, visitors=10_000).rows[-1]
    assert (gone.slug, gone.after) == (demo.indicators[0].slug, None)
    new = plan_effects(fewer, demo, visitors=10_000).rows[0]
    assert (new.slug, new.before) == (demo.indicators[0].slug, None)


def test_a_new_study_has_no_before(demo: StudyDefinition) -> None:
    found = plan_effects(None, demo, visitors=10_000)
    assert found.before is None
    assert all(row.before is None and row.after is not None for row in found.rows)


def test_the_same_plan_has_the_same_effects(demo: StudyDefinition) -> None:
    assert all(row.is_same for row in plan_effects(demo, demo, visitors=10_000).rows)
