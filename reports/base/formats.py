"""How numbers, days and epsilons are written: the same on pages, in charts and in texts for screen readers.

Thousands are apart by a narrow space in every language; the decimal sign is that of the reader's.
"""

from collections.abc import Callable, Sequence
from datetime import date
from decimal import ROUND_CEILING, Decimal
from fractions import Fraction
from functools import lru_cache, wraps
from typing import TypeVarTuple

from django.utils.formats import date_format, get_format
from django.utils.translation import get_language, gettext, ngettext, pgettext

from ldp import FakedChannel, GrrChannel, PlanSpec
from ldp.estimation.noisy_estimators import NoisyTotal
from ldp.privacy.plans import ReportChannel
from reports.base.status import WIDEST_INTERVAL, Status
from reports.estimates.queries import Estimate, WindowReport
from reports.studies.models import Study

SPACE = "\u202f"  # narrow, and no line break
MINUS = "\u2212"
MISSING = "\u2013"
Ts = TypeVarTuple("Ts")


def _remembered(words: Callable[[*Ts], str]) -> Callable[[*Ts], str]:
    """Words kept for each language: a page says the same days, and thousands of numbers, again and again."""

    @lru_cache(maxsize=1 << 13)  # a megabyte
    def of_language(_language: str | None, *args: *Ts) -> str:
        return words(*args)

    @wraps(words)
    def said(*args: *Ts) -> str:
        return of_language(get_language(), *args)

    return said


def number(value: float | None) -> str:
    """Whole number, thousands apart: 62440 -> "62 440"."""
    if value is None:
        return MISSING
    return f"{round(value):,}".replace(",", SPACE).replace("-", MINUS)


def compact(value: int | None) -> str:
    """Visitors in few characters, for small cells: 62440 -> "62k"; the sign of a blank, also for none."""
    if not value:
        return status_sign(Status.SUPPRESSED if value is None else Status.NOT_COLLECTED)
    if value < 1000:
        return str(value)
    if value < 9950:
        return f"{decimal(value / 1000, decimals=1)}k"
    return f"{value / 1000:.0f}k" if value < 999_500 else f"{decimal(value / 1_000_000, decimals=1)}M"


def decimal(value: float, *, decimals: int) -> str:
    """Number with a fixed count of decimals: 1234.56, 1 -> "1 234.6", in French "1 234,6"."""
    text = f"{value:,.{decimals}f}"
    if text.startswith("-") and not text.strip("-0.,"):
        text = text.lstrip("-")  # what rounds to nothing has no sign
    return with_decimal_sign(text.replace(",", SPACE).replace("-", MINUS))


def decimal_sign() -> str:
    """What stands before decimals in the active language."""
    return _decimal_sign(get_language())


@lru_cache(maxsize=16)
def _decimal_sign(language: str | None) -> str:
    return str(get_format("DECIMAL_SEPARATOR", lang=language))


def with_decimal_sign(text: str) -> str:
    """The point of a number as Python writes it, in the active language."""
    return text.replace(".", decimal_sign()) if "." in text else text


@_remembered
def percent(value: float | None) -> str:
    """Share with one decimal: 0.1234 -> "12.3 %"."""
    return MISSING if value is None else f"{_tenths(value)}{SPACE}%"


def points(value: float) -> str:
    """Difference of two shares, in percentage points: 0.037 -> "3.7 points"."""
    return gettext("%(number)s points") % {"number": _tenths(value)}


@_remembered
def percent_range(low: float | None, high: float | None) -> str:
    """Both bounds, never a width: "11.1 to 13.5 %"."""
    if low is None or high is None:
        return MISSING
    return gettext("%(low)s to %(high)s") % {"low": _tenths(low), "high": percent(high)}


@_remembered
def number_range(low: float | None, high: float | None) -> str:
    """Both bounds of a number of visitors."""
    if low is None or high is None:
        return MISSING
    return gettext("%(low)s to %(high)s") % {"low": number(low), "high": number(high)}


def share_range(estimate: Estimate) -> str:
    """Both bounds of a share."""
    return percent_range(estimate.ci_low, estimate.ci_high)


def visitors_range(estimate: Estimate) -> str:
    """Both bounds of a number of visitors."""
    return number_range(estimate.visitors_ci_low, estimate.visitors_ci_high)


def epsilon(value: Decimal | Fraction | float, *, decimals: int = 4) -> str:
    """Rounded up, so that no text promises more than is kept; without trailing zeros."""
    step = Fraction(1, 10**decimals)
    steps = -(-Fraction(value) // step)
    text = f"{Decimal(int(steps)).scaleb(-decimals):f}"
    return with_decimal_sign(text.rstrip("0").rstrip(".") if "." in text else text)


def odds(epsilon_value: Decimal) -> str:
    """Factor by which odds can change, exp(epsilon), rounded up: 1 -> "2.72", 7 -> "1 097"."""
    ratio = epsilon_value.exp()
    if ratio >= 1_000_000:
        return f"e^{epsilon(epsilon_value, decimals=1)}"
    if ratio < 100:
        return with_decimal_sign(f"{ratio.quantize(Decimal('0.01'), rounding=ROUND_CEILING)}")
    return number(int(ratio.to_integral_value(rounding=ROUND_CEILING)))


def plan_words(spec: PlanSpec) -> str:
    """What a plan's mechanism does, in plain words."""
    sentences = (_who_answers(spec), _how(spec), _what_fakes_hide(spec))
    return " ".join(sentence for sentence in sentences if sentence)


def answer_words(channel: ReportChannel) -> str:
    """What a report says of a true category, in plain words."""
    answer = channel.answer if isinstance(channel, FakedChannel) else channel
    values = {"kept": percent(float(answer.p)), "other": percent(float(answer.q))}
    if isinstance(answer, GrrChannel):
        text = gettext("True in %(kept)s of cases; each other category takes its place in %(other)s.")
    else:
        text = gettext("Marks the true category in %(kept)s of cases, and each other category in %(other)s.")
    if isinstance(channel, FakedChannel):
        text += " " + gettext("Only %(share)s of the reports are answers; the others are made up.")
        values["share"] = percent(float(channel.share))
    return text % values


@_remembered
def day_title(day: date) -> str:
    """Day with its weekday: "Wed 31 May 2017"."""
    return date_format(day, pgettext("pattern of a date, as Django writes it", "D j M Y"))


@_remembered
def short_day(day: date) -> str:
    """Day without its year: "31 May"."""
    return date_format(day, pgettext("pattern of a date, as Django writes it", "j M"))


@_remembered
def short_month(day: date) -> str:
    """Month of a day in a narrow column: "May"."""
    return date_format(day, pgettext("pattern of a date, as Django writes it", "M"))


def window_title(first: date, last: date) -> str:
    """Days in words: "Wed 31 May 2017 to Tue 6 Jun 2017 (7 days)"."""
    if first == last:
        return day_title(first)
    days = (last - first).days + 1
    return ngettext("%(first)s to %(last)s (%(days)d day)", "%(first)s to %(last)s (%(days)d days)", days) % {
        "first": day_title(first),
        "last": day_title(last),
        "days": days,
    }


def status_word(status: str) -> str:
    """Why a number is not to be read, in a word or two; a number that is to be read has none."""
    words = {
        Status.NOT_RELIABLE: pgettext("status", "not reliable"),
        Status.NOT_COLLECTED: pgettext("status", "not collected"),
        Status.SUPPRESSED: pgettext("status", "suppressed"),
        Status.OUTAGE: pgettext("status", "outage"),
    }
    return words.get(Status(status), "")


def status_sign(status: str) -> str:
    """One character beside the word: no colour is needed to tell the four blanks apart."""
    signs = {
        Status.NOT_RELIABLE: "?",
        Status.NOT_COLLECTED: MISSING,
        Status.SUPPRESSED: "<",
        Status.OUTAGE: "\u00d7",
    }
    return signs.get(Status(status), "")


def status_reason(status: str, study: Study) -> str:
    """A sentence that explains a blank."""
    reasons = {
        Status.NOT_RELIABLE: gettext(
            "The 95 %% interval spans more than %(width)s points: it cannot tell a quarter from three "
            "quarters. The interval is shown, the estimate is not."
        ),
        Status.NOT_COLLECTED: gettext("There is no data of these days, or no answer: this is not zero."),
        Status.SUPPRESSED: gettext(
            "This study does not show windows with fewer than %(small_cell)d visitors, nor figures made of "
            "so few. Differences of windows that are shown can still reveal such small numbers. That is a "
            "policy of the study, not a part of its privacy promise, which needs no such rule."
        ),
        Status.OUTAGE: gettext("The source failed on these days: what there is of them is not to be read."),
    }
    text = reasons.get(Status(status), "")
    return text and text % {"width": round(WIDEST_INTERVAL * 100), "small_cell": study.small_cell}


def report_summary(report: WindowReport) -> str:
    """One or two sentences that say what a chart shows."""
    if report.status == Status.NOT_RELIABLE and report.estimates[0].frequency is None:
        return gettext(
            "Not reliable: so few people answered, if any, that the counts could be presence noise alone. "
            "Choose more days."
        )
    if report.status != Status.OK:
        words = {
            "name": _capital(status_word(report.status)),
            "figure": status_reason(report.status, report.study),
        }
        return gettext("%(name)s: %(figure)s") % words
    # All estimates of a report have its status: none that could be larger is left out.
    largest, *others = sorted(report.estimates, key=lambda estimate: -(estimate.frequency or 0.0))
    share = largest.frequency or 0.0
    if share <= 0 or (share > 1 and (largest.ci_low or 0.0) <= 0):
        text = gettext(
            "Of %(visitors)s it cannot be told in which category most are: the noise is too large."
        )
        return text % {"visitors": _visitors_of(report)}
    text = gettext(
        "Of %(visitors)s, an estimated %(share)s (95 %% interval %(range)s) are in the largest category, "
        "%(category)s."
    ) % {
        "visitors": _visitors_of(report),
        "share": percent(largest.frequency),
        "range": share_range(largest),
        "category": largest.category,
    }
    beyond = (
        gettext("The noise can push an estimate above 100 %; read it as a large share.") if share > 1 else ""
    )
    return " ".join(filter(None, (text, beyond, _runner_up(others))))


def visitors_title(study: Study) -> str:
    """What a total is called: beside scaled visitors of categories, that it is not one of them."""
    is_whole = study.market_share == 1
    if study.presence is not None:
        return gettext("Visitors (noisy)") if is_whole else gettext("Visitors (noisy, not scaled)")
    if is_whole:
        return gettext("Visitors (exact)")
    return gettext("Visitors (exact, not scaled)")


def reports_title(study: Study) -> str:
    """What a number of answers is called."""
    return gettext("Reports (exact)") if study.presence is None else gettext("Reports (noisy)")


def counted(value: int | None) -> str:
    """A count, which presence noise alone can make negative: nobody is there less than not at all."""
    return number(None if value is None else max(value, 0))


def noisy_number(total: NoisyTotal) -> str:
    """A noisy number of visitors; nobody has less than none."""
    return number(max(total.value, 0))


def noisy_range(total: NoisyTotal) -> str:
    """Both bounds of a noisy number of visitors; nobody has less than none."""
    return number_range(max(total.ci_low, 0), max(total.ci_high, 0))


def _visitors_of(report: WindowReport) -> str:
    """Whose shares a report gives: as many as all categories together, and how many of them were counted."""
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


def _runner_up(others: Sequence[Estimate]) -> str:
    """The second largest of all categories, where it surely has somebody; `others` are in order."""
    if not others or (others[0].ci_low or 0.0) <= 0:
        return ""
    return gettext("The next one is %(category)s with %(share)s (%(range)s).") % {
        "category": others[0].category,
        "share": percent(others[0].frequency),
        "range": share_range(others[0]),
    }


def visitor_rule(study: Study) -> str:
    """Who counts as a visitor."""
    return gettext(
        "Present on a day: at least %(minutes)d minutes between the first and the last event inside the "
        "area, from %(start)s to %(end)s, local time (%(timezone)s)."
    ) % {
        "minutes": study.visitor_min_minutes,
        "start": study.visitor_from.strftime("%H:%M"),
        "end": study.visitor_to.strftime("%H:%M"),
        "timezone": study.timezone,
    }


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _tenths(value: float) -> str:
    return decimal(value * 100, decimals=1)


def _who_answers(spec: PlanSpec) -> str:
    if not spec.is_sampled and not spec.has_fakes:
        return gettext(
            "Each person answers all %(d)d indicators, which share the epsilon of the plan equally."
        ) % {"d": spec.d}
    if spec.d == 1:
        return gettext("Each person answers the one indicator.")
    if spec.is_sampled and spec.shares is not None:
        return gettext(
            "Each person answers one of the %(d)d indicators, drawn at random once for the whole study; some "
            "indicators are drawn more often than others."
        ) % {"d": spec.d}
    if spec.is_sampled:
        return gettext(
            "Each person answers one of the %(d)d indicators, drawn at random once for the whole study."
        ) % {"d": spec.d}
    return gettext(
        "Each person answers one of the %(d)d indicators, drawn at random once for the whole study, and "
        "sends made-up reports on the others, drawn without looking at the values."
    ) % {"d": spec.d}


def _how(spec: PlanSpec) -> str:
    if spec.mechanism == "spl-grr":
        return gettext(
            "Every answer is randomised (GRR) and then kept: the same value never gets a second answer."
        )
    if spec.mechanism.endswith("-adp"):
        return gettext(
            "For each indicator the more exact of two methods is used (ADP): the answer is a category that "
            "may be replaced by another at random (GRR), or one mark per category, each drawn at random "
            "(unary encoding, OUE). It is then kept: the same value never gets a second answer."
        )
    if spec.mechanism.endswith("-grr"):
        return gettext(
            "The answer is randomised (GRR) and then kept: the same value never gets a second answer."
        )
    return gettext(
        "The answer is one mark per category, each drawn at random (unary encoding, OUE), and then kept: the "
        "same value never gets a second answer."
    )


def _what_fakes_hide(spec: PlanSpec) -> str:
    if not spec.has_fakes or spec.d == 1:
        return ""
    if spec.unit == "attribute":
        return gettext(
            "Nobody sees which report is the answer (RS+FD). That hides a single value from those who know "
            "all others, so that answers can be more exact; it does not hide all values of a person "
            "together, which lose more than is promised for one. If values go together, as age and lifestyle "
            "do, the larger loss is what counts."
        )
    return gettext(
        "The reports do not say which of them is the answer (RS+FD). For all values of a person together, "
        "which this plan is about, that hides nothing: without made-up reports (smp), the same promise gives "
        "more exact estimates."
    )
