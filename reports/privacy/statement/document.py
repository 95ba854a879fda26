"""The privacy statement: what a study promises and what it does not, computed from the numbers in use.

Every figure comes from the plan under which the answers were collected, through the library that sanitised
them; none is typed here. Exact numbers are strings, because readers of JSON round large integers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

from django.utils.translation import gettext

from ldp import (
    Certificate,
    FakedChannel,
    GrrChannel,
    IndicatorCertificate,
    PlanSpec,
    certify,
)
from ldp.privacy.moves import MoveSpec
from ldp.privacy.plans import AnswerChannel
from ldp.protocols.channels import exact_text
from ldp.protocols.numbers.threshold import Scale, ThresholdChannel
from ldp.protocols.numbers.wave import WaveChannel, kept_share
from ldp.protocols.partial.regions import RegionChannel, regions_of
from ldp.protocols.partial.sensitive import SensitiveChannel
from ldp.protocols.projective import ProjectiveChannel
from ldp.protocols.repeated.question import QuestionChannel
from ldp.protocols.repeated.renewed import rounds_of
from ldp.protocols.two_round import TwoRoundGrr
from ldp.protocols.two_round_unary import TwoRoundUnary
from ldp.protocols.unary import UnaryChannel
from reports.base.version import software
from reports.privacy.composition import composition_facts
from reports.privacy.days_texts import daily_limits, names_of, repeated
from reports.privacy.event_texts import event_definition, event_limits, event_units, person_unit
from reports.privacy.retention import retention
from reports.privacy.statement.locations import location_facts, location_limits, location_protection
from reports.privacy.statement.presence import presence_facts, presence_limits
from reports.privacy.statement.scaling import scaling_facts
from reports.privacy.statement.slots import slots_facts, slots_limits
from reports.privacy.statement.sums import sums_facts
from reports.studies.models import Area, Indicator, Study
from reports.studies.plan_models import Plan
from reports.studies.queries import current_plan, has_unions, shown_names
from reports.studies.texts import undone_day_words, wave_words

SCHEMA_VERSION = 1
# Names of protocols in the papers.
METHODS: Final = {
    "grr": "GRR",
    "oue": "OUE",
    "projective": "PGR",
    "threshold": "1BitMean",
    "wave": "SW",
    "question": "1BitHR",
    "loloha": "LOLOHA",
    "groups": "PCE",
    "l-grr": "L-GRR",
    "l-osue": "L-OSUE",
    "sensitive": "uRR",
}
WORD = 2**64  # thresholds are integers out of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """Place of an answer in a picture of 100 by 100."""

    x: int
    y: int
    is_true: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """Privacy text of a page about one indicator; epsilons are certified, not nominal.

    `epsilon_value` is what this value loses, all reports of a person seen together. `parts` are the names of
    the indicators that a joint one combines; `scale` is that of a number, and `moves` are those of a day.
    `n_sets` are those into which hashed values fall; in `window_days` a person has one answer to a stream.
    """

    unit: str
    epsilon_answer: Decimal
    epsilon_value: Decimal
    epsilon_profile: Decimal
    epsilon_attribute: Decimal
    values_per_person: int
    voided_days: int
    channel: AnswerChannel
    d: int
    is_sampled: bool
    has_fakes: bool
    is_daily: bool
    has_question: bool = False
    is_renewed: bool = False
    n_sets: int | None = None
    window_days: int | None = None
    epsilon_window: Decimal | None = None
    parts: tuple[str, ...] = ()
    scale: Scale | None = None
    moves: MoveSpec | None = None

    @property
    def epsilon_odds(self) -> Decimal:
        """Epsilon of one answer alone; among fakes that of this value."""
        return self.epsilon_value if self.has_fakes else self.epsilon_answer

    @property
    def is_unary(self) -> bool:
        """Return whether an answer marks any number of categories, instead of naming one."""
        named = GrrChannel | TwoRoundGrr | SensitiveChannel
        return not all(isinstance(own, named) for own in _channels(self.channel))

    @property
    def tells_group(self) -> bool:
        """Return whether an answer tells the group of the category for certain."""
        return isinstance(self.channel, RegionChannel)

    @property
    def disclosed_of_100(self) -> int | None:
        """Answers of a hundred that disclose a category that is not sensitive; None where all are hidden."""
        channel = self.channel
        return round(100 * channel.disclosed) if isinstance(channel, SensitiveChannel) else None

    @property
    def supported(self) -> int | None:
        """Number of codes of categories that each answer stands for; None where it is no fixed set."""
        return self.channel.support_size if isinstance(self.channel, ProjectiveChannel) else None

    @property
    def method(self) -> str:
        """Name of the method in the papers."""
        return METHODS[protocol_of(self.channel)]

    @property
    def thresholds(self) -> tuple[int, ...]:
        """Return the thresholds of a true category and, where it is drawn on its own, of any other.

        Where answers tell the group, those of all groups.
        """
        found = (own for channel in _channels(self.channel) for own in thresholds(channel).values())
        return tuple(dict.fromkeys(found))

    @property
    def kept_of_100(self) -> int:
        """Answers of a hundred that name or mark the true category, or are near the number."""
        return round(100 * kept_share(self.channel))

    @property
    def wave_words(self) -> str:
        """Explain a square-wave report; empty where there are others."""
        return wave_words(self.channel) if isinstance(self.channel, WaveChannel) else ""

    @property
    def undone_words(self) -> str:
        """Explain the change that undone days show in spite of new noise; empty without undone days."""
        return undone_day_words() if self.voided_days else ""

    @property
    def other_of_100(self) -> int:
        """Answers of a hundred that name or mark one given other category."""
        return round(100 * self.channel.q)

    @property
    def dots(self) -> list[Dot]:
        """A hundred answers as a square of dots, those that are true first."""
        return [
            Dot(x=5 + 10 * (place % 10), y=5 + 10 * (place // 10), is_true=place < self.kept_of_100)
            for place in range(100)
        ]

    @property
    def answers_of_100(self) -> int:
        """Reports of a hundred that are no fakes."""
        return round(Fraction(100, self.d)) if self.has_fakes else 100


def protections(plan: Plan) -> dict[str, Protection]:
    """Certified protection of each indicator of a plan, by slug."""
    return {asked.slug: protection_of(plan, asked.slug) for asked in plan.parsed.indicators}


def protection_of(plan: Plan, slug: str) -> Protection:
    """Certified protection of one indicator of a plan."""
    spec, certificate = certified(plan)
    index = spec.index(slug)
    asked, entry = spec.indicators[index], certificate.indicators[index]
    names = shown_names(plan.study) if asked.parts else {}
    return Protection(
        unit=spec.unit,
        epsilon_answer=entry.epsilon,
        epsilon_value=entry.epsilon_attribute,
        epsilon_profile=certificate.epsilon_profile,
        epsilon_attribute=certificate.epsilon_attribute,
        values_per_person=entry.n_values,
        voided_days=plan.voided_days,
        channel=spec.answer_channel(index),
        d=spec.d,
        is_sampled=spec.is_sampled,
        has_fakes=spec.has_fakes,
        is_daily=asked.kind == "daily",
        has_question=spec.has_question(index),
        is_renewed=spec.is_renewed(index),
        n_sets=_n_sets(spec, index),
        window_days=spec.window_days if spec.is_stream(index) else None,
        epsilon_window=certificate.epsilon_window if spec.is_stream(index) else None,
        parts=tuple(names[part] for part in asked.parts),
        scale=asked.scale,
        moves=asked.moves,
    )


def _channels(channel: AnswerChannel) -> tuple[AnswerChannel, ...]:
    """Channels of the groups that answers tell; else the channel."""
    return channel.of_regions if isinstance(channel, RegionChannel) else (channel,)


def _n_sets(spec: PlanSpec, index: int) -> int | None:
    channel = spec.answer_channel(index)
    if rounds_of(channel) is None or not isinstance(channel, QuestionChannel):
        return None
    return min(channel.groups, channel.domain_size)


def thresholds(channel: AnswerChannel) -> dict[str, int]:
    """Integers of a channel by their names, out of 2**64; none where each group has its own."""
    if isinstance(channel, RegionChannel):
        return {}
    if isinstance(channel, SensitiveChannel):
        return {"threshold": channel.kept_sensitive, "threshold_other": channel.kept_other}
    if isinstance(channel, QuestionChannel):
        return thresholds(channel.answer)
    if isinstance(channel, TwoRoundGrr):
        return {"threshold": channel.first.threshold, "threshold_second": channel.second.threshold}
    if isinstance(channel, TwoRoundUnary):
        return thresholds(channel.first) | {"threshold_second": channel.second.threshold_p}
    if not isinstance(channel, UnaryChannel):
        return {"threshold": channel.threshold}
    return {"threshold_p": channel.threshold_p, "threshold_q": channel.threshold_q}


def certified(plan: Plan) -> tuple[PlanSpec, Certificate]:
    """Plan as the library takes it and what it certifies; a voided day may add a daily value per person."""
    spec = plan.parsed
    return spec, _certificate(spec, plan.voided_days)


@lru_cache(maxsize=256)
def _certificate(spec: PlanSpec, voided_days: int) -> Certificate:
    """Exact logarithms take milliseconds, and every page of a report has them; both sides never change."""
    return certify(spec, extra_daily_values=voided_days)


def privacy_statement(study: Study, *, with_names: bool = False) -> dict[str, Any]:
    """Statement as plain values; its schema is docs/statement.schema.json.

    Other studies of the population are named only for those who may know of all of them.
    """
    plan = current_plan(study)
    spec, certificate = certified(plan)
    indicators = list(study.indicators.all())
    by_slug = {indicator.slug: indicator for indicator in indicators}
    typed = dict(plan.indicators.values_list("indicator__slug", "epsilon"))
    return {
        "schema_version": SCHEMA_VERSION,
        "software": software(),
        "study": {
            **study_facts(study),
            "population": study.population,
            "key_until": None if study.key_until is None else study.key_until.isoformat(),
        },
        "plan": {**plan_facts(plan, spec), "spec": plan.spec},
        "guarantee": _guarantee(plan, spec, certificate),
        "indicators": [
            _indicator(by_slug[entry.slug], spec=spec, entry=entry, typed=typed[entry.slug])
            for entry in certificate.indicators
        ],
        **_classes(plan, by_slug=by_slug),
        "location": location_facts(location_protection(spec, extra_days=plan.voided_days)),
        "presence": presence_facts(spec, study),
        **slots_facts(spec, study),
        **sums_facts(study, plan, spec),
        **scaling_facts(study),
        "composition": composition_facts(study, with_names=with_names),
        "not_protected": not_protected(plan, {each.slug: each.shown_name for each in indicators}),
        "retention": retention(study),
        "versions": plan_versions(study),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassProtection:
    """Loss of the people of one class; epsilons are certified, not nominal."""

    slug: str
    name: str
    shown_name: str
    nominal: Fraction
    spec: PlanSpec
    certificate: Certificate


def class_protections(plan: Plan) -> list[ClassProtection]:
    """Protection of each class, in the order of the plan; none in a study without classes."""
    spec, study = plan.parsed, plan.study
    rows = zip(spec.classes, spec.of_classes, study.classes or (), study.shown_classes, strict=False)
    return [
        ClassProtection(
            slug=asked.slug,
            name=names["name"],
            shown_name=shown,
            nominal=asked.epsilon,
            spec=own,
            certificate=_certificate(own, plan.voided_days),
        )
        for asked, own, names, shown in rows
    ]


def _classes(plan: Plan, *, by_slug: dict[str, Indicator]) -> dict[str, Any]:
    """Describe the classes; nothing without any."""
    rows = [
        {
            "slug": each.slug,
            "name": each.name,
            "nominal_epsilon": exact_text(each.nominal),
            "epsilon_attribute": str(each.certificate.epsilon_attribute),
            "epsilon_profile": str(each.certificate.epsilon_profile),
            "nominal_profile": exact_text(each.certificate.nominal_profile),
            "indicators": [
                _indicator(by_slug[entry.slug], spec=each.spec, entry=entry, typed=None)
                for entry in each.certificate.indicators
            ],
        }
        for each in class_protections(plan)
    ]
    return {"classes": rows} if rows else {}


def not_protected(plan: Plan, names: Mapping[str, str] | None = None) -> list[dict[str, str]]:
    """Limits of a plan's guarantee, each with a fixed name and a text.

    `names` are those of the indicators by slug, read if they are not given.
    """
    spec, names = plan.parsed, shown_names(plan.study) if names is None else names
    if spec.events:
        return [{"name": name, "text": text} for name, text in event_limits(spec).items()]
    limits = presence_limits(spec) | slots_limits(spec)
    if spec.has_fakes and spec.unit == "attribute" and spec.d > 1:
        limits["profile"] = gettext(
            "Whole profiles: made-up reports hide each of a person's values individually, but not all of "
            "them together. For all values together, the epsilon per profile applies. It is larger than "
            "the guaranteed epsilon."
        )
    if spec.classes:
        limits["classes"] = gettext(
            "Classes: the class of each person is public, and so is the epsilon that applies to it. The "
            "totals show the exact number of visitors in each class."
        )
    limits |= told_groups(spec, names) | disclosed_values(spec, names)
    limits |= daily_limits(spec, names)
    limits |= location_limits(location_protection(spec))
    limits["times"] = _times(spec)
    limits["key_holder"] = gettext(
        "The operator: anyone who has the study key and a person's pseudonym can remove the noise from "
        "that person's answers. The guarantee covers what leaves the operator zone."
    )
    return [{"name": name, "text": text} for name, text in limits.items()]


def told_groups(spec: PlanSpec, names: Mapping[str, str]) -> dict[str, str]:
    """Say that groups are disclosed; nothing where no answer tells them."""
    told = [index for index, asked in enumerate(spec.indicators) if asked.regions]
    if not told:
        return {}
    text = gettext(
        "Groups (%(indicators)s): every answer gives the group of the person's category without noise. The "
        "group of each subscriber is not protected. Epsilon applies only between categories of the same "
        "group. For a daily indicator, the groups of all days on which a person answers are disclosed. The "
        "totals show how many answers come from each group."
    )
    text %= {"indicators": names_of((spec.indicators[index].slug for index in told), names)}
    pairs = [
        index
        for index in told
        if 2 in map(spec.indicators[index].regions.count, spec.indicators[index].regions)
    ]
    if set(pairs) & {*repeated(spec)}:
        text += " " + gettext(
            "In a group of only two categories, the epsilon per attribute guarantees nothing if someone sees "
            "answers from several days together."
        )
    return {"groups": text}


def disclosed_values(spec: PlanSpec, names: Mapping[str, str]) -> dict[str, str]:
    """Say that values that are not sensitive are disclosed; nothing where all are hidden."""
    told = [asked.slug for asked in spec.indicators if asked.sensitive]
    if not told:
        return {}
    text = gettext(
        "Values that are not sensitive (%(indicators)s): an answer that gives a category that is not "
        "sensitive is always true and discloses it. For these categories, epsilon is infinite: they are not "
        "protected. Epsilon applies only to answers that give a sensitive category, which can come from any "
        "person. The totals show how many answers disclose each category that is not sensitive."
    )
    return {"disclosed_values": text % {"indicators": names_of(told, names)}}


def _times(spec: PlanSpec) -> str:
    if spec.presence is not None:
        return gettext(
            "Timing: anyone who reads the totals before and after a change sees when they change and by "
            "how much. Noise hides how many subscribers a change covers, so a change does not have to "
            "cover a minimum number of subscribers."
        )
    return gettext(
        "Timing: anyone who reads the totals before and after a change sees when they change and by how "
        "much. Each change covers at least as many subscribers as the study requires for a publication, "
        "counted across all days and indicators. The same applies when several changes are taken "
        "together. Even so, the change in a figure for a single date range or indicator can come from "
        "just one person."
    )


def utc_text(moment: datetime) -> str:
    """Moment as JSON documents write it, to the second: 2024-05-01T10:00:00Z."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def study_facts(study: Study) -> dict[str, Any]:
    """Describe a study, as plain values."""
    area = Area.objects.filter(study=study).first()
    return {
        "slug": study.slug,
        "name": study.name,
        "state": study.state,
        "closed_at": None if study.closed_at is None else utc_text(study.closed_at),
        "timezone": study.timezone,
        "first_day": study.first_day.isoformat(),
        "last_day": study.last_day.isoformat(),
        "days": study.days,
        **({"units": study.units} if study.of_events else {}),
        "market_share": _plain(study.market_share),
        "min_publication": study.min_publication,
        "small_cell": study.small_cell,
        **({"small_category": study.small_category} if study.small_category else {}),
        "visitor": {
            "min_minutes": study.visitor_min_minutes,
            "from": study.visitor_from.strftime("%H:%M"),
            "to": study.visitor_to.strftime("%H:%M"),
        },
        "area": None if area is None else {"n_cells": area.n_cells, "zones": area.zones},
    }


def plan_facts(plan: Plan, spec: PlanSpec) -> dict[str, Any]:
    """Describe the protection of answers, as plain values; epsilons as they were typed."""
    return {
        "version": plan.version,
        "mechanism": plan.mechanism,
        "unit": plan.unit,
        "epsilon": _plain(plan.epsilon),
        "epsilon_profile_cap": None if plan.epsilon_profile is None else _plain(plan.epsilon_profile),
        "indicators_per_person": 1 if spec.is_sampled or spec.has_fakes else spec.d,
        "has_fake_data": spec.has_fakes,
        "spec_sha256": plan.spec_hash,
    }


def _composition_rule(spec: PlanSpec) -> str:
    """Name the rule by which losses of a person's values make up that of the profile: never translated."""
    if spec.has_fakes and all(asked.kind == "static" for asked in spec.indicators):
        return "hidden by fakes"
    return "largest" if spec.is_sampled or spec.has_fakes else "sum"


def plan_versions(study: Study) -> list[dict[str, Any]]:
    """Versions of a plan from the first on, with who approved each; the last one is in force."""
    return [
        {
            "version": plan.version,
            "spec_sha256": plan.spec_hash,
            "published_at": utc_text(plan.published_at),
            "published_by": plan.published_by,
            "review": plan.review,
            "reviewed_by": plan.reviewed_by or None,
            "reviewed_at": None if plan.reviewed_at is None else utc_text(plan.reviewed_at),
            "superseded_at": None if plan.superseded_at is None else utc_text(plan.superseded_at),
        }
        for plan in study.plans.order_by("version")
    ]


def _guarantee(plan: Plan, spec: PlanSpec, certificate: Certificate) -> dict[str, Any]:
    by_unit = {"profile": certificate.epsilon_profile, "attribute": certificate.epsilon_attribute}
    return {
        "definition": event_definition(spec)
        if spec.events
        else _definition(spec, voided_days=plan.voided_days),
        "unit": plan.unit,
        "units": event_units()
        if spec.events
        else {
            "attribute": gettext("one of a person's values; for a daily indicator, the value on one day"),
            "profile": gettext("all of a person's values in the study"),
        },
        "epsilon": str(by_unit[plan.unit]),
        "epsilon_attribute": str(certificate.epsilon_attribute),
        "epsilon_profile": str(certificate.epsilon_profile),
        "rounding": "up",
        "composition": _composition_rule(spec),
        "nominal_attribute": exact_text(certificate.nominal_attribute),
        "nominal_profile": exact_text(certificate.nominal_profile),
        "voided_days": plan.voided_days,
        **_window(spec, certificate),
        **_person(spec, certificate),
    }


def _person(spec: PlanSpec, certificate: Certificate) -> dict[str, Any]:
    """Loss of all events of a person in a plan that limits them."""
    if certificate.epsilon_person is None or certificate.nominal_person is None:
        return {}
    person = {
        "unit": person_unit(),
        "max_events": spec.max_events,
        "epsilon": str(certificate.epsilon_person),
        "nominal": exact_text(certificate.nominal_person),
    }
    return {"person": person}


def _window(spec: PlanSpec, certificate: Certificate) -> dict[str, Any]:
    """Loss of any consecutive days of a plan with streams."""
    if certificate.epsilon_window is None or certificate.nominal_window is None:
        return {}
    window = {
        "days": spec.window_days,
        "epsilon": str(certificate.epsilon_window),
        "nominal": exact_text(certificate.nominal_window),
    }
    return {"window": window}


def _definition(spec: PlanSpec, *, voided_days: int) -> str:
    text = gettext(
        "The guarantee compares two people whose data may differ only in the privacy unit. Both "
        "people are present on the same days. Their values may differ, but any two days with the "
        "same value for one person have the same value for the other. Consider the probability that "
        "a given set of answers leaves the operator zone. This probability differs between the two "
        "people by a factor of at most exp(epsilon)."
    )
    if spec.classes:
        text += " " + gettext(
            "The two people must also be in the same class, because the class is public and is not "
            "protected. The epsilon that applies to them is that of their class. The epsilon of the study "
            "is the largest of all classes."
        )
    if any(asked.regions for asked in spec.indicators):
        text += " " + gettext(
            "Where answers give the group of a category without noise, the values of the two people must be "
            "in the same groups on all days. Between categories of different groups, nothing is guaranteed."
        )
    if any(asked.sensitive for asked in spec.indicators):
        text += " " + gettext(
            "Where answers hide only sensitive categories, this limit applies only to answers that give a "
            "sensitive category. For all other categories, nothing is guaranteed."
        )
    daily = [asked for asked in spec.indicators if asked.kind == "daily"]
    if any(asked.scale is not None and not asked.is_wave for asked in daily):
        text += " " + gettext(
            "For a daily number, an answer depends only on whether the value is at or above the person's "
            "threshold. The guarantee compares two people whose values cross their threshold on the same "
            "days. Each person has at most two different randomised answers, so more days add nothing to "
            "epsilon."
        )
    if spec.asks_questions:
        text += " " + gettext(
            "For an indicator with a permanent question, each person has at most two randomised "
            "answers. One is given on every day when the true answer is “yes”, and the other when it "
            "is “no”. Because both are reused, more days add nothing to epsilon. The guarantee "
            "compares two people whose true answers change on the same days."
        )
    if spec.hashes_values:
        text += " " + gettext(
            "For a daily indicator with hashed values, an answer depends only on the set of "
            "categories that contains the value. The guarantee compares two people. Any two days "
            "whose values are in the same set for one person must also have values in the same set "
            "for the other. For any number of days, epsilon is at most the number of sets multiplied "
            "by the epsilon of one kept answer."
        )
    if spec.renews_reports:
        text += " " + gettext(
            "For an indicator with one value per person, each report adds new noise to one kept answer. The "
            "epsilon of a report covers one report. The epsilon per attribute covers the reports of all days "
            "together, and never exceeds the epsilon of the kept answer."
        )
    if spec.has_streams:
        text += " " + gettext(
            "For a daily indicator that is a stream, the guarantee also covers changes. The values of the "
            "two people may differ in any way, because every answer has new noise."
        )
        if spec.window_days != 1:
            text += " " + gettext(
                "If their values differ only within %(window)d consecutive days, the epsilon for these days "
                "applies (w-event privacy)."
            ) % {"window": spec.window_days}
    if voided_days and any(map(spec.has_new_noise, range(spec.d))):
        text += " " + undone_day_words()
    return text


def _indicator(
    indicator: Indicator, *, spec: PlanSpec, entry: IndicatorCertificate, typed: Decimal | None
) -> dict[str, Any]:
    index = spec.index(entry.slug)
    asked = spec.indicators[index]
    channel, report = spec.answer_channel(index), spec.channel(index)
    return {
        "slug": indicator.slug,
        "name": indicator.name,
        "kind": indicator.kind,
        "categories": indicator.categories,
        "protocol": protocol_of(channel),
        **_design(channel),
        **_cuts(asked.scale, channel),
        **_first(spec, index),
        **_groups(indicator, channel),
        **({} if asked.moves is None else {"moves": asked.moves.to_json()}),
        "asked_share": exact_text(spec.asked_share(index)),
        "typed_epsilon": None if typed is None else _plain(typed),
        "nominal_epsilon": exact_text(asked.epsilon),
        **{name: str(value) for name, value in thresholds(channel).items()},
        "threshold_out_of": str(WORD),
        "p": exact_text(channel.p),
        "q": exact_text(channel.q),
        "fake_data": _fake_data(report) if isinstance(report, FakedChannel) else None,
        "ratio": exact_text(entry.ratio),
        "epsilon": str(entry.epsilon),
        "epsilon_attribute": str(entry.epsilon_attribute),
        "values_per_person": entry.n_values,
        "unions_of_days": has_unions(indicator),
    }


def protocol_of(channel: AnswerChannel) -> str:
    """Key of the protocol of an answer."""
    if isinstance(channel, ProjectiveChannel):
        return "projective"
    if isinstance(channel, ThresholdChannel):
        return "threshold"
    if isinstance(channel, WaveChannel):
        return "wave"
    if isinstance(channel, RegionChannel):
        return "groups"
    if isinstance(channel, SensitiveChannel):
        return "sensitive"
    if isinstance(channel, QuestionChannel):
        return "loloha" if isinstance(channel.answer, TwoRoundGrr) else "question"
    if isinstance(channel, TwoRoundGrr | TwoRoundUnary):
        return "l-grr" if isinstance(channel, TwoRoundGrr) else "l-osue"
    return "grr" if isinstance(channel, GrrChannel) else "oue"


def _design(channel: AnswerChannel) -> dict[str, int]:
    """Codes of the square wave; the space of those of projective response, or of questions."""
    if isinstance(channel, QuestionChannel):
        return {"prime": channel.groups, "dimension": channel.dimension, "codes": channel.n_codes}
    if isinstance(channel, WaveChannel):
        return {"half_width": channel.half_width, "codes": channel.n_codes}
    if not isinstance(channel, ProjectiveChannel):
        return {}
    return {"prime": channel.prime, "dimension": channel.dimension, "codes": channel.n_codes}


def _first(spec: PlanSpec, index: int) -> dict[str, str]:
    """Epsilon of one report, where that of an answer covers all reports of a value."""
    if spec.first is None or not (spec.is_hashed(index) or spec.is_renewed(index)):
        return {}
    return {"nominal_first": exact_text(spec.first.epsilon_of(spec.indicators[index].epsilon))}


def _groups(indicator: Indicator, channel: AnswerChannel) -> dict[str, Any]:
    """Describe groups that answers tell, each with its channel, or the sensitive categories, if any."""
    if isinstance(channel, SensitiveChannel):
        names = [indicator.categories[value] for value in channel.sensitive]
        return {"sensitive": names, "disclosed": exact_text(channel.disclosed)}
    if not isinstance(channel, RegionChannel):
        return {}
    group_of = {member: name for name, members in (indicator.groups or {}).items() for member in members}
    rows = []
    for region in regions_of(channel):
        categories = [indicator.categories[value] for value in region.values.tolist()]
        row = {"name": group_of[categories[0]], "categories": categories}
        own = region.channel
        row |= {"protocol": protocol_of(own), **_design(own)}
        row |= {name: str(value) for name, value in thresholds(own).items()}
        row |= {name: exact_text(getattr(own, name)) for name in ("p", "q", "ratio")}
        rows.append(row)
    return {"groups": rows}


def _cuts(scale: Scale | None, channel: AnswerChannel) -> dict[str, Any]:
    """Cuts of a number, and of threshold reports how often each is asked, out of 2**64."""
    if scale is None:
        return {}
    found = {name: value for name, value in scale.to_json().items() if name != "report"}
    if isinstance(channel, ThresholdChannel):
        found["cut_shares"] = [str(each) for each in channel.shares]
    return found


def _fake_data(report: FakedChannel) -> dict[str, str]:
    return {
        "share": exact_text(report.share),
        "fake": report.fake,
        "support": exact_text(report.fake_support),
    }


def _plain(value: Decimal) -> str:
    return f"{value.normalize():f}"
