"""RS+FD: closed forms against the sheet and against every profile and report of tiny domains."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations
from math import exp, log
from typing import Any

import numpy as np
import pytest

from ldp import LdpError, epsilon_of, grr_channel, noise_at_zero, oue_channel, pure_frequencies, pure_variance
from ldp.channels import MAX_EPSILON, MIN_EPSILON, WORD, GrrChannel, exp_down
from ldp.families.fake_data import FakeDataChannel, FakedChannel, fake_data_channel, hidden_epsilon
from ldp.families.unary import UnaryChannel
from tests.ldp.exact import VECTORS, exp_bounds
from tests.ldp.fakes import law, losses

SIZES = (3, 3, 8, 12, 37, 11)
TABLE = VECTORS["A_rsfd_mse"]
PROTOCOLS = ["grr", "ouez", "suez", "adp", "ouer", "suer"]
rows = pytest.mark.parametrize("row", TABLE, ids=lambda row: str(row["eps"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class IdealGrr(GrrChannel):
    """GRR with a ratio that no integer threshold has."""

    exact: Fraction

    @property
    def p(self) -> Fraction:
        return self.exact


@dataclass(frozen=True, slots=True, kw_only=True)
class IdealOue(UnaryChannel):
    """OUE with a ratio that no integer threshold has."""

    exact: Fraction

    @property
    def q(self) -> Fraction:
        return self.exact


def ideal(kind: str, *, ratio: Fraction, sizes: Sequence[int]) -> FakeDataChannel:
    """Channel of the published formulas."""
    reports = []
    for k in sizes:
        answer: GrrChannel | UnaryChannel
        if kind == "GRR":
            p = ratio / (ratio + k - 1)
            answer = IdealGrr(domain_size=k, threshold=round(WORD * p), exact=p)
        else:
            q = 1 / (ratio + 1)
            answer = IdealOue(domain_size=k, threshold_p=WORD // 2, threshold_q=round(WORD * q), exact=q)
        fakes: dict[str, Any] = {"GRR": "code", "OUEz": "no value", "OUEr": "any value"}
        reports.append(FakedChannel(answer=answer, fake=fakes[kind], share=Fraction(1, len(sizes))))
    return FakeDataChannel(reports=tuple(reports))


def mixed(*, sizes: tuple[int, ...] = (2, 4, 3)) -> FakeDataChannel:
    """Different protocols, ratios and shares in one channel."""
    answers: list[Any] = [
        (grr_channel(epsilon=Fraction(1), domain_size=sizes[0]), "code"),
        (oue_channel(epsilon=Fraction(2), domain_size=sizes[1]), "any value"),
        (oue_channel(epsilon=Fraction(1, 2), domain_size=sizes[2]), "any value"),
    ]
    shares = (Fraction(1, 2), Fraction(1, 6), Fraction(1, 3))
    return FakeDataChannel(
        reports=tuple(
            FakedChannel(answer=answer, fake=fake, share=share)
            for (answer, fake), share in zip(answers, shares, strict=True)
        )
    )


def cases() -> Iterator[Any]:
    yield pytest.param(mixed(), id="mixed")
    for protocol in PROTOCOLS:
        for sizes, unit in [((2, 3), "attribute"), ((2, 3, 3), "attribute"), ((4, 2), "profile")]:
            for shares in ("equal", "balanced"):
                channel = fake_data_channel(
                    protocol,  # type: ignore[arg-type]
                    epsilon=Fraction(7, 10),
                    unit=unit,  # type: ignore[arg-type]
                    domain_sizes=sizes,
                    shares=shares,  # type: ignore[arg-type]
                )
                yield pytest.param(channel, id=f"{protocol}-{sizes}-{unit}-{shares}")


def subsets(d: int) -> Iterator[tuple[int, ...]]:
    return chain.from_iterable(combinations(range(d), size) for size in range(1, d + 1))


@pytest.mark.parametrize("channel", list(cases()))
def test_losses_are_those_of_every_profile_and_report(channel: FakeDataChannel) -> None:
    d = len(channel.reports)
    worst = losses(channel)
    assert {differing: channel.ratio_of(differing) for differing in subsets(d)} == worst
    assert channel.ratio_profile == worst[tuple(range(d))]
    assert channel.ratios_attribute == tuple(worst[(i,)] for i in range(d))
    assert channel.epsilon_profile == epsilon_of(channel.ratio_profile)
    assert channel.epsilon_attribute == epsilon_of(max(channel.ratios_attribute))


@pytest.mark.parametrize("channel", list(cases()))
def test_reports_on_their_own_are_pure(channel: FakeDataChannel) -> None:
    profile = tuple(0 for _ in channel.reports)
    joint = law(channel, profile)
    for i, report in enumerate(channel.reports):
        alone: dict[Any, Fraction] = {}
        for tuple_, probability in joint.items():
            alone[tuple_[i]] = alone.get(tuple_[i], Fraction(0)) + probability
        support = [
            sum(
                (x for y, x in alone.items() if (y == value if report.fake == "code" else y[value])),
                Fraction(0),
            )
            for value in range(report.domain_size)
        ]
        assert support == [report.p] + [report.q] * (report.domain_size - 1)
        swapped = {
            y: (1 if y == 0 else 0 if y == 1 else y) if report.fake == "code" else (y[1], y[0], *y[2:])
            for y in alone
        }
        assert report.ratio == max(alone[y] / alone[swapped[y]] for y in alone)
        assert report.epsilon == epsilon_of(report.ratio)


@pytest.mark.parametrize("vector", VECTORS["A_rsfd_exact"], ids=lambda v: "-".join(map(str, v["c"])))
@pytest.mark.parametrize("kind", ["GRR", "OUEz", "OUEr"])
def test_losses_are_those_of_the_sheet(vector: dict[str, Any], kind: str) -> None:
    channel = ideal(kind, ratio=Fraction(vector["exp_eps_prime"]), sizes=vector["c"])
    assert channel.ratio_profile == Fraction(vector[f"tuple_ratio_{kind}"])
    assert channel.ratios_attribute == tuple(map(Fraction, vector[f"attr_ratio_{kind}"]))
    if kind == "GRR" and vector["c"] == [2, 3, 4]:
        assert channel.ratio_of((0, 1)) == Fraction(119, 53)


@pytest.mark.parametrize(
    ("kind", "estimate"),
    [("GRR", 0.749186024121596), ("OUEz", 0.403255903513617), ("OUEr", -0.0967440964863834)],
)
def test_estimates_are_those_of_the_sheet(kind: str, estimate: float) -> None:
    low, _ = exp_bounds(Fraction(1))
    report = ideal(kind, ratio=low, sizes=(4, 4, 4)).reports[0]
    found = pure_frequencies(np.array([300, 0, 0, 700]), n_reports=1000, n_population=1000, channel=report)
    assert found.frequency[0] == pytest.approx(estimate, rel=1e-13)


@rows
@pytest.mark.parametrize(
    ("protocol", "column"),
    [("grr", "RSFD_GRR"), ("ouez", "RSFD_OUEz"), ("ouer", "RSFD_OUEr"), ("adp", "RSFD_ADP")],
)
@pytest.mark.parametrize("at", ["eps", "eps_prime"])
def test_noise_is_that_of_the_sheet(row: dict[str, Any], protocol: Any, column: str, at: str) -> None:
    channel = fake_data_channel(protocol, epsilon=Fraction(row[at]), unit="profile", domain_sizes=SIZES)
    mean = float(sum(map(noise_at_zero, channel.reports)) / len(SIZES))
    assert mean == pytest.approx(row["nVar"][f"{column}@{at}"], rel=1e-11)


@rows
@pytest.mark.parametrize(
    ("protocol", "column"), [("grr", "attr_grr"), ("ouer", "attr_ouer"), ("adp", "attr_adp")]
)
def test_published_epsilon_reveals_what_the_sheet_says(
    row: dict[str, Any], protocol: Any, column: str
) -> None:
    """The published epsilon' is what a profile loses, and large domains lose more than epsilon too."""
    channel = fake_data_channel(
        protocol, epsilon=Fraction(row["eps_prime"]), unit="profile", domain_sizes=SIZES
    )
    assert [log(ratio) for ratio in channel.ratios_attribute] == pytest.approx(row[column], rel=1e-12)
    assert float(channel.epsilon_profile) == pytest.approx(row["tuple_true"], rel=1e-12)
    if protocol == "adp":
        chosen = ["GRR" if report.fake == "code" else "OUEz" for report in channel.reports]
        assert chosen == row["adp_choice"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("sizes", [(2, 3, 37), (4,)])
def test_balanced_shares_make_all_values_lose_the_same(protocol: Any, sizes: tuple[int, ...]) -> None:
    channel = fake_data_channel(
        protocol, epsilon=Fraction(1), unit="profile", domain_sizes=sizes, shares="balanced"
    )
    losses_ = [log(ratio) for ratio in channel.ratios_attribute]
    assert losses_ == pytest.approx([losses_[0]] * len(sizes), rel=1e-14)
    assert all((WORD * report.share).denominator == 1 for report in channel.reports)


@pytest.mark.parametrize("vector", VECTORS["A_eps_prime"], ids=lambda v: f"{v['d']}-{v['eps']}")
@pytest.mark.parametrize("protocol", ["ouez", "suez", "grr"])
def test_hidden_epsilon_is_that_of_the_vectors(vector: dict[str, Any], protocol: Any) -> None:
    hidden = hidden_epsilon(
        protocol, epsilon=Fraction(vector["eps"]), unit="attribute", domain_sizes=(5,) * int(vector["d"])
    )
    tolerance = 2e-9 if protocol == "grr" else 1e-14
    assert float(hidden) == pytest.approx(float(vector["eps_prime_thesis"]), abs=tolerance)


@pytest.mark.parametrize("epsilon", [MIN_EPSILON, Fraction(1, 3), Fraction(1)])
def test_hidden_epsilon_is_rounded_down(epsilon: Fraction) -> None:
    for d in (2, 3, 4, 7, 13, 31, 59):
        hidden = hidden_epsilon("ouez", epsilon=epsilon, unit="attribute", domain_sizes=(2,) * d)
        largest = d * (exp_down(epsilon) - 1) + 1
        assert exp_bounds(hidden)[1] <= largest < exp_bounds(hidden + Fraction(1, 10**57))[0]


@rows
def test_uneven_domains_hide_less_unless_balanced(row: dict[str, Any]) -> None:
    common: dict[str, Any] = {"epsilon": Fraction(row["eps"]), "unit": "attribute", "domain_sizes": SIZES}
    for protocol, column in (("grr", "grr"), ("ouer", "ouer")):
        hidden = hidden_epsilon(protocol, **common)  # type: ignore[arg-type]
        assert float(hidden) == pytest.approx(row[f"eps_prime_attr_max_eq_eps_{column}"], abs=2e-9)
    assert float(hidden_epsilon("grr", shares="balanced", **common)) == pytest.approx(
        row["eps_prime"], abs=2e-9
    )
    balanced = fake_data_channel("grr", shares="balanced", **common)
    e = exp(row["eps_prime"])
    weights = np.array([(e + k - 1) / k for k in SIZES])
    assert [float(r.share) for r in balanced.reports] == pytest.approx(weights / weights.sum(), rel=1e-8)
    assert [log(x) for x in balanced.ratios_attribute] == pytest.approx([row["eps"]] * 6, abs=2e-9)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("unit", ["profile", "attribute"])
@pytest.mark.parametrize("shares", ["equal", "balanced"])
@pytest.mark.parametrize("epsilon", [MIN_EPSILON, Fraction(1, 10), Fraction(2), Fraction(12)])
def test_loss_never_exceeds_its_nominal_and_comes_close(
    protocol: Any, unit: Any, shares: Any, epsilon: Fraction
) -> None:
    for sizes in [(4,), (2, 2), (3, 2, 60)]:
        channel = fake_data_channel(protocol, epsilon=epsilon, unit=unit, domain_sizes=sizes, shares=shares)
        ratios = [channel.ratio_profile] if unit == "profile" else channel.ratios_attribute
        assert max(ratios) <= exp_bounds(epsilon)[0]
        assert float(epsilon_of(max(ratios))) == pytest.approx(float(epsilon), abs=2e-9)
        assert channel.ratio_profile >= max(channel.ratios_attribute)


def test_budgets_at_the_upper_end_are_cut() -> None:
    for protocol in ("ouez", "grr"):
        common: dict[str, Any] = {"epsilon": MAX_EPSILON, "unit": "attribute", "domain_sizes": (4, 4)}
        assert hidden_epsilon(protocol, **common) == MAX_EPSILON
    assert hidden_epsilon("ouez", epsilon=Fraction(1), unit="attribute", domain_sizes=(4,)) == 1


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_variance_is_that_of_a_draw_of_everyone(protocol: Any) -> None:
    """g (1 - g) / (n w^2 (p - q)^2) where each person is drawn anew: g the probability of support."""
    channel = fake_data_channel(
        protocol, epsilon=Fraction(1), unit="attribute", domain_sizes=SIZES, shares="balanced"
    )
    n, f = 500, 0.2
    for report in channel.reports:
        w, p, q = float(report.share), float(report.answer.p), float(report.answer.q)
        g = w * (q + f * (p - q)) + (1 - w) * float(report.fake_support)
        expected = g * (1 - g) / (n * w**2 * (p - q) ** 2)
        found = pure_variance(f, n_reports=n, n_population=10**15, channel=report)
        assert found == pytest.approx(expected, rel=1e-9)


def test_fakes_cost_a_factor_of_d() -> None:
    """At the same profile epsilon, OUE-z has exactly d times the noise of Smp with OUE."""
    channel = fake_data_channel("ouez", epsilon=Fraction(1), unit="profile", domain_sizes=SIZES)
    for report in channel.reports:
        assert noise_at_zero(report) == 36 * noise_at_zero(report.answer)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"protocol": "olh"}, r"protocol must be one of \('grr', .*got 'olh'"),
        ({"unit": "person"}, "unit must be one of .*got 'person'"),
        ({"shares": "optimal"}, "shares must be one of .*got 'optimal'"),
        ({"domain_sizes": ()}, "domain_sizes must hold an indicator, got none"),
        ({"domain_sizes": (3, 1)}, "domain_size must be >= 2, got 1"),
        ({"epsilon": Fraction(0)}, "epsilon of one answer must be in"),
        ({"epsilon": Fraction(65)}, "epsilon of one answer must be in"),
        ({"epsilon": Fraction(65), "protocol": "ouez"}, "epsilon of one answer must be in"),
    ],
)
@pytest.mark.parametrize("unit", ["profile", "attribute"])
def test_what_cannot_be_is_refused(changes: dict[str, Any], message: str, unit: str) -> None:
    arguments: dict[str, Any] = {
        "protocol": "grr",
        "epsilon": Fraction(1),
        "unit": unit,
        "domain_sizes": (3, 8),
    } | changes
    with pytest.raises(LdpError, match=message):
        fake_data_channel(arguments.pop("protocol"), **arguments)


def test_channels_that_make_no_sense_are_refused() -> None:
    grr, oue = (make(epsilon=Fraction(1), domain_size=3) for make in (grr_channel, oue_channel))
    half: dict[str, Any] = {"share": Fraction(1, 2)}
    for answer, fake in [(grr, "no value"), (grr, "any value"), (oue, "code"), (oue, "zeros")]:
        with pytest.raises(LdpError, match=f"fake must be one of .*got '{fake}'"):
            FakedChannel(answer=answer, fake=fake, **half)  # type: ignore[arg-type]
    for share in (Fraction(0), Fraction(3, 2)):
        with pytest.raises(LdpError, match=rf"share must be in \(0, 1\], got {share}"):
            FakedChannel(answer=grr, fake="code", share=share)
    report = FakedChannel(answer=grr, fake="code", **half)
    with pytest.raises(LdpError, match="shares must add up to 1, got 3/2"):
        FakeDataChannel(reports=(report,) * 3)
    channel = FakeDataChannel(reports=(report, report))
    for differing in [(), (2,), (-1, 0)]:
        with pytest.raises(LdpError, match=r"differing must hold positions in \[0, 2\), got \["):
            channel.ratio_of(differing)
