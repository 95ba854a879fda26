"""The privacy statement: what a study promises and what it does not, computed from the numbers in use.

Every figure comes from the plan under which the answers were collected, through the library that sanitised
them; none is typed here. Exact numbers are strings, because readers of JSON round large integers.
"""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

from django.utils.translation import gettext

from ldp import Certificate, IndicatorCertificate, PlanSpec, certify, grr_channel
from reports.models import Area, Indicator, Plan, Study
from reports.selectors import current_plan, has_unions
from reports.version import software

SCHEMA_VERSION = 1
WORD = 2**64  # thresholds are integers out of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """What one page says about one indicator; epsilons are certified, not nominal."""

    unit: str
    epsilon_answer: Decimal
    epsilon_profile: Decimal
    epsilon_attribute: Decimal
    values_per_person: int
    voided_days: int
    threshold: int
    d: int
    is_sampled: bool
    is_daily: bool

    @property
    def kept_of_100(self) -> int:
        """True answers of a hundred."""
        return round(Fraction(100 * self.threshold, WORD))


def protections(plan: Plan) -> dict[str, Protection]:
    """Certified protection of each indicator of a plan, by slug."""
    spec, certificate = certified(plan)
    return {
        asked.slug: Protection(
            unit=spec.unit,
            epsilon_answer=entry.epsilon,
            epsilon_profile=certificate.epsilon_profile,
            epsilon_attribute=certificate.epsilon_attribute,
            values_per_person=entry.n_values,
            voided_days=plan.voided_days,
            threshold=grr_channel(epsilon=asked.epsilon, domain_size=asked.domain_size).threshold,
            d=spec.d,
            is_sampled=spec.is_sampled,
            is_daily=asked.kind == "daily",
        )
        for asked, entry in zip(spec.indicators, certificate.indicators, strict=True)
    }


def certified(plan: Plan) -> tuple[PlanSpec, Certificate]:
    """Plan as the library takes it and what it certifies; a voided day may add a daily value per person."""
    spec = PlanSpec.from_json(plan.spec)
    return spec, certify(spec, extra_daily_values=plan.voided_days)


def privacy_statement(study: Study) -> dict[str, Any]:
    """Statement as plain values; its schema is docs/statement.schema.json."""
    plan = current_plan(study)
    spec, certificate = certified(plan)
    indicators = list(study.indicators.all())
    by_slug = {indicator.slug: indicator for indicator in indicators}
    return {
        "schema_version": SCHEMA_VERSION,
        "software": software(),
        "study": _study(study),
        "plan": _plan(plan, spec),
        "guarantee": _guarantee(plan, certificate),
        "indicators": [
            _indicator(by_slug[entry.slug], spec=spec, entry=entry) for entry in certificate.indicators
        ],
        "not_protected": not_protected(has_daily=any(s.kind == "daily" for s in spec.indicators)),
        "retention": retention(),
    }


def not_protected(*, has_daily: bool) -> list[dict[str, str]]:
    """What the guarantee does not cover, each with a fixed name and a text."""
    limits = {
        "presence": gettext(
            "Presence: visitor totals are exact counts, per day and per union of days. Nothing hides "
            "whether a person was there, nor on which days."
        ),
        "missing_values": gettext(
            "Missing values: a person without a value for an indicator gives no answer, and the number of "
            "answers is exact."
        ),
    }
    if has_daily:
        limits["changes"] = gettext(
            "Changes: the values of a daily indicator are protected, but whether a value repeats or changes "
            "from one day to another is not, because the same value keeps its answer."
        )
    limits["key_holder"] = gettext(
        "The operator: whoever holds the study key and a pseudonym can undo the noise. The guarantee is "
        "about what leaves the operator zone."
    )
    return [{"name": name, "text": text} for name, text in limits.items()]


def retention() -> list[dict[str, str]]:
    """What is kept, and until when."""
    batch, day, study = (
        gettext("the end of its batch"),
        gettext("the closing of the day"),
        gettext("the destruction of the study's key"),
    )
    rows = {
        "staged_upload": (batch, gettext("Uploaded file, encrypted from its first byte.")),
        "identifiers": (batch, gettext("Identifiers: replaced by keyed pseudonyms in memory, never stored.")),
        "day_state": (day, gettext("First and last event of each pseudonym on an open day, sealed.")),
        "presence": (
            study,
            gettext(
                "Days present and sanitised answers of each pseudonym, sealed: pseudonymous, not anonymous."
            ),
        ),
        "key": (
            gettext("its destruction"),
            gettext("Key of the study, in the keystore only: in no database."),
        ),
        "totals": (gettext("no date set"), gettext("Totals of sanitised answers, in the analyst zone.")),
    }
    return [{"name": name, "until": until, "text": text} for name, (until, text) in rows.items()]


def _study(study: Study) -> dict[str, Any]:
    area = Area.objects.filter(study=study).first()
    return {
        "slug": study.slug,
        "name": study.name,
        "state": study.state,
        "timezone": study.timezone,
        "first_day": study.first_day.isoformat(),
        "last_day": study.last_day.isoformat(),
        "days": study.days,
        "market_share": _plain(study.market_share),
        "min_publication": study.min_publication,
        "visitor": {
            "min_minutes": study.visitor_min_minutes,
            "from": study.visitor_from.strftime("%H:%M"),
            "to": study.visitor_to.strftime("%H:%M"),
        },
        "area": None if area is None else {"n_cells": area.n_cells, "zones": area.zones},
    }


def _plan(plan: Plan, spec: PlanSpec) -> dict[str, Any]:
    return {
        "version": plan.version,
        "mechanism": plan.mechanism,
        "unit": plan.unit,
        "epsilon": _plain(plan.epsilon),
        "epsilon_profile_cap": None if plan.epsilon_profile is None else _plain(plan.epsilon_profile),
        "indicators_per_person": 1 if spec.is_sampled else spec.d,
        "spec_sha256": plan.spec_hash,
    }


def _guarantee(plan: Plan, certificate: Certificate) -> dict[str, Any]:
    by_unit = {"profile": certificate.epsilon_profile, "attribute": certificate.epsilon_attribute}
    return {
        "definition": gettext(
            "Take two people present on the same days, whose daily values repeat and change on the same "
            "days, and who differ in the unit only. The probability of any answers of theirs that leave the "
            "operator zone differs by at most the factor exp(epsilon)."
        ),
        "unit": plan.unit,
        "units": {
            "attribute": gettext("one value of a person; of a daily indicator, the value of one day"),
            "profile": gettext("all values of a person in the study"),
        },
        "epsilon": str(by_unit[plan.unit]),
        "epsilon_attribute": str(certificate.epsilon_attribute),
        "epsilon_profile": str(certificate.epsilon_profile),
        "rounding": "up",
        "nominal_attribute": _ratio(certificate.nominal_attribute),
        "nominal_profile": _ratio(certificate.nominal_profile),
        "voided_days": plan.voided_days,
    }


def _indicator(indicator: Indicator, *, spec: PlanSpec, entry: IndicatorCertificate) -> dict[str, Any]:
    asked = spec.indicators[spec.index(entry.slug)]
    channel = grr_channel(epsilon=asked.epsilon, domain_size=asked.domain_size)
    return {
        "slug": indicator.slug,
        "name": indicator.name,
        "kind": indicator.kind,
        "categories": indicator.categories,
        "protocol": "grr",
        "nominal_epsilon": _ratio(asked.epsilon),
        "threshold": str(channel.threshold),
        "threshold_out_of": str(WORD),
        "p": _ratio(channel.p),
        "q": _ratio(channel.q),
        "ratio": _ratio(entry.ratio),
        "epsilon": str(entry.epsilon),
        "values_per_person": entry.n_values,
        "unions_of_days": has_unions(indicator),
    }


def _ratio(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}"


def _plain(value: Decimal) -> str:
    return f"{value.normalize():f}"
