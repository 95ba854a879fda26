"""The audit: no mechanism loses more than its certificate, and planted faults are found."""

import dataclasses
import json
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from functools import partial
from math import log
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import beta

from ldp import (
    GrrChannel,
    KeyedPrf,
    LdpError,
    TwoRoundHash,
    UnaryChannel,
    certify,
    certify_reports,
    fake_data_channel,
    grr_channel,
    oue_channel,
    prior_fake_data_channel,
)
from ldp.__main__ import (
    BIT_FLIP,
    FAKES,
    ONE_ROUND,
    PRIOR_FAKES,
    TWO_ROUNDS,
    build_channel,
    build_fake_target,
    main,
)
from ldp.audit import Target, attack, channel_target, day_values
from ldp.audit_fakes import fake_target
from ldp.audit_plans import plan_target
from ldp.binomial import clopper_pearson_low
from ldp.channels import WORD
from ldp.families.two_round_unary import TwoRoundUnary
from ldp.kernels import NO_ANSWER
from ldp.params import Mechanism
from tests.ldp.exact import make_plan

KEY = bytes(range(16))
PLANS: tuple[Mechanism, ...] = get_args(Mechanism)
PAIR = [(0, 1)]


class DroppedValuePrf(KeyedPrf):
    """Fault: a changed value gets the same bits."""

    def runs(
        self, pseudonyms: NDArray[np.uint64], **fields: Any
    ) -> Iterator[tuple[slice, NDArray[np.uint64]]]:
        return super().runs(pseudonyms, **fields | {"values": 0})


def keyless(key: bytes) -> KeyedPrf:
    """Fault: the subscriber alone seeds the noise."""
    del key
    return KeyedPrf(bytes(16))


def grr(*, days: int = 1, domain_size: int = 4, epsilon: int = 1) -> Target:
    channel = grr_channel(epsilon=Fraction(epsilon), domain_size=domain_size)
    return channel_target("grr", channel, pairs=day_values(days, domain_size=domain_size), unit="days")


ATTACK = partial(attack, runs=20_000, confidence=0.99, key=KEY)


@pytest.mark.parametrize("mechanism", [*ONE_ROUND, BIT_FLIP, *TWO_ROUNDS])
@pytest.mark.parametrize("pairs", [PAIR, PAIR * 3, day_values(4, domain_size=3)], ids=["one", "same", "days"])
def test_no_mechanism_loses_more_than_its_certificate(mechanism: str, pairs: list[tuple[int, int]]) -> None:
    channel = build_channel(mechanism, epsilon=Fraction(1), epsilon_1=None, domain_size=3)
    result = ATTACK(channel_target(mechanism, channel, pairs=pairs, unit="x"), runs=50_000)
    assert result.is_within
    if pairs == PAIR:
        # One report reaches its epsilon; a noisy bound of an event that the observer missed would not.
        assert result.epsilon_lower_bound > 0.7 * float(channel.epsilon)


@pytest.mark.parametrize("horizon", [2, 3])
@pytest.mark.parametrize("mechanism", ["l-grr", "l-osue", "biloloha"])
def test_the_first_reports_together_keep_their_epsilon(mechanism: str, horizon: int) -> None:
    settings: dict[str, Any] = {"epsilon": Fraction(2), "epsilon_1": Fraction(1), "domain_size": 3}
    channel = build_channel(mechanism, horizon=horizon, **settings)
    first = channel_target(mechanism, channel, pairs=PAIR * horizon, unit="x")
    assert Decimal("0.999") < first.epsilon_certified <= 1
    result = ATTACK(first, runs=60_000)
    assert result.is_within
    assert result.epsilon_lower_bound > 0.75
    # The same as if each report had that epsilon: together they have more.
    sold = channel_target(mechanism, build_channel(mechanism, **settings), pairs=PAIR * horizon, unit="x")
    assert not ATTACK(dataclasses.replace(sold, epsilon_certified=first.epsilon_certified)).is_within


@pytest.mark.parametrize("mechanism", ["l-grr", "allomfree", "loloha", BIT_FLIP])
def test_published_parameters_lose_no_more_than_their_certificate(mechanism: str) -> None:
    settings: dict[str, Any] = {"epsilon": Fraction(2), "domain_size": 5}
    if mechanism == BIT_FLIP:
        settings["sampled"] = 1
    channel = build_channel(mechanism, tuning="paper", **settings)
    assert channel != build_channel(mechanism, **settings)
    result = ATTACK(channel_target(mechanism, channel, pairs=PAIR, unit="x"), runs=50_000)
    assert result.is_within
    assert result.epsilon_lower_bound > 0.7 * float(channel.epsilon)


@pytest.mark.parametrize("mechanism", ["adp", "allomfree"])
def test_adaptive_mechanisms_have_bits_for_many_values(mechanism: str) -> None:
    channel = build_channel(mechanism, epsilon=Fraction(1), domain_size=16)
    assert isinstance(channel, UnaryChannel | TwoRoundUnary)
    result = ATTACK(channel_target(mechanism, channel, pairs=PAIR, unit="x"), runs=50_000)
    assert result.is_within
    assert result.epsilon_lower_bound > 0.7 * float(channel.epsilon)


@pytest.mark.parametrize("mechanism", PLANS)
@pytest.mark.parametrize("kind", ["static", "daily"])
@pytest.mark.parametrize("unit", ["profile", "attribute"])
def test_no_plan_loses_more_than_its_certificate(mechanism: Mechanism, kind: str, unit: Any) -> None:
    # The codes of ADP have two values here, its bits 17, which take two words.
    promised = "profile" if kind == "daily" else unit
    plan = make_plan((kind, 2), (kind, 17), mechanism=mechanism, days=2, unit=promised)
    target = plan_target(plan, unit=unit)
    certificate = certify(plan)
    assert target.epsilon_certified == getattr(certificate, f"epsilon_{unit}")
    result = ATTACK(target, runs=40_000)
    assert result.is_within
    # Of 17 codes, the few that tell are rare if epsilon is split.
    share = 0.55 if mechanism == "spl-grr" else 0.7
    assert result.epsilon_lower_bound > share * float(target.epsilon_certified)


@pytest.mark.parametrize("mechanism", PLANS)
def test_plans_of_both_kinds_on_some_days_keep_their_certificate(mechanism: Mechanism) -> None:
    plan = make_plan(("static", 3), ("daily", 3), mechanism=mechanism, days=3, max_values=2)
    result = ATTACK(plan_target(plan))
    assert result.is_within
    assert result.epsilon_lower_bound > 0.75 * float(result.epsilon_certified)


def test_the_bits_of_each_word_are_read() -> None:
    # Of 31 values, the last has a word for itself, and the first is in the first of three.
    target = plan_target(make_plan(("static", 31), mechanism="smp-oue"))
    reports = target.observe(KeyedPrf(KEY), np.arange(20_000, dtype=np.uint64), 0)
    assert reports.shape == (20_000, 3)
    supports = target.summarise(reports)[:, 1].mean()
    assert supports == pytest.approx(0.5 * 0.73, abs=0.02)
    plan = make_plan(("static", 31), ("static", 31), mechanism="rsfd-ouez", unit="attribute")
    nothing = np.full((1, 6), NO_ANSWER, np.int64)
    assert plan_target(plan).summarise(nothing).tolist() == [[-1, 0, 0, 0]]


@pytest.mark.parametrize("mechanism", ["rsfd-grr", "rsfd-ouez", "rsfd-adp"])
def test_a_plan_that_hides_one_value_is_no_promise_for_a_profile(mechanism: Mechanism) -> None:
    plan = make_plan(("static", 2), ("static", 12), mechanism=mechanism, unit="attribute")
    profile = plan_target(plan, unit="profile")
    sold = dataclasses.replace(profile, epsilon_certified=plan_target(plan).epsilon_certified)
    assert sold.epsilon_certified <= 1
    assert not ATTACK(sold).is_within
    assert ATTACK(profile).is_within


@pytest.mark.parametrize("mechanism", ["smp-oue", "rsfd-grr", "rsfd-ouez"])
def test_days_of_a_plan_sold_as_one_are_caught(mechanism: Mechanism) -> None:
    target = plan_target(make_plan(("daily", 2), ("daily", 3), mechanism=mechanism, days=2))
    one_day = plan_target(make_plan(("daily", 2), ("daily", 3), mechanism=mechanism, days=1))
    assert not ATTACK(dataclasses.replace(target, epsilon_certified=one_day.epsilon_certified)).is_within


@pytest.mark.parametrize("mechanism", ["smp-grr", "rsfd-grr"])
@pytest.mark.parametrize("kind", ["static", "daily"])
def test_answers_to_all_indicators_instead_of_one_are_caught(mechanism: Mechanism, kind: str) -> None:
    shape = {"days": 2} if kind == "daily" else {}
    honest = plan_target(make_plan((kind, 2), (kind, 3), mechanism=mechanism, **shape))
    all_answer = make_plan((kind, 2), (kind, 3), mechanism="spl-grr", epsilon=Decimal(2), **shape)
    broken = dataclasses.replace(honest, observe=plan_target(all_answer).observe)
    assert not ATTACK(broken).is_within


@pytest.mark.parametrize("mechanism", [*FAKES, *PRIOR_FAKES])
@pytest.mark.parametrize("unit", ["profile", "attribute"])
@pytest.mark.parametrize("shares", ["equal", "balanced"])
def test_no_fakes_reveal_more_than_their_certificate(mechanism: str, unit: Any, shares: Any) -> None:
    target = build_fake_target(
        mechanism, epsilon=Fraction(1), unit=unit, domain_sizes=(2, 3, 2), shares=shares
    )
    result = ATTACK(target, runs=60_000)
    assert result.is_within
    # With fakes of any value, the most telling reports of the other indicators are rare.
    assert "uer" in mechanism or result.epsilon_lower_bound > 0.5
    assert target.epsilon_certified <= 1
    assert "for a value of both: 0" in result.event


@pytest.mark.parametrize("mechanism", ["rsfd-grr", "rsfd-ouez", "rsfd-adp", "rsrfd-grr"])
def test_fake_data_sold_as_epsilon_per_profile_is_caught(mechanism: str) -> None:
    """The answers have the hidden epsilon: one value keeps the promise, a whole profile does not."""
    promise: dict[str, Any] = {"epsilon": Fraction(1), "domain_sizes": (2, 3, 2), "shares": "equal"}
    honest = build_fake_target(mechanism, unit="attribute", **promise)
    channel = honest.observe.args[0]  # type: ignore[attr-defined]
    sold = dataclasses.replace(
        fake_target(mechanism, channel, unit="profile"), epsilon_certified=honest.epsilon_certified
    )
    result = ATTACK(sold)
    assert not result.is_within
    assert result.epsilon_lower_bound > 1.1
    # What the certificate of the same channel says of a profile stands.
    assert ATTACK(fake_target(mechanism, channel, unit="profile")).is_within
    assert ATTACK(honest).is_within


def test_a_code_that_is_never_a_fake_gives_its_answer_away() -> None:
    priors = [(WORD // 2, WORD // 2), (WORD // 2, 0, WORD // 2)]
    channel = prior_fake_data_channel("grr", epsilon=Fraction(1), unit="profile", priors=priors)
    result = ATTACK(fake_target("rsrfd-grr", channel, unit="attribute"), runs=200_000)
    assert 0.9 < result.epsilon_lower_bound < 1
    even = fake_data_channel("grr", epsilon=Fraction(1), unit="profile", domain_sizes=(2, 3))
    assert even.epsilon_attribute < Decimal("0.8")


@pytest.mark.parametrize("sampled", [1, 2, 4])
def test_few_bits_reveal_no_more_than_their_certificate(sampled: int) -> None:
    channel = build_channel(BIT_FLIP, epsilon=Fraction(1), epsilon_1=None, domain_size=4, sampled=sampled)
    result = ATTACK(channel_target(BIT_FLIP, channel, pairs=PAIR, unit="attribute"), runs=100_000)
    assert 0.75 < result.epsilon_lower_bound < 1
    assert f"bits about either: {min(sampled, 2)}" in result.event


def test_the_bound_of_grr_is_close() -> None:
    result = ATTACK(grr(), runs=200_000)
    assert 0.95 < result.epsilon_lower_bound < result.epsilon_certified


def test_distinct_days_add_up() -> None:
    two_days = grr(days=2)
    assert two_days.epsilon_certified > Decimal("1.99")
    assert 1.8 < ATTACK(two_days, runs=100_000).epsilon_lower_bound < 2


def test_chance_is_not_taken_for_loss() -> None:
    # Thousands of outcomes that say nothing: some always seem to, in the half that chooses the event.
    def observe(prf: KeyedPrf, pseudonyms: NDArray[np.uint64], side: int) -> NDArray[np.int64]:
        fields = {"purpose": 3, "indicator": 0, "plan_version": 1}
        drawn = prf.below(pseudonyms, bound=5_000, value=0, **fields)
        return drawn.astype(np.int64)[:, None] * (0, 1, 0, 0)

    silent = Target(
        mechanism="silent",
        unit="x",
        epsilon_certified=Decimal("0.000001"),
        observe=observe,
        summarise=lambda reports: reports,
    )
    assert ATTACK(silent).is_within


@pytest.mark.parametrize("target", [grr(), plan_target(make_plan(("static", 2), ("static", 3)))])
def test_noise_without_a_key_is_caught(target: Target) -> None:
    result = ATTACK(target, prf_of=keyless)
    assert not result.is_within
    assert result.epsilon_lower_bound > 2
    assert "another key repeats them under the " in result.event


def test_same_bits_for_changed_values_are_caught() -> None:
    result = ATTACK(grr(days=2), prf_of=DroppedValuePrf)
    assert not result.is_within
    assert result.epsilon_lower_bound > 3


def test_same_bits_for_changed_values_of_a_plan_are_caught() -> None:
    target = plan_target(make_plan(("daily", 4), mechanism="spl-grr", days=2))
    assert not ATTACK(target, prf_of=DroppedValuePrf).is_within


@pytest.mark.parametrize("mechanism", ["smp-oue", "rsfd-ouez", "rsfd-grr"])
def test_reports_of_a_plan_without_a_key_are_caught(mechanism: Mechanism) -> None:
    target = plan_target(make_plan(("daily", 2), ("daily", 3), mechanism=mechanism, days=2))
    result = ATTACK(target, prf_of=keyless)
    assert not result.is_within
    assert "another key repeats them under the " in result.event


@pytest.mark.parametrize("percent", [100, 101])
def test_p_off_by_one_percent_is_caught(percent: int) -> None:
    right = grr_channel(epsilon=Fraction(1), domain_size=2)
    real = GrrChannel(domain_size=2, threshold=right.threshold * percent // 100)
    target = dataclasses.replace(
        channel_target("grr", real, pairs=PAIR, unit="attribute"), epsilon_certified=right.epsilon
    )
    assert ATTACK(target, runs=1_000_000).is_within is (percent == 100)


def test_a_bit_that_is_off_is_caught() -> None:
    right = oue_channel(epsilon=Fraction(1), domain_size=3)
    real = dataclasses.replace(right, threshold_q=right.threshold_q * 9 // 10)
    target = dataclasses.replace(
        channel_target("oue", real, pairs=PAIR, unit="attribute"), epsilon_certified=right.epsilon
    )
    assert not ATTACK(target, runs=200_000).is_within


@pytest.mark.parametrize(
    ("hits", "n"), [(1, 10), (5, 10), (10, 10), (3, 100_000), (36_000, 100_000), (499_000, 500_000)]
)
@pytest.mark.parametrize("miss", [0.025, 0.0005])
def test_clopper_pearson_is_the_beta_quantile_and_never_above(hits: int, n: int, miss: float) -> None:
    exact = beta.ppf(miss, hits, n - hits + 1)
    bound = clopper_pearson_low(hits, n=n, miss=miss)
    assert exact * (1 - 1e-5) < bound <= exact * (1 + 1e-12)


def test_the_bound_is_the_quotient_of_both_clopper_pearson_bounds() -> None:
    def observe(prf: KeyedPrf, pseudonyms: NDArray[np.uint64], side: int) -> NDArray[np.int64]:
        # The last column is the key's: without it, the observer would see that another key changes nothing.
        fields = {"purpose": 3, "indicator": 0, "plan_version": 1}
        keyed = prf.below(pseudonyms, bound=2**62, value=0, **fields).astype(np.int64)
        runs = pseudonyms.astype(np.int64) // 2
        supports = (runs % 10 < (7, 2)[side]).astype(np.int64)
        return np.column_stack((0 * runs, supports, 0 * runs, 0 * runs, keyed))

    target = Target(
        mechanism="known",
        unit="x",
        epsilon_certified=Decimal(2),
        observe=observe,
        summarise=lambda reports: reports[:, :4],
    )
    result = attack(target, runs=2_000, confidence=0.9, key=KEY)
    exact = log(beta.ppf(0.05, 700, 301) / beta.ppf(0.95, 201, 800))
    assert result.epsilon_lower_bound == pytest.approx(exact, rel=1e-4)


def test_days_of_loloha_have_the_bound_for_any_sequence() -> None:
    channel = build_channel("loloha", epsilon=Fraction(1), epsilon_1=None, domain_size=3)
    assert isinstance(channel, TwoRoundHash)
    target = channel_target("loloha", channel, pairs=day_values(4, domain_size=3), unit="x")
    assert target.epsilon_certified == certify_reports(channel, reports=[4]).epsilon_sequence


def test_no_hits_prove_nothing() -> None:
    assert clopper_pearson_low(0, n=10, miss=0.025) == 0


def test_the_bound_holds_as_often_as_it_says() -> None:
    target = grr(domain_size=2)
    above = sum(
        not attack(target, runs=2_000, confidence=0.5, key=bytes([i] * 16)).is_within for i in range(200)
    )
    # Each of the two bounds fails in a quarter of the attacks; both together in far fewer than half.
    assert 5 < above < 80


def test_the_command_prints_one_json_value(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["audit", "l-osue", "--epsilon", "2", "--domain-size", "5", "--reports", "3"]
    assert main([*arguments, "--runs", "4000", "--key", KEY.hex()]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert set(printed) == {
        "mechanism",
        "unit",
        "runs",
        "event",
        "epsilon_lower_bound",
        "confidence",
        "epsilon_certified",
    }
    assert printed["unit"] == "3 reports of one value"
    assert 1 < printed["epsilon_lower_bound"] < float(printed["epsilon_certified"]) < 2


def test_the_command_attacks_fakes(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["audit", "rsrfd-grr", "--epsilon", "1", "--domain-size", "2", "3", "--unit", "attribute"]
    assert main([*arguments, "--shares", "balanced", "--runs", "40000", "--key", KEY.hex()]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["unit"] == "attribute"
    assert 0.7 < printed["epsilon_lower_bound"] < float(printed["epsilon_certified"]) <= 1


@pytest.mark.parametrize("days", [[], ["--days", "3"]])
def test_the_command_attacks_plans(days: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for mechanism in PLANS:
        arguments = ["audit", mechanism, "--epsilon", "1", "--domain-size", "2", "3", *days]
        assert main([*arguments, "--runs", "4000", "--key", KEY.hex()]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert printed["unit"] == "profile"
        assert float(printed["epsilon_certified"]) == pytest.approx(3 if days else 1)
        assert printed["epsilon_lower_bound"] > 0.4


def test_the_command_weighs_indicators_and_takes_a_unit(capsys: pytest.CaptureFixture[str]) -> None:
    bounds = []
    # Both indicators lose the same: the first one differs, which nearly all or nearly none are asked.
    for weights in (["9.5", "1"], ["1", "9999"]):
        arguments = ["audit", "smp-oue", "--epsilon", "1", "--domain-size", "2", "3", "--weights", *weights]
        assert main([*arguments, "--unit", "attribute", "--runs", "20000", "--key", KEY.hex()]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert printed["unit"] == "attribute"
        bounds.append(printed["epsilon_lower_bound"])
    assert 0.8 < bounds[0] < 1
    assert bounds[1] < 0.2


def test_the_command_passes_a_horizon_and_a_tuning_on(capsys: pytest.CaptureFixture[str]) -> None:
    for setting in (["--horizon", "3"], ["--tuning", "paper"]):
        arguments = ["audit", "l-grr", "--epsilon", "2", "--domain-size", "3", "--reports", "3", *setting]
        assert main([*arguments, "--runs", "4000", "--key", KEY.hex()]) == 0
        certified = float(json.loads(capsys.readouterr().out)["epsilon_certified"])
        assert certified == pytest.approx(1) if "--horizon" in setting else certified > 1.2


def test_the_command_fails_if_the_certificate_is_broken(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ldp.__main__.attack", partial(attack, prf_of=keyless))
    arguments = ["audit", "smp-grr", "--epsilon", "1", "--domain-size", "3", "4", "--days", "2"]
    assert main([*arguments, "--runs", "4000"]) == 1
    assert json.loads(capsys.readouterr().out)["unit"] == "profile"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["grr", "--domain-size", "1"], "domain_size must be >= 2, got 1"),
        (["grr", "--domain-size", "3", "4"], "domain_size of grr must be one number, got [3, 4]"),
        (["grr", "--domain-size", "3", "--epsilon-1", "0.5"], "epsilon_1 must be absent for grr, got 1/2"),
        (["grr", "--domain-size", "3", "--unit", "profile"], "unit must be absent for grr, got profile"),
        (
            ["smp-grr", "--domain-size", "3", "--shares", "equal"],
            "shares must be absent for smp-grr, got equal",
        ),
        (["grr", "--domain-size", "3", "--sampled", "2"], "sampled must be absent for grr, got 2"),
        (["dbitflip", "--domain-size", "3", "--sampled", "4"], "sampled must be in [1, 3], got 4"),
        (["rsfd-suez", "--domain-size", "3", "--days", "2"], "days must be absent for rsfd-suez, got 2"),
        (["rsfd-adp", "--domain-size", "3", "--reports", "2"], "reports must be absent for rsfd-adp, got 2"),
        (["grr", "--domain-size", "3", "--weights", "2"], "weights must be absent for grr, got "),
        (["smp-adp", "--domain-size", "3", "--weights", "1", "2"], "weights must be of 1 indicators, got 2"),
        (["spl-grr", "--domain-size", "3", "--weights", "1"], "weight of indicator-0 must be absent"),
        (["smp-oue", "--domain-size", "3", "--tuning", "paper"], "tuning must be absent for smp-oue"),
        (["l-sue", "--domain-size", "3", "--tuning", "paper"], "tuning must be absent for l-sue, got paper"),
        (
            ["allomfree", "--domain-size", "3", "--horizon", "2"],
            "horizon must be absent for allomfree, got 2",
        ),
        (["smp-grr", "--domain-size", "3", "--reports", "2"], "reports must be absent for smp-grr, got 2"),
        (["grr", "--domain-size", "3", "--runs", "3"], "runs must be >= 4, got 3"),
        (["grr", "--domain-size", "3", "--confidence", "1"], "confidence must be in (0, 1), got 1.0"),
    ],
)
def test_the_command_refuses(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["audit", *arguments, "--epsilon", "1"]) == 2
    assert message in capsys.readouterr().err


def test_an_indicator_without_certificate_is_refused() -> None:
    channel = grr_channel(epsilon=Fraction(1), domain_size=2)
    with pytest.raises(LdpError, match=r"distinct values must be in \[1, 2\], got 3"):
        channel_target("grr", channel, pairs=[(0, 1), (1, 0), (2, 1)], unit="x")
