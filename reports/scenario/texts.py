"""Sentences about scenarios: the question, its answer, and what the answer rests on."""

from collections.abc import Sequence
from datetime import date

from django.utils.translation import gettext, ngettext

from reports.base import formats
from reports.base.status import Status
from reports.scenario.queries import Answer, Bar
from reports.scenario.query import Kind, Question

LISTED = 5  # days that a sentence names; of more, it says how many


def title(question: Question) -> str:
    """The question as a heading, such as "Present on all 7 days"."""
    if question.kind == Kind.EXACTLY:
        return ngettext("Present on exactly %(k)d day", "Present on exactly %(k)d days", question.k) % _k(
            question
        )
    if question.kind == Kind.IN_A_ROW:
        return ngettext(
            "Present on at least %(k)d day", "Present on at least %(k)d days in a row", question.k
        ) % _k(question)
    if question.kind == Kind.NIGHTS:
        return ngettext(
            "Stayed at least %(k)d night", "Stayed at least %(k)d nights in a row", question.k
        ) % _k(question)
    if _is_every_day(question):
        return gettext("Present on all %(n)d days") % {"n": question.days}
    parts = []
    if question.present:
        parts.append(gettext("Present: %s") % _listed(question, question.present))
    if question.absent:
        parts.append(gettext("Absent: %s") % _listed(question, question.absent))
    return " · ".join(parts)


def sentence(question: Question, found: Answer) -> str:
    """The answer in a sentence or two; a number is alone only where nothing else is possible."""
    if found.people is None:
        return no_answer(found)
    said = _people_sentence(question, found, found.people)
    if found.stays is None:
        return said
    stays = ngettext(
        "Stays of exactly %(k)d day: %(n)s (exact count).",
        "Stays of exactly %(k)d days in a row: %(n)s (exact count).",
        question.in_a_row,
    )
    return f"{said} {stays % {'k': question.in_a_row, 'n': formats.number(found.stays)}}"


def _people_sentence(question: Question, found: Answer, people: Bar) -> str:
    did = _did(question)
    if people.is_determined and not found.is_noisy:
        return gettext(
            "%(people)s people %(did)s. This is the only number that is consistent with the published totals."
        ) % {
            "people": formats.number(people.least),
            "did": did,
        }
    ends = {"least": formats.number(people.least), "most": formats.number(people.most), "did": did}
    if people.estimate is None:
        return (
            gettext(
                "Between %(least)s and %(most)s people %(did)s. The best estimate is hidden, because either "
                "the estimate or the number of all other people is below the study's small-cell threshold."
            )
            % ends
        )
    ends["estimate"] = estimate_text(people)
    if found.is_noisy:
        return (
            gettext(
                "With 95%% confidence, between %(least)s and %(most)s people %(did)s. The best estimate "
                "is %(estimate)s, assuming that a person's next visit depends only on the last day they "
                "visited."
            )
            % ends
        )
    return (
        gettext(
            "Between %(least)s and %(most)s people %(did)s. The best estimate is %(estimate)s, assuming "
            "that a person's next visit depends only on the last day they visited."
        )
        % ends
    )


def no_answer(found: Answer) -> str:
    """Return why there are no numbers at all."""
    if found.status == Status.SUPPRESSED:
        return gettext(
            "The study hides days with few visitors, so too little data is left to answer this question. "
            "The report shows the published figures."
        )
    return gettext(
        "No results for this study have been published yet. Scenarios will be available once the first "
        "days are published."
    )


def range_text(bar: Bar) -> str:
    """Least and most people, or the one number."""
    if bar.is_determined:
        return formats.number(bar.least)
    return formats.number_range(bar.least, bar.most)


def estimate_text(bar: Bar) -> str:
    """The best estimate of a row, whose range is next to it."""
    return formats.MISSING if bar.estimate is None else formats.number(bar.estimate)


def bar_text(bar: Bar) -> str:
    """The bar for readers who do not see it."""
    if bar.is_determined:
        return gettext("exactly %s people") % formats.number(bar.least)
    ends = {"range": formats.number_range(bar.least, bar.most), "estimate": estimate_text(bar)}
    return gettext("%(range)s people, best estimate %(estimate)s") % ends


def pattern_text(question: Question, bar: Bar) -> str:
    """Days of a pattern, runs of days as one: "31 May to 2 Jun, 5 Jun"."""
    runs: list[list[int]] = []
    for day in bar.days:
        if runs and day == runs[-1][1] + 1:
            runs[-1][1] = day
        else:
            runs.append([day, day])
    return ", ".join(_run(question.dates(run)) for run in runs)


def _run(ends: Sequence[date]) -> str:
    first, last = ends
    if first == last:
        return formats.short_day(first)
    words = {"first": formats.short_day(first), "last": formats.short_day(last)}
    return gettext("%(first)s to %(last)s") % words


def _did(question: Question) -> str:
    """Describe the days of people, as the predicate of "people"."""
    if question.kind == Kind.EXACTLY:
        return ngettext("visited on exactly %(k)d day", "visited on exactly %(k)d days", question.k) % _k(
            question
        )
    if question.kind == Kind.IN_A_ROW:
        return ngettext(
            "visited on at least %(k)d day", "visited on at least %(k)d days in a row", question.k
        ) % _k(question)
    if question.kind == Kind.NIGHTS:
        values = _k(question) | {"days": question.k + 1}
        return (
            ngettext(
                "stayed at least %(k)d night (%(days)d days in a row)",
                "stayed at least %(k)d nights in a row (%(days)d days in a row)",
                question.k,
            )
            % values
        )
    if _is_every_day(question):
        return gettext("visited on all %(n)d days") % {"n": question.days}
    present, absent = (_listed(question, days) for days in (question.present, question.absent))
    if not question.absent:
        return gettext("visited on %(present)s") % {"present": present}
    if not question.present:
        return gettext("did not visit on %(absent)s") % {"absent": absent}
    return gettext("visited on %(present)s but did not visit on %(absent)s") % {
        "present": present,
        "absent": absent,
    }


def _listed(question: Question, days: Sequence[int]) -> str:
    """Some days in words; of many, how many."""
    if len(days) > LISTED:
        return gettext("%(n)d chosen days") % {"n": len(days)}
    return ", ".join(formats.short_day(day) for day in question.dates(days))


def _is_every_day(question: Question) -> bool:
    return len(question.present) == question.days


def _k(question: Question) -> dict[str, int]:
    return {"k": question.k}
