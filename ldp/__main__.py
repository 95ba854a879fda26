"""Command line of the library: ``python -m ldp audit MECHANISM --epsilon E --domain-size K ...``."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from typing import Any, Final, get_args

from ldp.errors import LdpError
from ldp.kernels.entropy import KeyedPrf
from ldp.privacy.first_reports import HASH_CELLS
from ldp.privacy.moves import DEFAULT_MOVES, Items, MoveSpec
from ldp.privacy.plan_requests import IndicatorRequest, build_plan
from ldp.privacy.plans import RENEWED, STREAM, Kind, Mechanism
from ldp.privacy.slots import slot_noise
from ldp.protocols.adaptive import adp_channel
from ldp.protocols.bit_flip import bit_flip_channel
from ldp.protocols.channels import WORD, Unit, grr_channel
from ldp.protocols.fake_data import Shares, fake_data_channel, prior_fake_data_channel
from ldp.protocols.hadamard import hadamard_channel
from ldp.protocols.hashing import blh_channel, olh_channel
from ldp.protocols.histogram import histogram_channel
from ldp.protocols.projective import projective_channel
from ldp.protocols.subset import subset_channel
from ldp.protocols.two_round import Tuning, lgrr_channel, loloha_channel
from ldp.protocols.two_round_unary import allomfree_channel, lue_channel
from ldp.protocols.unary import oue_channel, sue_channel, the_channel
from ldp.research.arguments import count, key, number
from ldp.research.audit import AuditChannel, AuditResult, Target, attack, channel_target, day_values
from ldp.research.audit_fakes import fake_target
from ldp.research.audit_plans import plan_target
from ldp.research.audit_slots import attack_slots

ONE_ROUND: Final[dict[str, Callable[..., AuditChannel]]] = {
    "grr": grr_channel,
    "sue": sue_channel,
    "oue": oue_channel,
    "adp": adp_channel,
    "the": the_channel,
    "she": histogram_channel,
    "blh": blh_channel,
    "olh": olh_channel,
    "subset": subset_channel,
    "hadamard": hadamard_channel,
    "projective": projective_channel,
}
TWO_ROUNDS: Final[dict[str, Callable[..., AuditChannel]]] = {
    "l-grr": lgrr_channel,
    "l-sue": partial(lue_channel, "l-sue"),
    "l-oue": partial(lue_channel, "l-oue"),
    "l-osue": partial(lue_channel, "l-osue"),
    "l-soue": partial(lue_channel, "l-soue"),
    "allomfree": allomfree_channel,
    "loloha": loloha_channel,
    "biloloha": partial(loloha_channel, buckets=2),
}

BIT_FLIP: Final = "dbitflip"
# Items of a day of which a report names one, by the name of the attack.
OF_DAY: Final[dict[str, Items]] = {"moves": "moves", "visited-zones": "places", "visited-pairs": "pairs"}
FAKES: Final = ("rsfd-grr", "rsfd-ouez", "rsfd-suez", "rsfd-adp", "rsfd-ouer", "rsfd-suer")
PRIOR_FAKES: Final = ("rsrfd-grr", "rsrfd-ouer", "rsrfd-suer")

_PLANS: Final[tuple[Mechanism, ...]] = get_args(Mechanism)
_SETTINGS: Final[dict[str, Sequence[str]]] = {
    "sampled": (BIT_FLIP,),
    "epsilon_1": tuple(TWO_ROUNDS),
    "horizon": tuple(name for name in TWO_ROUNDS if name != "allomfree"),
    "tuning": (BIT_FLIP, "l-grr", "allomfree", "loloha", "biloloha"),
}  # which mechanisms take them
_OF_PLANS: Final = ("window_days", "epsilon_first", "hash_cells", "regions", "sensitive")


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack a mechanism and write the result as JSON; 0 = not broken, 1 = broken, 2 = bad arguments."""
    options = _parser().parse_args(arguments)
    try:
        result = _slots_attacked(options) if options.command == "audit-slots" else _attacked(options)
    except LdpError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(json.dumps(result.to_json(), indent=2) + "\n")
    return 0 if result.is_within else 1


def _attacked(options: argparse.Namespace) -> AuditResult:
    secret = os.urandom(16) if options.key is None else options.key
    return attack(_target(options), runs=options.runs, confidence=options.confidence, key=secret)


def build_channel(
    mechanism: str, *, epsilon: Fraction, domain_size: int, epsilon_1: Fraction | None = None, **settings: Any
) -> AuditChannel:
    """Channel of a mechanism by its name.

    Parameters
    ----------
    mechanism : str; in ONE_ROUND or TWO_ROUNDS, or BIT_FLIP
    epsilon : Fraction; of one report, or (two rounds) of any number of reports of one value
    domain_size : int
    epsilon_1 : Fraction or None; two rounds only: of the first `horizon` reports; None takes half of epsilon
    settings : None takes what the channel's function takes by default
        sampled : int; BIT_FLIP only: values that one person answers about; None takes all
        horizon : int; two rounds, but not ALLOMFREE
        tuning : "exact" or "paper"; BIT_FLIP and two rounds of GRR, also behind a hash or in ALLOMFREE

    Raises
    ------
    LdpError : another mechanism is given a setting, or the channel refuses a parameter
    """
    given = {name: value for name, value in settings.items() if value is not None}
    if epsilon_1 is not None:
        given["epsilon_1"] = epsilon_1
    for name, value in given.items():
        if mechanism not in _SETTINGS[name]:
            raise LdpError(f"{name} must be absent for {mechanism}, got {value}")
    if mechanism in TWO_ROUNDS:
        budgets = {"epsilon_inf": epsilon, "epsilon_1": epsilon / 2} | given
        return TWO_ROUNDS[mechanism](domain_size=domain_size, **budgets)
    if mechanism == BIT_FLIP:
        return bit_flip_channel(epsilon=epsilon, domain_size=domain_size, **{"sampled": domain_size} | given)
    return ONE_ROUND[mechanism](epsilon=epsilon, domain_size=domain_size)


def build_fake_target(
    mechanism: str, *, epsilon: Fraction, unit: Unit, domain_sizes: Sequence[int], shares: Shares
) -> Target:
    """Target of RS+FD or RS+RFD by its name; LdpError if the channel refuses a parameter.

    Parameters
    ----------
    mechanism : str; in FAKES or PRIOR_FAKES; of the latter, prior weights of k values are k, k - 1, ..., 1
    epsilon : Fraction; nominal, for the unit
    unit : "profile" or "attribute"
    domain_sizes : sequence of int, shape (d,)
    shares : "equal" or "balanced"
    """
    protocol: Any = mechanism.partition("-")[2]
    promise: dict[str, Any] = {"epsilon": epsilon, "unit": unit, "shares": shares}
    if mechanism in FAKES:
        channel = fake_data_channel(protocol, domain_sizes=domain_sizes, **promise)
        return fake_target(mechanism, channel, unit=unit)
    priors = [falling_prior(k) for k in domain_sizes]
    return fake_target(mechanism, prior_fake_data_channel(protocol, priors=priors, **promise), unit=unit)


def falling_prior(domain_size: int) -> tuple[int, ...]:
    """Weights out of 2**64 proportional to k, k - 1, ..., 1; the first takes what rounding leaves."""
    total = domain_size * (domain_size + 1) // 2
    rest = [WORD * weight // total for weight in range(domain_size - 1, 0, -1)]
    return (WORD - sum(rest), *rest)


def _target(options: argparse.Namespace) -> Target:
    if options.unit == "window" and options.mechanism != STREAM:
        raise LdpError(f"unit window is for {STREAM}, got {options.mechanism}")
    if options.mechanism in OF_DAY:
        return _moves_target(options)
    _refuse(options, "moves")
    # With shares, the library's own reports are attacked: a plan asks all alike.
    if options.mechanism in _PLANS and not (options.mechanism in FAKES and options.shares):
        return _plan_target(options)
    _refuse(options, "weights", *_OF_PLANS)
    if options.mechanism in (*FAKES, *PRIOR_FAKES):
        _refuse(options, "reports", "days", *_SETTINGS)
        return build_fake_target(
            options.mechanism,
            epsilon=Fraction(options.epsilon),
            unit=options.unit or "profile",
            domain_sizes=options.domain_size,
            shares=options.shares or "equal",
        )
    _refuse(options, "unit", "shares")
    return _channel_target(options)


def _channel_target(options: argparse.Namespace) -> Target:
    if len(options.domain_size) != 1:
        raise LdpError(f"domain_size of {options.mechanism} must be one number, got {options.domain_size}")
    domain_size: int = options.domain_size[0]
    channel = build_channel(
        options.mechanism,
        epsilon=Fraction(options.epsilon),
        domain_size=domain_size,
        epsilon_1=None if options.epsilon_1 is None else Fraction(options.epsilon_1),
        sampled=options.sampled,
        horizon=options.horizon,
        tuning=options.tuning,
    )
    if options.days is not None:
        pairs = day_values(options.days, domain_size=domain_size)
        unit = f"{options.days} days with {min(options.days, domain_size)} distinct values"
    else:
        reports = options.reports or 1
        pairs = [(0, 1)] * reports
        unit = "attribute" if reports == 1 else f"{reports} reports of one value"
    return channel_target(options.mechanism, channel, pairs=pairs, unit=unit)


def _plan_target(options: argparse.Namespace) -> Target:
    _refuse(options, "reports", "shares", *_SETTINGS)
    sizes = options.domain_size
    weights = options.weights or [None] * len(sizes)
    if len(weights) != len(sizes):
        raise LdpError(f"weights must be of {len(sizes)} indicators, got {len(weights)}")
    # Values that last have a report for each day, too, where it is renewed.
    kind: Kind = "daily" if options.days and options.mechanism != RENEWED else "static"
    requests = [
        IndicatorRequest(slug=f"indicator-{index}", kind=kind, domain_size=size, weight=weight)
        for index, (size, weight) in enumerate(zip(sizes, weights, strict=True))
    ]
    requests[0] = replace(
        requests[0], regions=tuple(options.regions or ()), sensitive=tuple(options.sensitive or ())
    )
    plan = build_plan(
        mechanism=options.mechanism,
        unit="attribute" if options.unit == "attribute" else "profile",
        version=1,
        days=options.days or 1,
        epsilon=options.epsilon,
        indicators=requests,
        epsilon_first=options.epsilon_first,
        hash_cells=options.hash_cells,
        window_days=options.window_days,
    )
    return plan_target(plan, unit=options.unit)


def _moves_target(options: argparse.Namespace) -> Target:
    """Target of a plan with one indicator of moves between the places, or of visits to them."""
    _refuse(options, "reports", "shares", "weights", *_SETTINGS, *_OF_PLANS)
    if len(options.domain_size) != 1:
        name, sizes = options.mechanism, options.domain_size
        raise LdpError(f"domain_size of {name} must be one number of places, got {sizes}")
    per_day, items = options.moves or DEFAULT_MOVES, OF_DAY[options.mechanism]
    moves = MoveSpec(places=options.domain_size[0], per_day=per_day, items=items)
    request = IndicatorRequest(slug=items, kind="daily", domain_size=moves.size, moves=moves)
    plan = build_plan(
        mechanism="smp-grr",
        unit=options.unit or "profile",
        version=1,
        days=options.days or 1,
        epsilon=options.epsilon,
        indicators=[request],
    )
    return replace(plan_target(plan), mechanism=options.mechanism)


def _slots_attacked(options: argparse.Namespace) -> AuditResult:
    noise = slot_noise(
        epsilon_day=Fraction(options.epsilon_day),
        delta=Fraction(options.delta),
        slots_per_day=options.slots_per_day,
        levels=options.levels,
    )
    return attack_slots(
        noise,
        slots=options.slots or options.slots_per_day,
        runs=options.runs,
        confidence=options.confidence,
        prf=KeyedPrf(os.urandom(16) if options.key is None else options.key),
    )


def _refuse(options: argparse.Namespace, *names: str) -> None:
    for name in names:
        if getattr(options, name) is not None:
            raise LdpError(f"{name} must be absent for {options.mechanism}, got {getattr(options, name)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m ldp", description="Tools for local differential privacy."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    audit = commands.add_parser(
        "audit", help="attack a mechanism, and print a lower bound on what it reveals"
    )
    names = dict.fromkeys([*ONE_ROUND, BIT_FLIP, *TWO_ROUNDS, *FAKES, *PRIOR_FAKES, *_PLANS, *OF_DAY])
    audit.add_argument("mechanism", choices=list(names))
    audit.add_argument(
        "--epsilon",
        type=number,
        required=True,
        help="epsilon of one report. For two rounds: of any number of reports of one value. For spl-grr: "
        "of the profile (with --days, of one day). For fakes: of the unit (for a profile with "
        "--days, of one day)",
    )
    size_help = "number of values (plans and fakes: of each indicator; moves and visits: of places)"
    audit.add_argument("--domain-size", type=int, nargs="+", required=True, help=size_help)
    _add_settings(audit)
    length = audit.add_mutually_exclusive_group()
    length.add_argument("--reports", type=count, help="number of reports of one value")
    length.add_argument(
        "--days", type=count, help="number of days, each with a value; for plans, makes the indicators daily"
    )
    _add_runs(audit, runs=100_000)
    slots = commands.add_parser("audit-slots", help="attack the noise on counts by time slot and zone")
    slots.add_argument("--epsilon-day", type=number, required=True)
    slots.add_argument("--delta", type=number, default=Decimal("0.000001"))
    slots.add_argument("--slots-per-day", type=int, default=48)
    slots.add_argument("--levels", type=int, default=1)
    slots.add_argument("--slots", type=count, help="number of slots of the person (default: those of a day)")
    _add_runs(slots, runs=2_000)
    return parser


def _add_runs(audit: argparse.ArgumentParser, *, runs: int) -> None:
    audit.add_argument("--runs", type=int, default=runs, help="number of simulated subscribers per input")
    audit.add_argument("--confidence", type=float, default=0.95)
    audit.add_argument("--key", type=key, help="32 hexadecimal digits (default: random)")


def _add_settings(audit: argparse.ArgumentParser) -> None:
    """Options that only some mechanisms take."""
    audit.add_argument(
        "--epsilon-1",
        type=number,
        help="two rounds: epsilon of one report or --horizon reports (default: half)",
    )
    audit.add_argument(
        "--horizon", type=count, help="two rounds: reports that --epsilon-1 covers (default: 1)"
    )
    audit.add_argument(
        "--tuning",
        choices=get_args(Tuning),
        help="dbitflip and two rounds of GRR: how to choose the probabilities",
    )
    audit.add_argument(
        "--sampled", type=int, help="dbitflip: number of values about which a person answers (default: all)"
    )
    audit.add_argument(
        "--unit",
        choices=[*get_args(Unit), "window"],
        help="plans and fakes: privacy unit (default: profile); smp-stream also: values of --window-days",
    )
    audit.add_argument(
        "--moves",
        type=count,
        help="moves, visited-zones, visited-pairs: number of them a day with full weight (default: 6)",
    )
    audit.add_argument(
        "--weights",
        type=number,
        nargs="+",
        help="smp: how often to ask each indicator",
    )
    audit.add_argument(
        "--shares",
        choices=get_args(Shares),
        help="fakes: how often an indicator is answered; default: audit those that plans know as plans",
    )
    audit.add_argument(
        "--window-days",
        type=int,
        help="smp-stream: days in a row on which a person answers once (default: 7)",
    )
    audit.add_argument(
        "--epsilon-first", type=number, help="smp-loloha and smp-allomfree: epsilon of one report"
    )
    audit.add_argument(
        "--hash-cells", choices=HASH_CELLS, help="smp-loloha: cells of daily values (default: two)"
    )
    audit.add_argument(
        "--regions", type=int, nargs="+", help="plans: region of each value of the first indicator, from 0"
    )
    audit.add_argument(
        "--sensitive", type=int, nargs="+", help="plans: sensitive values of the first indicator, from 0"
    )


if __name__ == "__main__":
    sys.exit(main())
