"""Budgets in words, for pages."""

from decimal import ROUND_FLOOR, Decimal

from django.utils import dates, timezone
from django.utils.translation import gettext, ngettext

from reports.base import formats
from reports.privacy.budget.spending import BudgetLine, BudgetOutlook, Period, Span, Unit, standing
from reports.privacy.composition import studies_of
from reports.privacy.models import BudgetCap


def unit_words(unit: str) -> str:
    """Kind of a loss."""
    words = {
        Unit.PROFILE: gettext("all of a person's values (profile)"),
        Unit.ATTRIBUTE: gettext("one of a person's values (attribute)"),
        Unit.PRESENCE: gettext("a person's presence"),
        Unit.SLOTS: gettext("a person's contribution to the counts by time slot"),
        Unit.LOCATION: gettext("a person's reported places (loss per kilometre)"),
    }
    return words[Unit(unit)]


def period_words(period: str) -> str:
    """Kind of period."""
    words = {
        Period.YEAR: gettext("each calendar year"),
        Period.MONTH: gettext("each month"),
        Period.EVER: gettext("all time"),
    }
    return words[Period(period)]


def span_words(span: Span) -> str:
    """One period: "2027", "May 2027", "all time"."""
    if not span.year:
        return period_words(Period.EVER)
    return f"{dates.MONTHS[span.month]} {span.year}" if span.month else str(span.year)


def spent_words(value: Decimal | None) -> str:
    """A loss, rounded up."""
    return gettext("no bound") if value is None else formats.epsilon(value)


def left_words(value: Decimal) -> str:
    """Return the rest, rounded down."""
    text = f"{value.quantize(Decimal('0.0001'), rounding=ROUND_FLOOR).normalize():f}"
    return formats.with_decimal_sign(text)


def slots_sum_words(delta: Decimal | str) -> str:
    """Describe how losses of counts by slot are added to each other, and to those without a delta."""
    return gettext(
        "The epsilon for time slots is guaranteed except with a small probability, called delta. "
        "When studies are combined, their epsilons add up, and so do their deltas. The total delta "
        "here is %(delta)s. In a study with presence noise, the figure under “Presence” includes the "
        "epsilon for time slots, so this delta also applies to that figure."
    ) % {"delta": formats.with_decimal_sign(f"{Decimal(delta).normalize():f}")}


def outlook_sentences(outlook: BudgetOutlook) -> list[str]:
    """Describe a study's part of each cap, or that there is none; and the sum with the other studies."""
    sentences = [_sentence(line) for line in outlook.lines]
    if not sentences:
        text = gettext(
            "No cap is set for the population %(population)s, so nothing limits what its studies reveal "
            "together."
        )
        sentences = [text % {"population": outlook.population}]
    return sentences + _total_sentences(outlook)


def _total_sentences(outlook: BudgetOutlook) -> list[str]:
    """Loss of a person who is in this study and in all others, in each unit of which this study spends."""
    text = ngettext(
        "Total epsilon with %(n)s other study of the population %(population)s, %(unit)s: %(total)s (this "
        "study: %(takes)s).",
        "Total epsilon with the %(n)s other studies of the population %(population)s, %(unit)s: %(total)s "
        "(this study: %(takes)s).",
        outlook.others,
    )
    if not outlook.others:
        text = gettext("The population %(population)s has no other study whose losses would be added.")
        return [text % {"population": outlook.population}]
    return [
        text
        % {
            "n": formats.number(outlook.others),
            "population": outlook.population,
            "unit": unit_words(line.unit),
            "total": spent_words(line.after),
            "takes": spent_words(line.takes),
        }
        for line in outlook.total
        if line.takes != 0
    ]


def spent_populations() -> list[str]:
    """Populations of which a cap is spent by four fifths in a period that is not over, by name."""
    today = timezone.localdate()
    names = BudgetCap.objects.order_by("population").values_list("population", flat=True).distinct()
    return [
        name
        for name in names
        if any(
            line.is_nearly_spent and not line.span.is_over(today)
            for line in standing(name, studies_of(name), today=today)
        )
    ]


def _sentence(line: BudgetLine) -> str:
    if line.is_exceeded:
        text = gettext(
            "%(span)s, %(unit)s: this study needs epsilon %(takes)s, but only %(left)s of the "
            "epsilon cap of %(cap)s remains. The study cannot be created with this plan."
        )
    elif line.is_nearly_spent:
        text = gettext(
            "%(span)s, %(unit)s: an epsilon of %(left)s remains, and this study uses %(takes)s of it. This "
            "brings the total spent to %(percent)s%% of the cap of %(cap)s."
        )
    else:
        text = gettext(
            "%(span)s, %(unit)s: an epsilon of %(left)s remains, of which this study uses %(takes)s. The "
            "cap is %(cap)s."
        )
    return text % {
        "span": span_words(line.span),
        "unit": unit_words(line.unit),
        "takes": spent_words(line.takes),
        "left": left_words(line.left or Decimal(0)),
        "cap": left_words(line.cap or Decimal(0)),
        "percent": line.percent or 0,
    }
