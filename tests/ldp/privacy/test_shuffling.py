"""Sums of reports: the bound of Feldman, McMillan and Talwar, where it holds, and what it says of plans."""

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from ldp import ClassSpec, certify, grr_channel
from ldp.privacy.shuffling import certify_sums, shuffled_epsilon
from ldp.protocols.channels import exp_down
from tests.ldp.exact import make_plan, refuses

MILLIONTH = Fraction(1, 10**6)
EPSILONS = ("0.5", "1", "2", "3")
BOUNDS = {
    1000: (0.273, 0.566, None, None),
    4500: (0.137, 0.305, 0.679, None),
    27_000: (0.058, 0.135, 0.333, 0.574),
    88_935: (0.032, 0.077, 0.196, 0.355),
}
TWO = (("static", 3), ("static", 5))


@pytest.mark.parametrize("n", BOUNDS)
def test_bounds_of_the_theorem_at_a_delta_of_a_millionth(n: int) -> None:
    for epsilon, expected in zip(EPSILONS, BOUNDS[n], strict=True):
        found = shuffled_epsilon(exp_down(Fraction(epsilon)), n_reports=n, delta=MILLIONTH)
        assert (found and round(float(found), 3)) == expected


@pytest.mark.parametrize("epsilon", ["0.5", "1"])
def test_a_sum_of_binary_reports_keeps_the_bound(epsilon: str) -> None:
    """Exactly: n - 1 people have the value 0, one has 0 or 1, and the number of ones is seen."""
    n, channel = 1000, grr_channel(epsilon=Fraction(epsilon), domain_size=2)
    bound = shuffled_epsilon(channel.ratio, n_reports=n, delta=MILLIONTH)
    assert bound is not None
    assert bound < channel.epsilon
    others = binom.pmf(np.arange(n), n - 1, float(channel.q))
    chances = float(channel.q), float(channel.p)
    zero, one = (np.append(others, 0) * (1 - p) + np.append(0, others) * p for p in chances)
    for seen, against in ((zero, one), (one, zero)):
        assert np.maximum(seen - np.exp(float(bound)) * against, 0).sum() < float(MILLIONTH)


def test_the_theorem_says_nothing_of_few_reports_and_refuses_what_is_no_ratio_or_delta() -> None:
    least = 16 * np.e * np.log(2e6)
    assert shuffled_epsilon(exp_down(Fraction(1)), n_reports=int(least), delta=MILLIONTH) is None
    for ratio, delta in ((Fraction(1), MILLIONTH), (Fraction(2), Fraction(0)), (Fraction(2), Fraction(1))):
        refuses("ratio must be > 1 and delta", shuffled_epsilon, ratio, n_reports=1000, delta=delta)


@pytest.mark.parametrize(("mechanism", "n_sums"), [("smp-grr", 1), ("spl-grr", 2)])
def test_losses_of_sums_are_the_largest_or_add_up_and_never_exceed_single_reports(mechanism, n_sums) -> None:
    plan = make_plan(*TWO, mechanism=mechanism, days=1)
    single = certify(plan)
    found = certify_sums(plan, n_reports=[5000, 5000], n_visitors=10_000)
    each = [shuffled_epsilon(i.ratio, n_reports=5000, delta=MILLIONTH) for i in single.indicators]
    assert found.epsilons == tuple(each)
    assert found.epsilon_profile >= (max(each) if n_sums == 1 else sum(map(Fraction, each)))
    assert found.epsilon_profile < single.epsilon_profile
    assert (found.delta, found.delta_profile) == (MILLIONTH, n_sums * MILLIONTH)
    # Few reports on one indicator: nothing is gained there.
    mixed = certify_sums(plan, n_reports=[5000, 10], n_visitors=10_000)
    assert mixed.epsilons == (each[0], single.indicators[1].epsilon)
    assert certify_sums(plan, n_reports=[10, 10], n_visitors=10_000) is None
    # Many people: delta stays below one person's share.
    assert certify_sums(plan, n_reports=[10**7] * 2, n_visitors=10**7).delta == Fraction(1, 10**8)


def test_made_up_reports_need_all_reports_of_everyone_and_several_days_or_noise_have_no_bound() -> None:
    plan = make_plan(*TWO, mechanism="rsfd-grr", days=1)
    found = certify_sums(plan, n_reports=[9000, 9000], n_visitors=9000)
    ratio = plan.fake_data.ratio_profile
    assert found.epsilon_profile == shuffled_epsilon(ratio, n_reports=9000, delta=MILLIONTH)
    assert found.epsilon_attribute <= certify(plan).epsilon_attribute
    assert certify_sums(plan, n_reports=[9000, 8999], n_visitors=9000) is None
    noise = {"presence_epsilon": Decimal(1), "presence_days": 1}
    for changes in ({"days": 2}, {"days": 1, **noise}):
        assert certify_sums(make_plan(*TWO, **changes), n_reports=[9000, 9000], n_visitors=18_000) is None


def test_sums_of_classes_have_no_bound_since_a_person_hides_only_in_one_class() -> None:
    plan = make_plan(*TWO, days=1)
    classes = tuple(ClassSpec(slug=each, epsilon=plan.indicators[0].epsilon) for each in "xy")
    sizes = {"n_reports": [9000, 9000], "n_visitors": 18_000}
    assert certify_sums(plan, **sizes) is not None
    assert certify_sums(replace(plan, classes=classes), **sizes) is None
