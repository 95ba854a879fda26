"""Texts of a report of a window, in sentences."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.utils.text import capfirst
from django.utils.translation import gettext, ngettext

from ldp.estimation.noisy_estimators import NoisyTotal
from reports.base import formats
from reports.base.formats import (
    noisy_number,
    number,
    number_range,
    percent,
    percent_range,
    percent_ranges,
    percents,
    status_word,
)
from reports.base.status import Status
from reports.estimates.derived import KeyFigures, Returning
from reports.estimates.options import (
    VALUES,
    VALUES_CHOICES,
    ReportOptions,
    Switch,
    ViewOfValues,
    shown_share,
    shown_visitors,
)
from reports.estimates.queries import Estimate, WindowReport, surely_present
from reports.estimates.small_categories import below
from reports.studies.names import COMBINED, HOURS_OF_BAND
from reports.studies.texts import status_reason

_NOT_RECORDED = "NR"  # as in study files

MOST_NAMES = 12  # of categories in a sentence
DEFAULT_OPTIONS = ReportOptions()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFact:
    """A large figure under its name; `more` is small, and `status` says why there is no value."""

    label: str
    value: str = ""
    more: str = ""
    status: str = ""


def key_facts(figures: KeyFigures) -> list[KeyFact]:
    """Key figures in words; none where the window has none."""
    if figures.status != Status.OK:
        return []
    hidden, busiest = str(Status.SUPPRESSED), {"label": gettext("Busiest day")}
    if figures.busiest_day is None:
        busy = KeyFact(**busiest, status=hidden)
    else:
        more = gettext("%(n)s visitors") % {"n": number(figures.busiest_visitors)}
        busy = KeyFact(**busiest, value=formats.short_day(figures.busiest_day), more=more)
    return [
        KeyFact(label=gettext("Unique visitors"), value=number(figures.n_visitors)),
        busy,
        _mean_days(figures),
        _repeats(figures),
        *_returning(gettext("Present on more than one day"), figures.several_days, of=figures.n_visitors),
        *_returning(gettext("Returning (present before these days)"), figures.before, of=figures.n_visitors),
    ]


def noisy_fact(total: NoisyTotal) -> KeyFact:
    """Visitors of a window with presence noise, and their interval."""
    more = gettext("95%% interval %(range)s") % {"range": formats.noisy_range(total)}
    return KeyFact(label=gettext("Unique visitors"), value=noisy_number(total), more=more)


def _mean_days(figures: KeyFigures) -> KeyFact:
    label = gettext("Average days present per visitor")
    if figures.mean_days is None:
        return KeyFact(label=label, status=Status.SUPPRESSED)
    return KeyFact(label=label, value=formats.decimal(figures.mean_days, decimals=2))


def _repeats(figures: KeyFigures) -> KeyFact:
    label = gettext("Repeat visits")
    if figures.n_visits is None:
        return KeyFact(label=label, status=Status.SUPPRESSED)
    n = {"n": number(figures.return_visits), "all": number(figures.n_visits)}
    return KeyFact(
        label=label, value=percent(figures.return_share), more=gettext("%(n)s of %(all)s visits") % n
    )


def _returning(label: str, found: Returning | None, *, of: int | None) -> list[KeyFact]:
    if found is None or not of:
        return []
    if found.least is None or found.most is None:
        return [KeyFact(label=label, status=Status.SUPPRESSED)]
    if found.is_exact:
        share = {"share": percent(found.least / of)}
        return [
            KeyFact(label=label, value=number(found.least), more=gettext("%(share)s of visitors") % share)
        ]
    share = {"share": percent_range(found.least / of, found.most / of)}
    more = gettext("%(share)s of visitors; the exact number is not known")
    return [KeyFact(label=label, value=number_range(found.least, found.most), more=more % share)]


def share_range(estimate: Estimate) -> str:
    """Both bounds of a share."""
    return percent_range(estimate.ci_low, estimate.ci_high)


def share_words(estimate: Estimate, *, options: ReportOptions) -> str:
    """The share that these options show, with its interval, which is that of the unbiased estimate."""
    return shares_words([estimate], options=options)[0]


def shares_words(estimates: Sequence[Estimate], *, options: ReportOptions) -> list[str]:
    """Shares as `share_words` writes them."""
    unbiased = percents(each.frequency for each in estimates)
    shown = unbiased
    if options.values != "unbiased":
        shown = percents(shown_share(each, values=options.values).value for each in estimates)
    ranges = percent_ranges((each.ci_low, each.ci_high) for each in estimates)
    same = gettext("%(share)s (95%% interval %(range)s)")
    other = gettext("%(share)s (95%% interval %(range)s; unbiased estimate %(unbiased)s)")
    return [
        (same if share == raw else other) % {"share": share, "unbiased": raw, "range": bounds}
        for share, raw, bounds in zip(shown, unbiased, ranges, strict=True)
    ]


def values_names() -> dict[str, str]:
    """Names of both kinds of values, the same on all pages."""
    return {"unbiased": gettext("Unbiased"), "consistent": gettext("Consistent")}


def values_switch(view: ViewOfValues) -> Switch:
    """Ways to the same page with each kind of values."""
    names = values_names()
    links = [(names[each], view.query(**{VALUES: each}), each == view.values) for each in VALUES_CHOICES]
    return Switch(title=gettext("Values"), links=tuple(links))


def visitors_range(estimate: Estimate) -> str:
    """Both bounds of a number of visitors."""
    return number_range(estimate.visitors_ci_low, estimate.visitors_ci_high)


def report_summary(report: WindowReport, *, options: ReportOptions = DEFAULT_OPTIONS) -> str:
    """Say what a chart with these options shows, always as shares, in the sentences of `report_sentences`."""
    return " ".join(report_sentences(report, options=options))


def report_sentences(report: WindowReport, *, options: ReportOptions = DEFAULT_OPTIONS) -> list[str]:
    """Say what a chart with these options shows, with shares: the answer first, then its details."""
    first = report.estimates[0]
    if report.status == Status.NOT_RELIABLE and first.frequency is None and not first.is_hidden:
        text = gettext(
            "Not reliable: very few people answered, perhaps none, so the counts may consist "
            "entirely of presence noise. Choose more days."
        )
        return [text]
    if report.status != Status.OK:
        words = {
            "name": capfirst(status_word(report.status)),
            "figure": status_reason(report.status, report.study),
        }
        return [gettext("%(name)s: %(figure)s") % words]
    if report.cuts is not None:
        text = gettext("Share of %(visitors)s whose value is at or above each threshold.")
        return [text % {"visitors": _visitors_of(report)}]
    hidden = hidden_words(report)
    # All estimates of a report have its status, or are hidden: none that could be larger is left out.
    # The consistent values have the order of the unbiased ones.
    shown = [each for each in report.estimates if not each.is_hidden]
    if not shown:
        return [hidden]
    in_order = sorted(shown, key=lambda estimate: -(estimate.frequency or 0.0))
    recorded = [each for each in in_order if not _lacks_value(each)] or in_order
    largest, *others = recorded
    is_all = len(recorded) == len(in_order)
    missing = _missing_value(in_order, options=options)
    share = largest.frequency or 0.0
    if share <= 0 or (share > 1 and (largest.ci_low or 0.0) <= 0):
        text = gettext("The noise is too large to identify the largest category among %(visitors)s.")
        return list(filter(None, (text % {"visitors": _visitors_of(report)}, missing, hidden)))
    text = (
        gettext("Of %(visitors)s, an estimated %(share)s are in the largest category, %(category)s.")
        if is_all
        else gettext(
            "Of %(visitors)s, an estimated %(share)s are in the largest recorded category, %(category)s."
        )
    ) % {
        "visitors": _visitors_of(report),
        "share": _amount(report, largest, options=options),
        "category": largest.shown_category,
    }
    beyond = beyond_words(share) if options.values == "unbiased" else ""
    return list(
        filter(None, (text, beyond, _runner_up(others, is_all=is_all, options=options), missing, hidden))
    )


def _amount(report: WindowReport, estimate: Estimate, *, options: ReportOptions) -> str:
    """Share, and before it the number of visitors where a chart shows those and they are not scaled."""
    share = share_words(estimate, options=options)
    shown = shown_visitors(report, estimate, values=options.values).value
    if options.measure != "visitors" or report.study.market_share != 1 or shown is None:
        return share
    return gettext("%(visitors)s, or %(share)s,") % {"visitors": number(shown), "share": share}


def beyond_words(share: float | None) -> str:
    """Say what an estimated share above 100% is; empty for any other."""
    if share is None or share <= 1:
        return ""
    return gettext("The noise can push an estimate above 100%; read such an estimate as a large share.")


def hidden_words(report: WindowReport) -> str:
    """Say how many categories the small-category rule hides; empty where it hides none."""
    n_small = sum(each.below is not None for each in report.estimates)
    n_others = sum(each.is_hidden for each in report.estimates) - n_small
    text = (
        ngettext(
            "%(n)s category is estimated at fewer than %(limit)s visitors and is hidden by the study's "
            "display policy.",
            "%(n)s categories are estimated at fewer than %(limit)s visitors and are hidden by the study's "
            "display policy.",
            n_small,
        )
        % {"n": number(n_small), "limit": number(below(report.study))}
        if n_small
        else ""
    )
    if not n_others:
        return text
    more = ngettext(
        "%(n)s larger category is also hidden, because it would reveal a small category.",
        "%(n)s larger categories are also hidden, because they would reveal a small category.",
        n_others,
    )
    return f"{text} {more % {'n': number(n_others)}}".strip()


def present_words(report: WindowReport) -> str:
    """Name the categories that surely have visitors; empty where that cannot be said, or all have."""
    found = surely_present(report)
    k = len(report.estimates)
    if found is None or len(found) == k:
        return ""
    if not found:
        return gettext("The noise is too large to determine whether any single category has visitors.")
    names = [each.shown_category for each in found[:MOST_NAMES]]
    if more := len(found) - len(names):
        names.append(ngettext("%(n)s more", "%(n)s more", more) % {"n": number(more)})
    return gettext(
        "There are visitors in at least %(n)s of %(k)s categories: %(names)s. With 95%% confidence, every "
        "category listed here has visitors. The noise is too large to show whether the other categories "
        "have visitors."
    ) % {"n": number(len(found)), "k": number(k), "names": ", ".join(names)}


def _visitors_of(report: WindowReport) -> str:
    """Describe the people of a report's shares: the sum of all categories, and how many were counted."""
    if report.study.market_share == 1:
        if report.noisy_visitors is not None:
            return gettext("about %(number)s visitors") % {"number": noisy_number(report.noisy_visitors)}
        return gettext("%(number)s visitors") % {"number": number(report.n_visitors)}
    return gettext(
        "an estimated %(scaled)s visitors (%(seen)s seen by the network, market share %(share)s)"
    ) % {
        "scaled": number(report.scale),
        "seen": number(report.n_visitors),
        "share": percent(float(report.study.market_share)),
    }


def _runner_up(others: Sequence[Estimate], *, is_all: bool, options: ReportOptions) -> str:
    """The second largest of the recorded categories, where it surely has someone; `others` are in order."""
    if not others or (others[0].ci_low or 0.0) <= 0:
        return ""
    text = (
        gettext("The next largest category is %(category)s, with %(share)s.")
        if is_all
        else gettext("The next largest recorded category is %(category)s, with %(share)s.")
    )
    return text % {
        "category": others[0].shown_category,
        "share": share_words(others[0], options=options),
    }


def _lacks_value(estimate: Estimate) -> bool:
    """Return whether the value of its people, or a part of it, is not recorded."""
    return _NOT_RECORDED in estimate.category.split(COMBINED)


def _missing_value(in_order: Sequence[Estimate], *, options: ReportOptions) -> str:
    """Share of people without a recorded value, if among the two largest of all; a headline names no such."""
    found = next(filter(_lacks_value, in_order[:2]), None)
    if found is None or len(in_order) < 2 or (found.ci_low or 0.0) <= 0:
        return ""
    words = {"category": found.shown_category, "share": share_words(found, options=options)}
    if found.category == _NOT_RECORDED:
        return gettext("No value is recorded (%(category)s) for %(share)s.") % words
    return gettext("Part of the value is not recorded (%(category)s) for %(share)s.") % words


def below_zero_words(report: WindowReport) -> str:
    """Explain intervals below zero where a report shows one; else empty."""
    if not any(each.ci_high is not None and each.ci_high < 0 for each in report.estimates):
        return ""
    return gettext(
        "An interval that is wholly below zero misses the true share, as 5 of 100 intervals do. The true "
        "share is most likely close to zero."
    )


def category_notes(report: WindowReport | None) -> list[str]:
    """Explain categories of a report: "NR", alone or in a combination, and which visits have a duration."""
    if report is None:
        return []
    notes = []
    if _NOT_RECORDED in _parts(each.shown_category for each in report.estimates):
        notes.append(
            gettext("NR means “not recorded”: the operator does not know this value for these people.")
        )
    if not _parts(each.category for each in report.estimates).isdisjoint(HOURS_OF_BAND):
        notes.append(
            gettext(
                "Only visits of 1 to 18 hours have a duration here. Visitors with a shorter or longer visit "
                "give no answer, and the shares are those of the others."
            )
        )
    return notes


def _parts(names: Iterable[str]) -> set[str]:
    return {part for name in names for part in name.split(COMBINED)}
