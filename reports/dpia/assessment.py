"""Impact assessment: article 35 (7) GDPR, letters a to d."""

import numpy as np
from django.conf import settings
from django.utils.translation import gettext, ngettext

from ldp import Certificate, PlanSpec
from ldp.privacy.attacker import guess_success, known_day_success, largest_success, promised_ratio
from reports.base import formats
from reports.dpia.parts import Section, Table
from reports.privacy.budget.spending import BudgetLine, standing
from reports.privacy.budget.texts import span_words, spent_words, unit_words
from reports.privacy.composition import studies_of
from reports.privacy.days_texts import repeated, two_categories
from reports.privacy.location_texts import noise_words
from reports.privacy.statement.document import certified, not_protected
from reports.privacy.statement.locations import location_protection
from reports.privacy.statement.slots import slots_table, slots_words
from reports.studies import texts as studies_texts
from reports.studies.grant_models import today
from reports.studies.models import Study
from reports.studies.queries import current_plan, shown_names


def assessment(study: Study) -> tuple[Section, ...]:
    """Sections of the assessment, in the order of the article."""
    plan = current_plan(study)
    spec, certificate = certified(plan)
    places = location_protection(spec, extra_days=plan.voided_days)
    return (
        _description(study, spec),
        _necessity(study, spec, certificate),
        _risk_of_values(study, spec, certificate),
        *_risk_of_slots(study, spec),
        Section(
            title=gettext("Risks not covered by the guarantee"),
            article="35 (7) c",
            points=(
                *(limit["text"] for limit in not_protected(plan)),
                *(noise_words(places) if places is not None else ()),
            ),
            to_fill=(gettext("Likelihood and severity of each risk to the data subjects, with reasons"),),
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
            gettext(
                "The operator uploads an extract, which is encrypted from the first byte with a key used "
                "only for that extract."
            ),
            gettext(
                "Background processes in the operator zone read the file as a stream. In memory, they "
                "replace each identifier with a keyed pseudonym, and each value with a randomised answer."
            ),
            gettext("The file and its key are destroyed after processing, whether or not it succeeds."),
            _crossing(study),
            gettext(
                "When the study is closed, its key is destroyed. Pseudonyms and answers can then no "
                "longer be linked to anyone, and a certificate states what was erased."
            ),
        ),
        to_fill=(gettext("Network diagram that shows which hosts run the two zones"),),
    )


def _crossing(study: Study) -> str:
    if study.presence is not None:
        return gettext(
            "Only counts of visitors and of randomised answers are transferred to the analyst zone. "
            "When a day is closed, presence noise is added once to each count for that day."
        )
    text = gettext(
        "Only counts of visitors and of randomised answers are transferred to the analyst zone. Each "
        "publication changes the net contribution of at least %(n)d subscribers to these counts. Even "
        "so, the change in a figure for a single date range or indicator can come from just one person."
    )
    return text % {"n": study.min_publication}


def _necessity(study: Study, spec: PlanSpec, certificate: Certificate) -> Section:
    epsilons = {"profile": certificate.epsilon_profile, "attribute": certificate.epsilon_attribute}
    asked = formats.epsilon(epsilons[spec.unit])
    lines = standing(study.population, studies_of(study.population), today=today())
    columns = ngettext(
        "Data minimisation: only the columns needed for one indicator are read.",
        "Data minimisation: only the columns needed for %(n)d indicators are read.",
        spec.d,
    ) % {"n": spec.d}
    if study.classes:
        columns += " " + gettext("In addition, the column with the class of the subscriber is read.")
    return Section(
        title=gettext("Necessity and proportionality"),
        article="35 (7) b",
        points=(
            columns,
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
            gettext("Accuracy: each estimate has a 95% interval. Unreliable estimates are not shown."),
        ),
        to_fill=(gettext("Reasons why fewer indicators, days or categories would not be sufficient"),),
    )


def _budget_words(line: BudgetLine) -> str:
    facts = {
        "when": span_words(line.span),
        "unit": unit_words(line.unit),
        "spent": spent_words(line.spent),
        "cap": "" if line.cap is None else formats.epsilon(line.cap),
    }
    if line.cap is None:
        text = gettext(
            "Epsilon spent by all studies of this population (%(when)s, %(unit)s): %(spent)s; no cap is set."
        )
    else:
        text = gettext(
            "Epsilon spent by all studies of this population (%(when)s, %(unit)s): %(spent)s; "
            "the cap is %(cap)s."
        )
    return text % facts


def _risk_of_values(study: Study, spec: PlanSpec, certificate: Certificate) -> Section:
    """Attacker who sees a report of a person, which never leaves the operator zone alone."""
    names = shown_names(study)
    rows, of_days = [], repeated(spec)
    for index, entry in enumerate(certificate.indicators):
        size = spec.indicators[index].n_values
        after = guess_success(spec.channel(index), prior=np.full(size, 1 / size))
        known = known_day_success(spec.channel(index)) if index in of_days else None
        cells = (
            1 / size,
            after,
            largest_success(promised_ratio(spec.channel(index), float(entry.ratio)), prior=0.5),
            *([known] if of_days else []),
        )
        rows.append((names[entry.slug], *map(formats.percent, cells)))
    head = (
        gettext("Attacker's success rate with one report"),
        gettext("Attacker's maximum success rate with one report, if the value was 50% likely beforehand"),
    )
    return Section(
        title=gettext("Risk: an attacker learns a person's value"),
        article="35 (7) c",
        paragraphs=(_attacker_words(), *(_days_words(spec, names) if of_days else ())),
        table=Table(
            head=(
                gettext("Indicator"),
                gettext("Attacker's success rate without a report"),
                *head,
                *(
                    [
                        gettext(
                            "Attacker's success rate with the reports for two days, if the value on one "
                            "of these days is known"
                        )
                    ]
                    if of_days
                    else []
                ),
            ),
            rows=tuple(rows),
        ),
        to_fill=(gettext("Severity of the impact on a person, by indicator"),),
    )


def _risk_of_slots(study: Study, spec: PlanSpec) -> tuple[Section, ...]:
    """Counts by time slot, where a study has them."""
    if spec.slots is None:
        return ()
    head = (gettext("Period covered by a person's time slots"), gettext("Number of time slots"))
    losses = (
        gettext("Epsilon (presence compared with absence)"),
        gettext("Epsilon (presence here compared with presence elsewhere)"),
    )
    rows = tuple(
        (
            each["title"],
            formats.number(each["row"].slots),
            formats.epsilon(each["row"].absent.epsilon),
            formats.epsilon(each["row"].moved.epsilon),
        )
        for each in slots_table(spec)
    )
    return (
        Section(
            title=gettext("Risk: an attacker learns when and where a person was"),
            article="35 (7) c",
            paragraphs=tuple(slots_words(spec, hold_minutes=study.slots.hold_minutes)),
            table=Table(head=(*head, *losses), rows=rows) if rows else None,
            to_fill=(gettext("Severity of the risk to the person, by zone and time of day"),),
        ),
    )


def _attacker_words() -> str:
    return gettext(
        "The table assumes an attacker who has one report from a person. In fact, only counts of reports "
        "leave the operator zone. Each column shows how often the attacker correctly guesses the "
        "person's value. The first two columns of figures assume that all values were equally likely "
        "beforehand: the first is without the report, and the second is with it. The next column assumes "
        "that the attacker considered the value 50% likely before seeing the report. It shows the "
        "maximum success rate that the guarantee allows with the report. This maximum holds whatever "
        "else the attacker knows, except for other reports from the same person."
    )


def _days_words(spec: PlanSpec, names: dict[str, str]) -> tuple[str, ...]:
    """Additional knowledge from reports of several days."""
    if all(spec.is_hashed(index) for index in repeated(spec)):
        return (
            gettext(
                "Two daily reports do not show for certain whether a person's value has changed, but many "
                "reports together can. The last column of the table assumes an attacker who has a person's "
                "reports for two days and knows the person's value on one of them. It shows how often this "
                "attacker correctly guesses the value on the other day, if all values were equally likely "
                "beforehand."
            ),
        )
    text = gettext(
        "Daily reports can show whether a person's value has changed. The last column of the table "
        "assumes an attacker who has a person's reports for two days and knows the person's value on one "
        "of them. It shows how often this attacker correctly guesses the value on the other day, if all "
        "values were equally likely beforehand. No epsilon limits this success rate."
    )
    return text, *filter(None, [two_categories(spec, names)])


def _measures(study: Study) -> Section:
    return Section(
        title=gettext("Measures"),
        article="35 (7) d, 32",
        points=(
            gettext(
                "Keys are stored separately from databases and backups, and are destroyed, not archived."
            ),
            gettext(
                "Access rights by role and study, with an optional end date; new accounts have no access."
            ),
            gettext(
                "An append-only ledger (audit log) records who did what; each entry contains the hash of "
                "the previous entry."
            ),
            gettext("Pages load no content from other hosts and have a strict content security policy."),
        ),
        table=Table(head=(gettext("In this installation"), gettext("In force")), rows=_states(study)),
        to_fill=(gettext("Organisational measures: assignment of roles, training, incidents, backups"),),
    )


def _states(study: Study) -> tuple[tuple[str, str], ...]:
    """Each measure that a setting decides, and whether it is in force."""
    yes, no = gettext("yes"), gettext("no")
    measures = (
        (gettext("Operator zone and analyst zone run separately"), settings.MOBILITY_ZONE != "all"),
        (gettext("Encrypted connections only (HTTPS)"), settings.HTTPS),
        (
            gettext("Second person required for changes that weaken a plan"),
            settings.MOBILITY_SECOND_PERSON,
        ),
        (
            gettext("Second factor required for administrators and privacy officers"),
            settings.MOBILITY_SECOND_FACTOR == "required",
        ),
        (gettext("Date ranges with few visitors are suppressed"), study.small_cell > 0),
        (gettext("A date is set for the destruction of the key"), study.key_until is not None),
    )
    return tuple((label, yes if holds else no) for label, holds in measures)


def _views_sought() -> Section:
    return Section(
        title=gettext("Advice and decision"),
        article="35 (2), 35 (9), 36",
        to_fill=(
            gettext("Advice of the data protection officer"),
            gettext(
                "Views of data subjects or their representatives, or the reasons why these views were "
                "not sought"
            ),
            gettext(
                "Level of residual risk. If it is high, the supervisory authority must be consulted "
                "before processing begins"
            ),
            gettext("Decision, date, signature"),
        ),
    )
