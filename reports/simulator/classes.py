"""Expected errors of shares in a study with classes: weighted, if all are alike, and all at the least."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from math import sqrt

import numpy as np

from ldp import ClassReports, NoReportsError, PlanSpec
from ldp.errors import PlanError
from ldp.estimation.classes import ClassChannel, pooled_weights, stratified_variance
from ldp.estimation.estimators import ENDLESS, pure_variance
from ldp.estimation.simulation import reporting_share


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassShare:
    """One class of a planned study; `share` of the visitors of a day is above 0."""

    slug: str
    name: str
    share: float
    epsilon: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassErrors:
    """Standard errors of the share of one category on a day, as shares of the visitors.

    stratified : each class counts by its visitors; right for any answers of the classes
    pooled : classes count by their precision; right only if all have the same shares
    least : everyone answers with the smallest epsilon, without classes
    """

    stratified: float
    pooled: float
    least: float


def class_errors(
    plan: PlanSpec, index: int, *, classes: Sequence[ClassShare], visitors: float, frequency: float
) -> ClassErrors:
    """Errors of an indicator of a plan with these classes, at one true frequency in all of them.

    NoReportsError if a class is so small that none of its people is expected to answer.
    """
    asked = float(reporting_share(plan, index))
    reports = [
        _reports(own, index, visitors=visitors * each.share, asked=asked)
        for own, each in zip(plan.of_classes, classes, strict=True)
    ]
    if not all(each.n_reports for each in reports):
        raise NoReportsError("each class must have reports, got a class with none")
    at = np.full(plan.indicators[index].domain_size, frequency)
    least = min(range(len(classes)), key=lambda number: classes[number].epsilon)
    alone = _reports(plan.of_class(least), index, visitors=visitors, asked=asked)
    pooled = sum(
        weight**2 * _variance(replace(each, n_visitors=ENDLESS), frequency)
        for weight, each in zip(pooled_weights(reports), reports, strict=True)
    )
    return ClassErrors(
        stratified=sqrt(stratified_variance([at] * len(reports), classes=reports)[0]),
        pooled=sqrt(pooled),
        least=sqrt(_variance(alone, frequency)),
    )


def _reports(plan: PlanSpec, index: int, *, visitors: float, asked: float) -> ClassReports:
    """Expected sizes of a class; of its reports only the number is known."""
    channel = plan.channel(index)
    if not isinstance(channel, ClassChannel):
        raise PlanError(f"{plan.indicators[index].slug} must have GRR or OUE reports, got {channel}")
    return ClassReports(
        counts=np.zeros(channel.domain_size, np.int64),
        n_reports=round(asked * visitors),
        n_visitors=round(visitors),
        channel=channel,
    )


def _variance(of: ClassReports, frequency: float) -> float:
    sizes = {"n_reports": of.n_reports, "n_population": of.n_visitors}
    return float(pure_variance(frequency, channel=of.channel, **sizes))
