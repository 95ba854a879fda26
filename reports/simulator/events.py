"""Expected error of numbers of events: sums of a day, a week and a month, by the formula of forecasts."""

from dataclasses import dataclass
from decimal import Decimal
from math import sqrt
from typing import Final

import numpy as np

from ldp import PlanSpec, build_plan, certify
from ldp.estimation.series.smoothing import numbers_of_events
from ldp.privacy.plan_requests import suited
from ldp.privacy.plans import OF_EVENTS
from reports.simulator.model import Setting

DAYS: Final = {"day": 1, "week": 7, "month": 30}


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """Error of an indicator.

    deviations : of the estimated number of events of a category of average size, by the keys of `DAYS`
    """

    name: str
    categories: int
    deviations: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventErrors:
    """Errors of a plan of events; epsilon_person is None without a limit for each person."""

    rows: list[EventRow]
    epsilon_event: Decimal
    epsilon_person: Decimal | None


def event_errors(setting: Setting, *, per_day: int, max_events: int | None) -> EventErrors | None:
    """Return the errors of a plan's static indicators; None if no plan of events has these settings.

    Parameters
    ----------
    per_day : events, all of them answered
    max_events : of a person that are answered
    """
    asked = [each for each in setting.requests if each.kind == "static" and not each.parts]
    asked = [each for each in asked if each.scale is None]
    if setting.mechanism not in OF_EVENTS or not asked:
        return None
    plan = build_plan(
        mechanism=setting.mechanism,
        unit=setting.unit,
        version=1,
        days=setting.days,
        epsilon=setting.epsilon,
        indicators=suited(asked, mechanism=setting.mechanism),
        events=True,
        max_events=max_events,
    )
    names = {each.slug: each.name for each in setting.questions}
    certificate = certify(plan)
    return EventErrors(
        rows=[
            EventRow(
                name=names[spec.slug],
                categories=spec.domain_size,
                deviations={key: deviation(plan, index, events=per_day * days) for key, days in DAYS.items()},
            )
            for index, spec in enumerate(plan.indicators)
        ],
        epsilon_event=certificate.epsilon_profile,
        epsilon_person=certificate.epsilon_person,
    )


def deviation(plan: PlanSpec, index: int, *, events: int) -> float:
    """Standard deviation of the number of events of a category that 1 in k events have, of a period."""
    k = plan.indicators[index].domain_size
    _, variances = numbers_of_events(
        np.full((1, k), 1 / k),
        n_reports=np.array([max(round(events * plan.asked_share(index)), 1)]),
        n_events=np.array([events]),
        channel=plan.answer_channel(index),
    )
    return sqrt(variances[0, 0])
