"""The decisions of the sanitiser, one subscriber at a time, from keyed blocks written out."""

from decimal import Decimal, localcontext

from ldp import PlanSpec
from tests.ldp.exact import reference_words

CHOOSE_INDICATOR, CHOOSE_DAYS, ANSWER = 1, 2, 3
TWO_64 = 2**64


def threshold(epsilon: Decimal, domain_size: int) -> int:
    """Largest whole number of 2**-64 that is a probability of at most e^eps / (e^eps + k - 1)."""
    with localcontext(prec=80):
        power = epsilon.exp()
        return int(power / (power + domain_size - 1) * TWO_64)


def below(key: bytes, pseudonym: int, *, bound: int, purpose: int, indicator: int = 0, value: int = 0) -> int:
    """First unbiased word of the blocks with counter 0, 1, ..."""
    for counter in range(100):
        word, _ = reference_words(
            key, pseudonym=pseudonym, purpose=purpose, indicator=indicator, plan_version=0, value=value,
            counter=counter,
        )  # fmt: skip
        if word < TWO_64 // bound * bound:
            return word % bound
    raise AssertionError("a hundred redraws")


def asked(key: bytes, pseudonym: int, plan: PlanSpec) -> int:
    """Indicator that a subscriber answers under a sampled plan."""
    if plan.shares is not None:
        fields = {"purpose": CHOOSE_INDICATOR, "indicator": 0, "plan_version": 0, "value": 0, "counter": 0}
        word, _ = reference_words(key, pseudonym=pseudonym, **fields)
        return next(i for i in range(plan.d) if word < sum(plan.shares[: i + 1]))
    return below(key, pseudonym, bound=plan.d, purpose=CHOOSE_INDICATOR)


def answer_days(key: bytes, pseudonym: int, plan: PlanSpec, indicator: int) -> set[int]:
    """Days, from 1, on which a subscriber answers a daily indicator: the first draws of Fisher and Yates."""
    days = list(range(1, plan.days + 1))
    wanted = plan.indicators[indicator].max_values or plan.days
    if wanted == plan.days:
        return set(days)
    for step in range(wanted):
        drawn = step + below(
            key, pseudonym, bound=plan.days - step, purpose=CHOOSE_DAYS, indicator=indicator, value=step
        )
        days[step], days[drawn] = days[drawn], days[step]
    return set(days[:wanted])


def answer(key: bytes, pseudonym: int, plan: PlanSpec, indicator: int, code: int) -> int:
    """GRR: the code where the first word is below the threshold, else another one by the second word."""
    spec = plan.indicators[indicator]
    epsilon = Decimal(spec.epsilon.numerator) / Decimal(spec.epsilon.denominator)
    others = spec.domain_size - 1
    for counter in range(100):
        first, second = reference_words(
            key, pseudonym=pseudonym, purpose=ANSWER, indicator=indicator, plan_version=plan.version,
            value=code, counter=counter,
        )  # fmt: skip
        if counter == 0 and first < threshold(epsilon, spec.domain_size):
            return code
        if second < TWO_64 // others * others:
            return second % others + (second % others >= code)
    raise AssertionError("a hundred redraws")
