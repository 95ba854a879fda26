"""Impact assessment: article 35 (7) GDPR, letters a to d."""

import numpy as np
from django.conf import settings
from django.utils.translation import gettext, ngettext

from ldp import Certificate, PlanSpec
from ldp.privacy.attacker import guess_success, known_day_success, largest_success
from reports.base import formats
from reports.dpia.parts import Section, Table
from reports.privacy.budget.spending import BudgetLine, standing
from reports.privacy.budget.texts import span_words, spent_words, unit_words
from reports.privacy.composition import studies_of
from reports.privacy.days_texts import repeated, two_categories
from reports.privacy.location_texts import noise_words
from reports.privacy.statement.document import certified, not_protected
from reports.privacy.statement.locations import location_protection
from reports.studies import texts as studies_texts
from reports.studies.grant_models import today
from reports.studies.models import Study
from reports.studies.queries import current_plan


def assessment(study: Study) -> tuple[Section, ...]:
    """Sections of the assessment, in the order of the article."""
    plan = current_plan(study)
    spec, certificate = certified(plan)
    places = location_protection(spec, extra_days=plan.voided_days)
    return (
        _description(study, spec),
        _necessity(study, spec, certificate),
        _risk_of_values(study, spec, certificate),
        Section(
            title=gettext("Risks that the guarantee does not cover"),
            article="35 (7) c",
            points=(
                *(limit["text"] for limit in not_protected(spec)),
                *(noise_words(places) if places is not None else ()),
            ),
            to_fill=(gettext("Likelihood and severity of each for the persons concerned, and why"),),
        ),
        _measures(study),
        _views_sought(),
    )


def _description(study: Study, spec: PlanSpec) -> Section:
    return Section(
        title=gettext("Systematic description"),
        article="35 (7) a",
        paragraphs=(studies_texts.plan_words(spec),),
        points=(
            gettext("An operator sends an extract: encrypted from its first byte under a key of its own."),
            gettext(
                "Workers of the operator zone read it as a stream: identifiers become keyed pseudonyms in "
                "memory, and values become sanitised answers."
            ),
            gettext("At the end of the batch the file and its key are destroyed, however the batch ended."),
            _crossing(study),
            gettext(
                "When the study is closed, its key is destroyed: pseudonyms and answers can be linked to "
                "nobody any more, and a certificate says what was erased."
            ),
        ),
        to_fill=(gettext("Drawing of the network: which hosts run the two zones"),),
    )


def _crossing(study: Study) -> str:
    if study.presence is not None:
        return gettext(
            "Only counts of sanitised answers cross to the analyst zone, each with presence noise, once, "
            "when its day is closed."
        )
    text = gettext(
        "Only counts of sanitised answers cross to the analyst zone. A publication covers at least %(n)d "
        "subscribers whose net contribution changes; one window or one indicator of it can still differ by a "
        "single person."
    )
    return text % {"n": study.min_publication}


def _necessity(study: Study, spec: PlanSpec, certificate: Certificate) -> Section:
    epsilons = {"profile": certificate.epsilon_profile, "attribute": certificate.epsilon_attribute}
    asked = formats.epsilon(epsilons[spec.unit])
    lines = standing(study.population, studies_of(study.population), today=today())
    return Section(
        title=gettext("Necessity and proportionality"),
        article="35 (7) b",
        points=(
            ngettext(
                "Data minimisation: only the columns that one indicator needs are read.",
                "Data minimisation: only the columns of %(n)d indicators are read.",
                spec.d,
            )
            % {"n": spec.d},
            gettext(
                "Certified epsilon: %(epsilon)s for %(unit)s. Per profile: %(profile)s; per attribute: "
                "%(attribute)s."
            )
            % {
                "epsilon": asked,
                "unit": unit_words(spec.unit),
                "profile": formats.epsilon(epsilons["profile"]),
                "attribute": formats.epsilon(epsilons["attribute"]),
            },
            *(_budget_words(line) for line in lines),
            gettext("Accuracy: each number has its 95 % interval; what cannot be read is no number."),
        ),
        to_fill=(gettext("Why fewer indicators, days or categories would not do"),),
    )


def _budget_words(line: BudgetLine) -> str:
    facts = {
        "when": span_words(line.span),
        "unit": unit_words(line.unit),
        "spent": spent_words(line.spent),
        "cap": "" if line.cap is None else formats.epsilon(line.cap),
    }
    if line.cap is None:
        text = gettext("All studies of these people, %(when)s, %(unit)s: epsilon %(spent)s; no cap is set.")
    else:
        text = gettext("All studies of these people, %(when)s, %(unit)s: epsilon %(spent)s of %(cap)s.")
    return text % facts


def _risk_of_values(study: Study, spec: PlanSpec, certificate: Certificate) -> Section:
    """Attacker who sees a report of a person, which never leaves the operator zone alone."""
    names = {indicator.slug: indicator.name for indicator in study.indicators.all()}
    rows, of_days = [], repeated(spec)
    for index, entry in enumerate(certificate.indicators):
        size = spec.indicators[index].domain_size
        after = guess_success(spec.channel(index), prior=np.full(size, 1 / size))
        known = known_day_success(spec.channel(index)) if index in of_days else None
        cells = (
            1 / size,
            after,
            largest_success(float(entry.ratio), prior=0.5),
            *([known] if of_days else []),
        )
        rows.append((names[entry.slug], *map(formats.percent, cells)))
    head = (gettext("With one report"), gettext("Half sure before, at most with one report"))
    return Section(
        title=gettext("Risk: somebody learns a person's value"),
        article="35 (7) c",
        paragraphs=(
            gettext(
                "Computed for an attacker who has one report of a person, although reports cross as counts "
                "only. Right guesses of the value: without the report, where all values are as likely; with "
                "it; and the most that the guarantee allows with it to someone who was half sure before, "
                "whatever else they know except other reports of the same person."
            ),
            *(_days_words(spec) if of_days else ()),
        ),
        table=Table(
            head=(
                gettext("Indicator"),
                gettext("Without the report"),
                *head,
                *([gettext("One day known, reports of two days")] if of_days else []),
            ),
            rows=tuple(rows),
        ),
        to_fill=(gettext("Severity for the person, by indicator"),),
    )


def _days_words(spec: PlanSpec) -> tuple[str, ...]:
    """Additional knowledge from reports of several days."""
    text = gettext(
        "A daily report shows whether the value changed. The last column is for someone who knows the value "
        "of one day and has the reports of two: right guesses of the other day's value, where all values are "
        "as likely before. No epsilon bounds it."
    )
    return text, *filter(None, [two_categories(spec)])


def _measures(study: Study) -> Section:
    yes, no = gettext("yes"), gettext("no")

    def state(label: str, *, holds: bool) -> tuple[str, str]:
        return label, yes if holds else no

    rows = (
        state(gettext("Operator zone and analyst zone run apart"), holds=settings.MOBILITY_ZONE != "all"),
        state(gettext("Encrypted connections only (HTTPS)"), holds=settings.HTTPS),
        state(gettext("A second person for what weakens a plan"), holds=settings.MOBILITY_SECOND_PERSON),
        state(
            gettext("Second factor required of administrators and privacy officers"),
            holds=settings.MOBILITY_SECOND_FACTOR == "required",
        ),
        state(gettext("Windows with few visitors are not shown"), holds=study.small_cell > 0),
        state(gettext("A day is set on which the key is destroyed"), holds=study.key_until is not None),
    )
    return Section(
        title=gettext("Measures"),
        article="35 (7) d, 32",
        points=(
            gettext("Keys lie apart from databases and backups, and are destroyed, not archived."),
            gettext("Rights by role and study, with an end; new accounts see nothing."),
            gettext("A ledger that only grows says who did what; entries are chained by their hashes."),
            gettext("No content from other hosts in pages, and a strict content security policy."),
        ),
        table=Table(head=(gettext("Of this installation"), gettext("In force")), rows=rows),
        to_fill=(gettext("Organisational measures: who holds which role, training, incidents, backups"),),
    )


def _views_sought() -> Section:
    return Section(
        title=gettext("Advice and decision"),
        article="35 (2), 35 (9), 36",
        to_fill=(
            gettext("Advice of the data protection officer"),
            gettext("Views of data subjects or their representatives, or why they were not sought"),
            gettext("Whether the remaining risk is high, so that the authority is to be asked first"),
            gettext("Decision, date, signature"),
        ),
    )
