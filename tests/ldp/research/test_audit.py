"""The audit: no mechanism loses more than its certificate, and planted faults are found."""

import dataclasses
import json
from decimal import Decimal
from fractions import Fraction
from functools import partial
from math import log
from typing import get_args

import numpy as np
import pytest
from scipy.stats import beta

import ldp
from ldp import __main__ as command
from ldp.codes import NO_ANSWER
from ldp.keyed.noise.slots import slot_noise_counts
from ldp.privacy.plans import Mechanism
from ldp.privacy.slots import slot_noise
from ldp.protocols.channels import WORD
from ldp.protocols.numbers.threshold import Scale
from ldp.research import audit_slots
from ldp.research.audit import Target, attack, channel_target, day_values
from ldp.research.audit_fakes import fake_target
from ldp.research.audit_plans import plan_target
from ldp.research.audit_slots import attack_slots
from ldp.research.binomial import clopper_pearson_low
from tests.ldp.exact import make_plan
from tests.ldp.privacy.test_joint import DAILY_PAIR, joint_plan, number_plan
from tests.ldp.privacy.test_moves import moves_plan
from tests.ldp.privacy.test_renewed import renews
from tests.ldp.privacy.test_repeated import hashes, plan_of
from tests.ldp.privacy.test_streams import stream

KEY = bytes(range(16))
PLANS: tuple[Mechanism, ...] = get_args(Mechanism)
PAIR = [(0, 1)]
BIT_FLIP = command.BIT_FLIP
FIELDS = {"purpose": 3, "indicator": 0, "plan_version": 1}
FAKE_PLANS = pytest.mark.parametrize("mechanism", ["rsfd-grr", "rsfd-ouez", "rsfd-adp"])
DAILY = [("daily", 2), ("daily", 3)]


class DroppedValuePrf(ldp.KeyedPrf):
    """Fault: a changed value gets the same bits."""

    def runs(self, pseudonyms, **fields):
        return super().runs(pseudonyms, **fields | {"values": 0})


def keyless(key):
    del key
    return ldp.KeyedPrf(bytes(16))


def target_of(mechanism, channel, pairs=PAIR) -> Target:
    return channel_target(mechanism, channel, pairs=pairs, unit="x")


def grr(*, days: int = 1, domain_size: int = 4) -> Target:
    channel = ldp.grr_channel(epsilon=Fraction(1), domain_size=domain_size)
    return target_of("grr", channel, day_values(days, domain_size=domain_size))


def sold_as(target: Target, other: Target) -> Target:
    return dataclasses.replace(target, epsilon_certified=other.epsilon_certified)


ATTACK = partial(attack, runs=20_000, confidence=0.99, key=KEY)


@pytest.mark.parametrize(
    ("mechanism", "settings"),
    [
        *[(each, {}) for each in (*command.ONE_ROUND, BIT_FLIP, *command.TWO_ROUNDS)],
        *[(each, {"domain_size": 16}) for each in ("adp", "allomfree")],  # with bits
        *[(each, {"tuning": "paper", "domain_size": 5}) for each in ("l-grr", "allomfree", "loloha")],
        (BIT_FLIP, {"tuning": "paper", "sampled": 1, "domain_size": 5}),
    ],
)
def test_one_report_loses_about_its_certificate_and_no_more(mechanism, settings) -> None:
    channel = command.build_channel(mechanism, epsilon=Fraction(1), **{"domain_size": 3} | settings)
    result = ATTACK(target_of(mechanism, channel), runs=50_000)
    assert result.is_within
    # One report reaches its epsilon; a noisy bound of an event that the observer missed would not.
    assert result.epsilon_lower_bound > 0.7 * float(channel.epsilon)


@pytest.mark.parametrize("mechanism", ["l-grr", "l-osue", "biloloha"])
def test_the_first_reports_together_keep_their_epsilon(mechanism: str) -> None:
    settings = {"epsilon": Fraction(2), "epsilon_1": Fraction(1), "domain_size": 3}
    first = target_of(mechanism, command.build_channel(mechanism, horizon=3, **settings), PAIR * 3)
    assert Decimal("0.999") < first.epsilon_certified <= 1
    result = ATTACK(first, runs=60_000)
    assert result.is_within
    assert result.epsilon_lower_bound > 0.75
    # The same as if each report had that epsilon: together they have more.
    each = target_of(mechanism, command.build_channel(mechanism, **settings), PAIR * 3)
    assert not ATTACK(sold_as(each, first)).is_within


@pytest.mark.parametrize("mechanism", PLANS)
@pytest.mark.parametrize(("kind", "unit"), [("static", "attribute"), ("daily", "profile")])
def test_no_plan_loses_more_than_its_certificate(mechanism, kind, unit) -> None:
    # The codes of ADP have two values here, its bits 17, which take two words.
    plan = make_plan((kind, 2), (kind, 17), mechanism=mechanism, days=2, unit=unit)
    target = plan_target(plan, unit=unit)
    assert target.epsilon_certified == getattr(ldp.certify(plan), f"epsilon_{unit}")
    result = ATTACK(target, runs=30_000)
    assert result.is_within
    # Of 17 codes, the few that tell are rare if epsilon is split.
    # Reports of both days that agree are rare, too.
    share = {"spl-grr": 0.55, "smp-allomfree": 0.5}.get(mechanism, 0.7)
    assert result.epsilon_lower_bound > share * float(target.epsilon_certified)


LITTLE = {"epsilon": Decimal("0.3")}  # so that what is found is of the combination
HASHED = {"days": 4, "epsilon": Decimal(2), "epsilon_first": Decimal("1.5")}
DESIGNS = {
    "joint": (lambda unit: joint_plan(LITTLE, LITTLE, unit=unit), 0.55),
    "joint over days": (
        lambda _: joint_plan(LITTLE, {"kind": "daily"} | LITTLE, DAILY_PAIR[2], days=2), 0.5
    ),
    "number": (lambda unit: number_plan(days=1 if unit == "attribute" else 4, unit=unit), 0.8),
    "moves": (lambda unit: moves_plan(days=2, unit=unit), 0.8),
    "visited pairs": (lambda unit: moves_plan(days=2, unit=unit, places=4, items="pairs"), 0.8),
    "questions": (lambda unit: plan_of(10, days=4, unit=unit), 0.8),
    "hashes": (lambda unit: hashes(10, unit=unit, **HASHED), 0.8),
    "renewed codes": (lambda unit: renews({"domain_size": 3}, unit=unit, **HASHED), 0.65),
    "renewed bits": (lambda unit: renews({"domain_size": 20}, unit=unit, **HASHED), 0.65),
    "class of a smaller epsilon": (
        lambda unit: make_plan(("static", 3), unit=unit, classes={"few": Decimal(1), "all": Decimal("0.5")})
        .of_class(1), 0.8
    ),
    "stream, one day of two": (lambda unit: stream(days=2, window_days=2, unit=unit), 0.9),
    "stream, both days": (lambda unit: stream(days=2, window_days=1, unit=unit), 0.9),
}  # fmt: skip


@pytest.mark.parametrize("unit", ["attribute", "profile"])
@pytest.mark.parametrize("design", DESIGNS)
def test_no_design_of_an_indicator_loses_more_than_its_certificate(design, unit) -> None:
    make, share = DESIGNS[design]
    plan = make(unit)
    target = plan_target(plan, unit=unit)
    result = attack(target, runs=30_000, confidence=0.99, key=bytes(16))
    assert result.is_within
    # Of one hashed value, the attack reads one report only.
    reads_one = plan.hashes_values and unit == "attribute"
    readable = plan.answer_channel(0).epsilon if reads_one else target.epsilon_certified
    assert result.epsilon_lower_bound > share * float(readable)


SLOTS = slot_noise(epsilon_day=Fraction(3), delta=Fraction(1, 100), slots_per_day=4, levels=1)


@pytest.mark.parametrize(("slots", "least"), [(1, 0.4), (4, 0.7)])
def test_slots_lose_no_more_than_their_certificate(slots: int, least: float) -> None:
    result = attack_slots(SLOTS, slots=slots, runs=4_000, confidence=0.99, prf=ldp.KeyedPrf(KEY))
    assert result.is_within
    assert result.epsilon_certified == (SLOTS.epsilon(days=1) if slots == 4 else SLOTS.epsilon_of_slot())
    assert result.epsilon_lower_bound > least


def test_the_command_audits_slots_and_refuses_more_than_a_day_has(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["audit-slots", "--epsilon-day", "3", "--delta", "0.01", "--slots-per-day", "4", "--runs", "100"]
    assert command.main(asked) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["epsilon_certified"] == str(SLOTS.epsilon(days=1))
    assert command.main([*asked, "--slots", "5"]) == 2
    assert "slots must be in [1, 4], got 5" in capsys.readouterr().err


def test_noise_of_slots_that_is_too_small_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def quartered(noise, **where):
        return slot_noise_counts(dataclasses.replace(noise, variance=noise.variance / 4), **where)

    monkeypatch.setattr(audit_slots, "slot_noise_counts", quartered)
    result = attack_slots(SLOTS, slots=4, runs=2_000, confidence=0.99, prf=ldp.KeyedPrf(KEY))
    assert not result.is_within


def test_the_bits_of_each_word_are_read() -> None:
    # Of 31 values, the last has a word for itself, and the first is in the first of three.
    target = plan_target(make_plan(("static", 31), mechanism="smp-oue"))
    reports = target.observe(ldp.KeyedPrf(KEY), np.arange(20_000, dtype=np.uint64), 0)
    assert reports.shape == (20_000, 3)
    assert target.summarise(reports)[:, 1].mean() == pytest.approx(0.5 * 0.73, abs=0.02)
    plan = make_plan(("static", 31), ("static", 31), mechanism="rsfd-ouez", unit="attribute")
    nothing = np.full((1, 6), NO_ANSWER, np.int64)
    assert plan_target(plan).summarise(nothing).tolist() == [[-1, 0, 0, 0]]


@FAKE_PLANS
def test_a_plan_that_hides_one_value_is_no_promise_for_a_profile(mechanism: Mechanism) -> None:
    plan = make_plan(("static", 2), ("static", 12), mechanism=mechanism, unit="attribute")
    profile = plan_target(plan, unit="profile")
    sold = sold_as(profile, plan_target(plan))
    assert sold.epsilon_certified <= 1
    assert not ATTACK(sold).is_within
    assert ATTACK(profile).is_within


@pytest.mark.parametrize("mechanism", ["smp-oue", "rsfd-grr", "rsfd-ouez"])
def test_faults_of_plans_over_days_are_caught(mechanism: Mechanism) -> None:
    two_days, one_day = (plan_target(make_plan(*DAILY, mechanism=mechanism, days=days)) for days in (2, 1))
    assert not ATTACK(sold_as(two_days, one_day)).is_within
    without_key = ATTACK(two_days, prf_of=keyless)
    assert not without_key.is_within
    assert "another key repeats them under the " in without_key.event


def test_two_answers_of_a_stream_in_one_window_are_caught() -> None:
    in_window, on_both = (plan_target(stream(days=2, window_days=window)) for window in (2, 1))
    assert in_window.epsilon_certified == ldp.certify(stream(days=2, window_days=2)).epsilon_window
    assert on_both.epsilon_certified == pytest.approx(2 * in_window.epsilon_certified)
    assert not ATTACK(sold_as(on_both, in_window)).is_within


def test_values_of_a_window_in_a_longer_stream_lose_its_certificate_and_further_days_more() -> None:
    plan = stream(days=6, window_days=2)
    window = plan_target(plan, unit="window")
    assert window.epsilon_certified == ldp.certify(plan).epsilon_window
    result = ATTACK(window)
    assert result.unit == "window"
    assert result.is_within
    assert result.epsilon_lower_bound > 0.9 * float(window.epsilon_certified)
    assert not ATTACK(sold_as(plan_target(plan), window)).is_within


@pytest.mark.parametrize("mechanism", ["smp-grr", "rsfd-grr"])
def test_answers_to_all_indicators_instead_of_one_are_caught(mechanism: Mechanism) -> None:
    honest = plan_target(make_plan(*DAILY, mechanism=mechanism, days=2))
    all_answer = plan_target(make_plan(*DAILY, mechanism="spl-grr", epsilon=Decimal(2), days=2))
    assert not ATTACK(dataclasses.replace(honest, observe=all_answer.observe)).is_within


ATTRIBUTE, PROFILE = ("attribute", "balanced"), ("profile", "equal")


@pytest.mark.parametrize(
    ("mechanism", "unit", "shares"),
    [(each, *ATTRIBUTE) for each in (*command.FAKES, *command.PRIOR_FAKES)]
    + [(each, *PROFILE) for each in ("rsfd-adp", "rsrfd-grr")],
)
def test_no_fakes_reveal_more_than_their_certificate(mechanism, unit, shares) -> None:
    settings = {"unit": unit, "domain_sizes": (2, 3, 2), "shares": shares}
    target = command.build_fake_target(mechanism, epsilon=Fraction(1), **settings)
    result = ATTACK(target, runs=25_000)
    assert result.is_within
    # With fakes of any value, the most telling reports of the other indicators are rare.
    assert "uer" in mechanism or result.epsilon_lower_bound > 0.5
    assert target.epsilon_certified <= 1
    assert "for a value of both: 0" in result.event


def test_a_code_that_is_never_a_fake_gives_its_answer_away() -> None:
    priors = [(WORD // 2, WORD // 2), (WORD // 2, 0, WORD // 2)]
    channel = ldp.prior_fake_data_channel("grr", epsilon=Fraction(1), unit="profile", priors=priors)
    result = ATTACK(fake_target("rsrfd-grr", channel, unit="attribute"), runs=200_000)
    assert 0.9 < result.epsilon_lower_bound < 1
    even = ldp.fake_data_channel("grr", epsilon=Fraction(1), unit="profile", domain_sizes=(2, 3))
    assert even.epsilon_attribute < Decimal("0.8")


def test_chance_is_not_taken_for_loss() -> None:
    # Thousands of outcomes that say nothing: some always seem to, in the half that chooses the event.
    def observe(prf, pseudonyms, side):
        drawn = prf.below(pseudonyms, bound=5_000, value=0, **FIELDS)
        return drawn.astype(np.int64)[:, None] * (0, 1, 0, 0)

    certified = Decimal("0.000001")
    told = {"observe": observe, "summarise": lambda x: x}
    silent = Target(mechanism="silent", unit="x", epsilon_certified=certified, **told)
    assert ATTACK(silent).is_within


@pytest.mark.parametrize(
    ("target", "fault", "least"),
    [
        (grr(), keyless, 2),
        (plan_target(make_plan(("static", 2), ("static", 3))), keyless, 2),
        (grr(days=2), DroppedValuePrf, 3),
        (plan_target(make_plan(("daily", 4), mechanism="spl-grr", days=2)), DroppedValuePrf, 3),
    ],
)
def test_noise_without_a_key_and_the_same_bits_for_changed_values_are_caught(target, fault, least) -> None:
    result = ATTACK(target, prf_of=fault)
    assert not result.is_within
    assert result.epsilon_lower_bound > least
    assert fault is not keyless or "another key repeats them under the " in result.event


@pytest.mark.parametrize("percent", [100, 101])
def test_p_off_by_one_percent_is_caught(percent: int) -> None:
    right = ldp.grr_channel(epsilon=Fraction(1), domain_size=2)
    real = ldp.GrrChannel(domain_size=2, threshold=right.threshold * percent // 100)
    target = sold_as(target_of("grr", real), target_of("grr", right))
    assert ATTACK(target, runs=1_000_000).is_within is (percent == 100)


@pytest.mark.parametrize(
    ("hits", "n"), [(1, 10), (5, 10), (10, 10), (3, 100_000), (36_000, 100_000), (499_000, 500_000)]
)
@pytest.mark.parametrize("miss", [0.025, 0.0005])
def test_clopper_pearson_is_the_beta_quantile_and_never_above(hits: int, n: int, miss: float) -> None:
    exact = beta.ppf(miss, hits, n - hits + 1)
    assert exact * (1 - 1e-5) < clopper_pearson_low(hits, n=n, miss=miss) <= exact * (1 + 1e-12)
    assert clopper_pearson_low(0, n=n, miss=miss) == 0


def test_the_bound_is_the_quotient_of_both_clopper_pearson_bounds() -> None:
    def observe(prf, pseudonyms, side):
        # The last column is the key's: without it, the observer would see that another key changes nothing.
        keyed = prf.below(pseudonyms, bound=2**62, value=0, **FIELDS).astype(np.int64)
        runs = pseudonyms.astype(np.int64) // 2
        supports = (runs % 10 < (7, 2)[side]).astype(np.int64)
        return np.column_stack((0 * runs, supports, 0 * runs, 0 * runs, keyed))

    told = {"observe": observe, "summarise": lambda reports: reports[:, :4]}
    target = Target(mechanism="known", unit="x", epsilon_certified=Decimal(2), **told)
    result = attack(target, runs=2_000, confidence=0.9, key=KEY)
    exact = log(beta.ppf(0.05, 700, 301) / beta.ppf(0.95, 201, 800))
    assert result.epsilon_lower_bound == pytest.approx(exact, rel=1e-4)


def run(capsys, *arguments: str) -> dict:
    assert command.main(["audit", *arguments, "--key", KEY.hex()]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_command_prints_one_json_value_and_passes_a_horizon_and_a_tuning_on(capsys) -> None:
    settings = ["--epsilon", "2", "--domain-size", "5", "--reports", "3", "--runs", "4000"]
    printed = run(capsys, "l-osue", *settings)
    keys = "mechanism unit runs event epsilon_lower_bound confidence epsilon_certified"
    assert set(printed) == set(keys.split())
    assert printed["unit"] == "3 reports of one value"
    assert 1 < printed["epsilon_lower_bound"] < float(printed["epsilon_certified"]) < 2
    assert float(run(capsys, "l-grr", *settings, "--horizon", "3")["epsilon_certified"]) == pytest.approx(1)
    assert float(run(capsys, "l-grr", *settings, "--tuning", "paper")["epsilon_certified"]) > 1.2


@pytest.mark.parametrize("days", [[], ["--days", "3"]])
def test_the_command_attacks_plans(days: list[str], capsys) -> None:
    for mechanism in ("smp-grr", "rsfd-adp"):
        printed = run(capsys, mechanism, "--epsilon", "1", "--domain-size", "2", "3", *days, "--runs", "4000")
        assert printed["unit"] == "profile"
        assert float(printed["epsilon_certified"]) == pytest.approx(3 if days else 1)
        assert printed["epsilon_lower_bound"] > 0.4


def test_the_command_weighs_indicators_and_takes_a_unit(capsys) -> None:
    settings = ["--epsilon", "1", "--domain-size", "2", "3", "--unit", "attribute", "--runs", "20000"]
    rows = (("9.5", "1"), ("1", "9999"))
    often, rarely = (run(capsys, "smp-oue", *settings, "--weights", *weights) for weights in rows)
    assert often["unit"] == "attribute"
    assert 0.8 < often["epsilon_lower_bound"] < 1
    assert rarely["epsilon_lower_bound"] < 0.2


@pytest.mark.parametrize(
    ("arguments", "certified"),
    [
        ("smp-stream --domain-size 2 --days 4 --window-days 2", 2),
        ("smp-stream --domain-size 2 --days 4 --window-days 2 --unit window", 1),
        ("smp-loloha --domain-size 6 --days 1 --epsilon-first 0.4 --hash-cells optimal", 0.4),
        ("smp-allomfree --domain-size 6 --days 1 --epsilon-first 0.4", 0.4),
        ("smp-grr --domain-size 6 3 --regions 0 0 0 1 1 1", 1),
        ("smp-grr --domain-size 6 3 --sensitive 1 4", 1),
    ],
)
def test_the_command_attacks_designs_of_plans(arguments: str, certified: float, capsys) -> None:
    printed = run(capsys, *arguments.split(), "--epsilon", "1", "--runs", "20000")
    assert float(printed["epsilon_certified"]) == pytest.approx(certified, rel=1e-3)
    assert printed["epsilon_lower_bound"] > 0.5 * certified


def test_the_command_fails_if_the_certificate_is_broken(capsys, monkeypatch) -> None:
    monkeypatch.setattr("ldp.__main__.attack", partial(attack, prf_of=keyless))
    arguments = ["audit", "smp-grr", "--epsilon", "1", "--domain-size", "3", "4", "--days", "2"]
    assert command.main([*arguments, "--runs", "4000"]) == 1
    assert json.loads(capsys.readouterr().out)["unit"] == "profile"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("grr --domain-size 1", "domain_size must be >= 2, got 1"),
        ("grr --domain-size 3 4", "domain_size of grr must be one number, got [3, 4]"),
        ("grr --domain-size 3 --epsilon-1 0.5", "epsilon_1 must be absent for grr, got 1/2"),
        ("grr --domain-size 3 --unit profile", "unit must be absent for grr, got profile"),
        ("smp-grr --domain-size 3 --shares equal", "shares must be absent for smp-grr, got equal"),
        ("grr --domain-size 3 --sampled 2", "sampled must be absent for grr, got 2"),
        ("dbitflip --domain-size 3 --sampled 4", "sampled must be in [1, 3], got 4"),
        ("rsfd-suez --domain-size 3 --days 2", "days must be absent for rsfd-suez, got 2"),
        ("rsfd-adp --domain-size 3 --reports 2", "reports must be absent for rsfd-adp, got 2"),
        ("grr --domain-size 3 --weights 2", "weights must be absent for grr, got "),
        ("smp-adp --domain-size 3 --weights 1 2", "weights must be of 1 indicators, got 2"),
        ("spl-grr --domain-size 3 --weights 1", "weight of indicator-0 must be absent"),
        ("smp-oue --domain-size 3 --tuning paper", "tuning must be absent for smp-oue"),
        ("l-sue --domain-size 3 --tuning paper", "tuning must be absent for l-sue, got paper"),
        ("allomfree --domain-size 3 --horizon 2", "horizon must be absent for allomfree, got 2"),
        ("smp-grr --domain-size 3 --reports 2", "reports must be absent for smp-grr, got 2"),
        ("smp-grr --domain-size 3 --window-days 2", "window_days must be absent under smp-grr"),
        ("smp-oue --domain-size 3 --unit window", "unit window is for smp-stream, got smp-oue"),
        ("rsrfd-grr --domain-size 3 --regions 0 0 1", "regions must be absent for rsrfd-grr"),
        ("moves --domain-size 3 --sensitive 1", "sensitive must be absent for moves"),
        (
            "smp-grr --domain-size 3 --epsilon-first 1",
            "epsilon_first and hash_cells must be absent under smp-grr",
        ),
        ("smp-grr --domain-size 3 --regions 0 1", "regions of indicator-0 must be of 3 categories, got 2"),
        ("grr --domain-size 3 --runs 3", "runs must be >= 4, got 3"),
        ("grr --domain-size 3 --confidence 1", "confidence must be in (0, 1), got 1.0"),
    ],
)
def test_the_command_refuses(arguments: str, message: str, capsys) -> None:
    assert command.main(["audit", *arguments.split(), "--epsilon", "1"]) == 2
    assert message in capsys.readouterr().err


def test_an_indicator_without_certificate_is_refused() -> None:
    channel = ldp.grr_channel(epsilon=Fraction(1), domain_size=2)
    with pytest.raises(ldp.LdpError, match=r"distinct values must be in \[1, 2\], got 3"):
        target_of("grr", channel, [(0, 1), (1, 0), (2, 1)])


def test_a_number_that_is_reported_once_loses_no_more_than_its_certificate() -> None:
    scale = Scale(cuts=(2, 4, 6), report="wave")
    number = ldp.IndicatorSpec(slug="spent", kind="static", domain_size=3, scale=scale, epsilon=Fraction(2))
    plan = ldp.PlanSpec(mechanism="smp-grr", unit="profile", version=1, days=2, indicators=(number,))
    target = plan_target(plan)
    result = ATTACK(target, runs=30_000)
    assert result.is_within
    assert result.epsilon_lower_bound > 0.85 * float(target.epsilon_certified)


def test_a_number_with_a_zone_loses_no_more_than_its_certificate() -> None:
    """Both change together: the profile's two inputs differ in the zone and in the side of every cut."""
    ask = {"kind": "daily", "epsilon": Fraction(1)}
    scale = Scale(cuts=(2, 4))
    plan = ldp.PlanSpec(
        mechanism="smp-grr", unit="profile", version=1, days=2, shares=(1, 1, 2**64 - 2),
        indicators=(
            ldp.IndicatorSpec(slug="zone", domain_size=2, **ask),
            ldp.IndicatorSpec(slug="stay", domain_size=2, scale=scale, **ask),
            ldp.IndicatorSpec(slug="both", domain_size=9, parts=("zone", "stay"), **ask),
        ),
    )  # fmt: skip
    target = plan_target(plan, unit="profile")
    assert target.epsilon_certified == ldp.certify(plan).epsilon_profile
    result = ATTACK(target, runs=30_000)
    assert result.is_within
    assert result.epsilon_lower_bound > 0.6 * float(target.epsilon_certified)
