"""Plans of tests, and what the sanitiser decides for one subscriber, from keyed blocks written out."""

from decimal import Decimal
from itertools import count

from ldp import IndicatorRequest, build_plan
from tests.ldp.exact import reference_words

CHOOSE_INDICATOR = 1


def plan_of(
    mechanism, indicators, *, days: int, version: int = 1, epsilon: str = "1", location=None, tallies=()
):
    """Indicators are kind, number of values, and then the most answers, and the scale of a number."""
    more = ("max_values", "scale")
    requests = [
        IndicatorRequest(slug=f"i{i}", kind=kind, domain_size=size, **dict(zip(more, rest, strict=False)))
        for i, (kind, size, *rest) in enumerate(indicators)
    ]
    return build_plan(
        mechanism=mechanism, unit="profile", version=version, days=days, epsilon=Decimal(epsilon),
        indicators=requests, location=location, tallies=tallies,
    )  # fmt: skip


def asked(key: bytes, pseudonym: int, plan) -> int:
    """Indicator that a subscriber answers under a sampled plan: by the first word that is not biased."""
    fields = {"purpose": CHOOSE_INDICATOR, "indicator": 0, "plan_version": 0, "value": 0}
    words = (reference_words(key, pseudonym=pseudonym, **fields, counter=counter)[0] for counter in count())
    if plan.shares is not None:
        word = next(words)
        return next(i for i in range(plan.d) if word < sum(plan.shares[: i + 1]))
    return next(word % plan.d for word in words if word < 2**64 // plan.d * plan.d)
