"""Facts in a file about itself: sources of its numbers, their protection, how to read them."""

from collections.abc import Mapping
from typing import NamedTuple

from django.utils.translation import gettext

from reports.base.version import software
from reports.estimates.noise import VisitorNoise, visitor_noise
from reports.estimates.queries import LEVEL
from reports.exports.selection import Selection
from reports.privacy.statement.document import certified
from reports.studies import texts as studies_texts
from reports.studies.models import Study


class Fact(NamedTuple):
    """`name` and `value` for programs, `label` and `words` for people; `words` only if unlike the value."""

    name: str
    label: str
    value: str
    words: str = ""

    @property
    def shown(self) -> str:
        """Value as people read it."""
        return self.words or self.value


def facts_of(selection: Selection) -> list[Fact]:
    """All facts, in the order in which people ask for them."""
    return [*_study_facts(selection), *_plan_facts(selection), *_reading_facts(selection.study)]


def as_mapping(selection: Selection) -> Mapping[str, str]:
    """Facts by name, for the metadata of files."""
    return {fact.name: fact.value for fact in facts_of(selection)}


def software_words() -> str:
    """Name and version, as in footers."""
    return "{name} {version}".format(**software())


def status_words(study: Study | None = None) -> dict[str, str]:
    """Describe each value of the column `status`, with those that the rules of a study add."""
    words = {
        "ok": gettext("the value can be used, together with its interval"),
        "not_reliable": gettext("the interval is too wide to be useful"),
        "not_collected": gettext(
            "no data for these days, or no answers received; the figures are unknown, not zero"
        ),
        "suppressed": gettext(
            "suppressed by the study's small-cell rule, which is a policy and not part of the privacy "
            "guarantee"
        ),
        "outage": gettext("the data source failed on these days"),
    }
    if study is not None and study.small_category:
        words["small"] = gettext(
            "fewer visitors than the study's limit for small categories (column visitors_below); "
            "this limit is a display policy and not part of the privacy guarantee"
        )
    return words


def _study_facts(selection: Selection) -> list[Fact]:
    study = selection.study
    indicators = {report.indicator.slug: None for report in selection.reports}
    share = study.market_share.normalize()
    return [
        Fact("study", gettext("Study"), study.slug),
        Fact("study_name", gettext("Study name"), study.name),
        Fact("indicators", gettext("Indicators"), ", ".join(indicators)),
        Fact(
            "days",
            gettext("Days (inclusive)"),
            f"{selection.first_date.isoformat()}/{selection.last_date.isoformat()}",
        ),
        Fact("timezone", gettext("Time zone used for days"), study.timezone),
        Fact("visitor_rule", gettext("Definition of a visitor"), studies_texts.visitor_rule(study)),
        Fact("market_share", gettext("Market share"), f"{share:f}"),
    ]


def _plan_facts(selection: Selection) -> list[Fact]:
    plan = selection.reports[0].plan
    _, certificate = certified(plan)
    return [
        Fact("plan_version", gettext("Plan version"), str(plan.version)),
        Fact("mechanism", gettext("Mechanism"), plan.mechanism),
        Fact("unit", gettext("Privacy unit"), plan.unit, studies_texts.unit_words(plan.unit)),
        Fact(
            "epsilon_attribute",
            gettext("Certified epsilon per attribute (one of a person's values), rounded up"),
            str(certificate.epsilon_attribute),
        ),
        Fact(
            "epsilon_profile",
            gettext("Certified epsilon per profile (all of a person's values), rounded up"),
            str(certificate.epsilon_profile),
        ),
        Fact("plan_sha256", gettext("SHA-256 of the plan"), plan.spec_hash),
        Fact(
            "statement",
            gettext("Privacy statement (address on this site)"),
            f"/studies/{selection.study.slug}/statement.json",
        ),
    ]


def _reading_facts(study: Study) -> list[Fact]:
    noise = visitor_noise(study)
    exact = Fact(
        "exact",
        gettext("Exact counts"),
        gettext("n_visitors, n_reports and reports are exact counts; all other values are estimates."),
    )
    return [
        Fact("ci_level", gettext("Confidence level of the intervals"), str(LEVEL)),
        exact if noise is None else _noise_fact(noise),
        Fact("software", gettext("Software"), software_words()),
    ]


def _noise_fact(noise: VisitorNoise) -> Fact:
    text = gettext(
        "All counts contain presence noise. For days a to b of the study, n_visitors has a standard "
        "error of %(sd)s x sqrt(a (b - a + 1)). All intervals account for this noise. Each person is "
        "counted only on the first days on which they are present. Maximum number of days counted per "
        "person: %(days)d. Last day of the study included in the figures (first day = 1): %(through)d."
    )
    values = {"sd": f"{noise.channel.variance**0.5:.3f}", "days": noise.max_days, "through": noise.through}
    return Fact("noise", gettext("Presence noise"), text % values)
