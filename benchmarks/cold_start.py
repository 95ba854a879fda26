"""First use in a fresh process: import ldp, and call every kernel that the product needs once.

    python -m benchmarks.cold_start

Prints nothing; the caller measures. The first run after a change compiles, the next finds the cache.
"""

from decimal import Decimal
from typing import get_args

import numpy as np

import ldp
from ldp.keyed.tallying import tally_reports
from ldp.privacy.plans import STREAM, Mechanism

_DAYS = 7


def main() -> None:
    """Sanitise and tally a few subscribers under each mechanism of the study file."""
    data = np.arange(64, dtype=np.uint8)
    pseudonyms = ldp.cmac64(bytes(16), data, np.arange(0, 65, 8))
    presence = np.full(8, 0b1010101, np.uint64)
    for mechanism in get_args(Mechanism):
        plan = make_plan(mechanism)
        sanitiser = ldp.Sanitiser(plan, ldp.KeyedPrf(bytes(16)))
        values = [np.arange(8, dtype=np.int32) % spec.domain_size for spec in plan.indicators]
        delta = ldp.Delta.zero(plan)
        ldp.tally_visitors(presence, delta.visitors, sign=1)
        for index, reports in enumerate(sanitiser.reports(pseudonyms, values, day=1)):
            is_daily = plan.indicators[index].kind == "daily"
            if is_daily:
                sanitiser.answer_days(index, pseudonyms)
            tally_reports(
                presence,
                np.repeat(reports[:, np.newaxis], _DAYS, axis=1) if is_daily else reports,
                delta,
                index=index,
                is_unary=plan.is_unary(index),
                sign=1,
            )


def make_plan(mechanism: Mechanism) -> ldp.PlanSpec:
    """Make a plan with indicators of both kinds."""
    cap = {} if mechanism == STREAM else {"max_values": 3}
    requests = [
        ldp.IndicatorRequest(slug="gender", kind="static", domain_size=3),
        ldp.IndicatorRequest(slug="country", kind="static", domain_size=37),
        ldp.IndicatorRequest(slug="duration", kind="daily", domain_size=10, **cap),
    ]
    return ldp.build_plan(
        mechanism=mechanism, unit="profile", version=1, days=_DAYS, epsilon=Decimal(1), indicators=requests
    )


if __name__ == "__main__":
    main()
