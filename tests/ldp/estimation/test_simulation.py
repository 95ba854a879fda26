"""Forecasts: against the formulas, against comparisons of simulated days, and against each other."""

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from math import sqrt
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ldp
from ldp.estimation import simulation
from ldp.estimation.contrasts import Sample, independent_difference
from ldp.estimation.error_curves import ErrorCurve, error_curve
from ldp.estimation.noisy_estimators import UnionNoise, noisy_frequencies
from ldp.privacy.plans import Kind, Mechanism
from ldp.protocols.channels import Unit
from tests.ldp.exact import make_plan, refuses, requests_of

INDICATORS: list[tuple[Kind, int]] = [("static", 3), ("static", 12), ("daily", 5)]
LEAST = simulation.LEAST_EPSILON
CROWD = simulation.Crowd(visitors=20_000, days_present=2.5)
ONE_DAY = simulation.Crowd(visitors=20_000)
frequencies = st.floats(0, 1)


@given(f=frequencies, mechanism=st.sampled_from(get_args(Mechanism)), share=st.sampled_from([0.2, 1.0]))
def test_curve_is_the_exact_variance(f: float, mechanism: str, share: float) -> None:
    plan = make_plan(*INDICATORS, mechanism=mechanism)
    for index in range(plan.d):
        channel = plan.channel(index)
        curve = error_curve(channel, n_reports=share * 5000, n_visitors=5000)
        exact = ldp.pure_variance(f, n_reports=share * 5000, n_population=5000, channel=channel)
        assert curve.variance(f) == pytest.approx(float(exact), rel=1e-9)
        assert curve.half_width(f) == pytest.approx(1.959964 * sqrt(float(exact)), rel=1e-6)


@given(noise=st.floats(1e-6, 1), slope=st.floats(0, 1), share=st.sampled_from([-2.0, 0.0, 1e-5, 0.1, 20.0]))
def test_no_frequency_has_a_larger_error_than_the_worst(noise: float, slope: float, share: float) -> None:
    shape = {"noise": noise, "slope": slope, "bend": share * noise, "sampling": max(share, 0.0) * noise}
    curve = ErrorCurve(n_visitors=100, n_reports=10, **shape)
    widths = [curve.half_width(f) for f in np.linspace(0, 1, 201)]
    assert max(widths) <= curve.worst_half_width * (1 + 1e-12)
    assert curve.worst_half_width <= max(widths) * 1.01


def test_a_union_has_the_different_visitors_of_all_days() -> None:
    (found,) = simulation.forecast(make_plan(("static", 3)), crowd=CROWD)
    assert found.union.n_visitors == pytest.approx(7 * 20_000 / 2.5)
    assert found.union.half_width(0) == pytest.approx(found.day.half_width(0) * sqrt(2.5 / 7))


def test_a_cap_of_days_leaves_fewer_answers_and_no_union() -> None:
    plan = make_plan(("static", 3), ("daily", 5), max_values=2)
    _, daily = simulation.forecast(plan, crowd=CROWD)
    assert daily.union is None
    assert daily.day.n_reports == pytest.approx(20_000 / 2 * 2 / 7)
    assert not simulation.has_union(plan, 1)


def test_weights_say_how_many_answer() -> None:
    plan = replace(make_plan(("static", 3), ("static", 3)), shares=(3 * 2**62, 2**62))
    assert [float(simulation.reporting_share(plan, i)) for i in range(2)] == pytest.approx([0.75, 0.25])


class TestPresenceNoise:
    @pytest.fixture
    def plan(self) -> ldp.PlanSpec:
        return make_plan(*[("static", 6)] * 2, presence_epsilon=Decimal("0.5"), presence_days=7)

    def test_it_widens_as_published_intervals_are(self, plan: ldp.PlanSpec) -> None:
        found, _ = simulation.forecast(plan, crowd=simulation.Crowd(visitors=2000))
        noise = plan.answer_noise
        channel = plan.channel(0)
        assert isinstance(channel, ldp.GrrChannel)
        n = round(found.day.n_reports)
        p, q = float(channel.p), float(channel.q)
        f = np.array([0.5, 0.3, 0.1, 0.05, 0.05, 0])
        counts = np.rint(n * (q + (p - q) * f)).astype(np.int64)
        noise = UnionNoise(channel=noise.channel, n_cells=7)
        estimates = noisy_frequencies(counts, n_visitors=2000, noise=noise, channel=channel)
        for value, error in zip(estimates.frequency, estimates.std_error, strict=True):
            assert sqrt(found.day.variance(min(max(value, 0.0), 1.0))) == pytest.approx(error, rel=1e-3)

    def test_totals_have_an_error(self, plan: ldp.PlanSpec) -> None:
        # Seven cells, each with noise of a person's seven days: sd sqrt(7) x 19.8 (privacy_math.md G).
        assert simulation.visitors_error(plan) == pytest.approx(1.97 * 7**0.5 * 19.8, rel=0.03)
        assert simulation.visitors_error(make_plan(("static", 6))) == 0

    def test_it_is_for_codes_only(self, plan: ldp.PlanSpec) -> None:
        noise = UnionNoise(channel=plan.answer_noise.channel, n_cells=1)
        bits = make_plan(("static", 6), mechanism="smp-oue").channel(0)
        refuses("channel must be GRR", error_curve, bits, n_reports=10, n_visitors=10, noise=noise)


class TestDifference:
    @pytest.mark.parametrize("mechanism", ["smp-oue", "rsfd-grr"])
    def test_it_is_found_in_80_of_100_comparisons(self, mechanism: str) -> None:
        plan = make_plan(("static", 6), ("static", 4), mechanism=mechanism)
        (found, _), channel = simulation.forecast(plan, crowd=CROWD), plan.channel(0)
        rise, n = found.difference, round(found.day.n_reports)
        rng = np.random.default_rng(5)
        n_runs, n_found = 700, 0
        true = [found.even, found.even + rise]
        for _ in range(n_runs):
            samples = []
            for f in true:
                having = rng.hypergeometric(round(f * 20_000), round((1 - f) * 20_000), n)
                supports = rng.binomial(having, float(channel.p)) + rng.binomial(n - having, float(channel.q))
                counts = np.zeros(6, np.int64)
                counts[0] = supports
                samples.append(Sample(counts=counts, n_reports=n, n_population=20_000, channel=channel))
            compared = independent_difference(*samples, of="frequency").estimate()
            n_found += int(compared.ci_low[0] > 0)
        assert abs(n_found / n_runs - 0.8) < 4 * sqrt(0.8 * 0.2 / n_runs)

    def test_people_who_may_come_on_both_days_make_it_larger_if_values_change(self) -> None:
        static, _, daily = simulation.forecast(make_plan(*INDICATORS), crowd=CROWD)
        assert static.difference_shared == static.difference
        assert daily.difference < daily.difference_shared < 1.5 * daily.difference

    @given(f=st.floats(0, 0.9), n=st.floats(300, 1e6), share=st.floats(0.05, 1))
    def test_it_solves_its_equation(self, f: float, n: float, share: float) -> None:
        curve = error_curve(make_plan(("static", 4)).channel(0), n_reports=share * n, n_visitors=n)
        rise = curve.smallest_difference(f)
        error = sqrt(curve.variance(f) + curve.variance(f + (rise or 1 - f)))
        if rise is None:
            assert (1.959964 + 0.841621) * error >= (1 - f) * (1 - 1e-6)
        else:
            assert rise == pytest.approx((1.959964 + 0.841621) * error, rel=1e-5)


class TestEpsilonForPlan:
    @pytest.fixture
    def plan_at(self) -> Callable[[Decimal], ldp.PlanSpec]:
        return lambda epsilon: make_plan(*INDICATORS, epsilon=epsilon, mechanism="smp-adp")

    @pytest.mark.parametrize("of_union", [False, True])
    def test_it_is_the_smallest_that_will_do(self, plan_at, of_union) -> None:
        def worst(epsilon: Decimal) -> float:
            found = simulation.forecast(plan_at(epsilon), crowd=CROWD)
            curves = [each.union if of_union else each.day for each in found]
            return max(it.half_width(each.even) for it, each in zip(curves, found, strict=True) if it)

        asked = {"half_width": 0.02, "indexes": [0, 1, 2], "of_union": of_union}
        epsilon = simulation.epsilon_for_plan(plan_at, crowd=CROWD, **asked)
        assert worst(epsilon) <= 0.02 < worst(epsilon - Decimal("0.001"))

    @pytest.mark.parametrize("presence", [None, Decimal(4)])
    def test_smallest_epsilon_is_found_though_errors_rise_where_grr_takes_over(self, presence) -> None:
        def plan_at(epsilon: Decimal) -> ldp.PlanSpec:
            noise = {"presence_epsilon": presence, "presence_days": presence and 1}
            return make_plan(("static", 20), mechanism="smp-adp", days=3, epsilon=epsilon, **noise)

        def error(thousandths: int) -> float:
            return simulation.forecast(plan_at(thousandths * LEAST), crowd=CROWD)[0].day.half_width(1 / 20)

        wanted = error(1850 if presence else 1791)
        found = int(simulation.epsilon_for_plan(plan_at, half_width=wanted, crowd=CROWD, indexes=[0]) / LEAST)
        assert found == (1850 if presence else 1791)
        if presence is None:
            assert error(1792) > wanted
            assert all(error(less) > wanted for less in range(1, found, 10))
        else:  # reports are bits below, whose counts have no noise
            refuses("presence_epsilon must be absent", plan_at, 1791 * LEAST)

    @pytest.mark.parametrize("mechanism", ["smp-grr", "smp-adp"])
    def test_joint_indicators_are_searched_with_their_own_channel(self, mechanism) -> None:
        parts = requests_of(("static", 6), ("static", 12))
        both = ldp.IndicatorRequest(slug="both", kind="static", domain_size=91, parts=("i0", "i1"))

        def plan_at(epsilon: Decimal) -> ldp.PlanSpec:
            settings = {"mechanism": mechanism, "unit": "profile", "version": 1, "days": 7}
            return ldp.build_plan(**settings, epsilon=epsilon, indicators=[*parts, both])

        def error(epsilon: Decimal) -> float:
            found = simulation.forecast(plan_at(epsilon), crowd=CROWD)[2]
            return found.day.half_width(found.even)

        for epsilon in (Decimal("0.5"), Decimal(2)):
            wish = {"half_width": error(epsilon), "crowd": CROWD, "indexes": [2]}
            assert simulation.epsilon_for_plan(plan_at, **wish) == epsilon

    @pytest.mark.parametrize("cells", ["two", "optimal"])
    @pytest.mark.parametrize("epsilon", [Decimal("0.5"), Decimal("2.3"), Decimal(9)])
    @pytest.mark.parametrize("index", [0, 1, 2])
    def test_hashes_and_renewed_reports_are_searched_with_half_of_epsilon(
        self, cells, epsilon, index
    ) -> None:
        sizes = (37, 3, 60)

        def plan_at(epsilon: Decimal) -> ldp.PlanSpec:
            asked = zip(("daily", "static", "static"), sizes, strict=True)
            return make_plan(*asked, epsilon=epsilon, mechanism="smp-allomfree", hash_cells=cells)

        wanted = simulation.forecast(plan_at(epsilon), crowd=CROWD)[index].day.half_width(1 / sizes[index])
        wish = {"half_width": wanted, "crowd": CROWD, "indexes": [index]}
        assert simulation.epsilon_for_plan(plan_at, **wish) == epsilon

    @pytest.mark.parametrize("mechanism", ["smp-grr", "smp-adp", "rsfd-adp"])
    @pytest.mark.parametrize("epsilon", [Decimal("1.2"), Decimal(6)])
    def test_most_categories_are_the_most_though_errors_rise_and_fall(self, mechanism, epsilon) -> None:
        def plan_of(size: int) -> ldp.PlanSpec:
            kinds = (("static", size), ("static", 3))
            return make_plan(*kinds, mechanism=mechanism, unit="attribute", epsilon=epsilon)

        errors = [simulation.forecast(plan_of(k), crowd=CROWD)[0].day.half_width(1 / k) for k in range(2, 25)]
        for wanted in sorted(errors)[::4]:
            wish = {"fewer_than": 25, "half_width": wanted}
            found = simulation.most_categories(plan_of, index=0, crowd=CROWD, **wish)
            assert found == max(size for size, each in enumerate(errors, start=2) if each <= wanted)
        assert simulation.most_categories(plan_of, index=0, fewer_than=2, half_width=1, crowd=CROWD) is None

    def test_what_no_epsilon_reaches_is_refused_with_what_can_be(self, plan_at) -> None:
        find = partial(simulation.epsilon_for_plan, crowd=CROWD)
        message = r"half_width must be >= 0\.00\d+, that of epsilon 20, got 0\.0001"
        refuses(message, find, plan_at, half_width=0.0001, indexes=[1])
        some_days = partial(make_plan, ("daily", 5), max_values=2)
        message = "i0 must be answered on all days"
        refuses(message, find, lambda e: some_days(epsilon=e), half_width=0.1, indexes=[0], of_union=True)


class TestRanking:
    ranked = partial(simulation.rank_plans, unit="profile", days=7, promised=Fraction(1), crowd=CROWD)

    @pytest.mark.parametrize("unit", ["profile", "attribute"])
    def test_all_keep_the_same_promise_and_the_best_comes_first(self, unit: Unit) -> None:
        found = self.ranked(requests_of(("static", 3), ("static", 37)), unit=unit)
        of_daily = {"smp-question", "smp-loloha", "smp-stream"}
        assert {each.mechanism for each in found} == {*get_args(Mechanism)} - of_daily
        assert [each.mean_half_width for each in found] == sorted(each.mean_half_width for each in found)
        for each in found:
            certificate = ldp.certify(each.plan)
            of_unit = certificate.epsilon_profile if unit == "profile" else certificate.epsilon_attribute
            # In reports of seven days nearly all of a kept answer shows.
            nearly = Decimal("0.9997") if each.plan.renews_reports else Decimal("0.99999")
            assert nearly < of_unit <= 1

    def test_answers_of_all_days_count_for_a_profile(self) -> None:
        found = self.ranked(requests_of(("daily", 5)))
        by_name = {each.mechanism: each for each in found}
        assert "smp-allomfree" not in by_name  # there, it would be smp-loloha again
        assert by_name["smp-grr"].epsilon == Decimal("0.142857")
        assert by_name["smp-question"].epsilon == by_name["smp-loloha"].epsilon == Decimal("0.5")
        assert found[0].mechanism == "smp-question"
        assert simulation.promise(ldp.certify(by_name["smp-grr"].plan), unit="profile") <= 1

    def test_fakes_that_hide_one_value_are_not_for_daily_ones(self) -> None:
        found = self.ranked(requests_of(("daily", 5), ("static", 5)), unit="attribute")
        assert {each.mechanism for each in found} == {*get_args(Mechanism)} - {
            "rsfd-grr",
            "rsfd-ouez",
            "rsfd-adp",
        }

    def test_own_epsilons_and_weights_do_not_count(self) -> None:
        plain = requests_of(("static", 3), ("static", 9))
        own = (replace(plain[0], epsilon=Decimal(2), weight=Decimal(5)), plain[1])
        rankings = [self.ranked(asked, days=1, crowd=ONE_DAY) for asked in (own, plain)]
        assert rankings[0] == rankings[1]

    def test_a_promise_out_of_reach_is_refused(self) -> None:
        with pytest.raises(ldp.LdpError, match="promised must be within reach"):
            self.ranked(requests_of(("static", 3)), days=1, promised=Fraction(0), crowd=ONE_DAY)


def test_a_crowd_has_people_who_are_not_present_longer_than_the_study() -> None:
    for visitors, days in ((0.5, 1), (10, 0.5), (float("nan"), 1), (10, float("inf"))):
        refuses("must be >= 1, got", simulation.Crowd, visitors=visitors, days_present=days)
    one_day = make_plan(("static", 3), days=1)
    refuses("days_present must be <= 1", simulation.forecast, one_day, crowd=CROWD)
