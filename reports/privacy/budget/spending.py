"""State of the budget of a population: spent in each period, left by the caps. Reads only."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from reports.privacy.composition import Losses, StudyLosses, counted, studies_of
from reports.privacy.models import BudgetCap

Unit, Period = BudgetCap.Unit, BudgetCap.Period
NEARLY = Decimal("0.8")  # of a cap, from which pages say so
_UP, _DOWN = Context(prec=60, rounding=ROUND_CEILING), Context(prec=60, rounding=ROUND_FLOOR)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Span:
    """A calendar year, a month of one, or all time (year and month 0)."""

    year: int = 0
    month: int = 0

    @property
    def period(self) -> BudgetCap.Period:
        if self.month:
            return Period.MONTH
        return Period.YEAR if self.year else Period.EVER

    def touches(self, first_day: date, last_day: date) -> bool:
        """Return whether one of these days is in it."""
        if not self.year:
            return True
        if not self.month:
            return first_day.year <= self.year <= last_day.year
        here = (self.year, self.month)
        return (first_day.year, first_day.month) <= here <= (last_day.year, last_day.month)

    def is_over(self, today: date) -> bool:
        """Return whether all of it lies before a day."""
        if not self.year:
            return False
        return (self.year, self.month or 12) < (today.year, today.month)

    def __str__(self) -> str:
        """Return the period as messages write it: 2027, 2027-05, ever."""
        if not self.year:
            return "ever"
        return f"{self.year}-{self.month:02}" if self.month else str(self.year)


def spans_of(first_day: date, last_day: date, *, period: str) -> Iterator[Span]:
    """Periods of a kind that some days touch, in their order."""
    if period == Period.EVER:
        yield Span()
    elif period == Period.YEAR:
        yield from (Span(year=year) for year in range(first_day.year, last_day.year + 1))
    else:
        months = range(first_day.year * 12 + first_day.month - 1, last_day.year * 12 + last_day.month)
        yield from (Span(year=month // 12, month=month % 12 + 1) for month in months)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetLine:
    """One unit in one period: spent by the studies that are there, and taken by what is asked for, on top.

    Of `spent` and `takes`, None means no bound; of `cap`, no cap.
    """

    unit: str
    span: Span
    spent: Decimal | None
    takes: Decimal | None = Decimal(0)
    cap: Decimal | None

    @property
    def left(self) -> Decimal | None:
        """Return what the cap leaves before the request, at least 0; None = no cap."""
        if self.cap is None:
            return None
        return Decimal(0) if self.spent is None else max(Decimal(0), _DOWN.subtract(self.cap, self.spent))

    @property
    def after(self) -> Decimal | None:
        """Spent and taken together; None = no bound."""
        if self.spent is None or self.takes is None:
            return None
        return _UP.add(self.spent, self.takes)

    @property
    def is_exceeded(self) -> bool:
        """Return whether the cap forbids what is asked for; what takes nothing is never forbidden."""
        if self.cap is None or self.takes == 0:
            return False
        return self.after is None or self.after > self.cap

    @property
    def is_nearly_spent(self) -> bool:
        """Return whether a cap is spent by four fifths, with what is asked for."""
        if self.cap is None:
            return False
        return self.after is None or self.after >= NEARLY * self.cap

    @property
    def percent(self) -> int | None:
        """Return the share of the cap, with the request, rounded up; None = no cap, or no bound."""
        if self.cap is None or self.after is None:
            return None
        share = _UP.divide(100 * self.after, self.cap)
        return int(share.to_integral_value(rounding=ROUND_CEILING))


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetOutlook:
    """The request and the rest: a line for every cap and every period that its days touch.

    No line means that no cap is set for the population.

    total : a line for each unit over all time, without a cap
    others : number of other studies that count
    """

    population: str
    lines: tuple[BudgetLine, ...]
    total: tuple[BudgetLine, ...]
    others: int

    @property
    def exceeded(self) -> tuple[BudgetLine, ...]:
        return tuple(line for line in self.lines if line.is_exceeded)

    @property
    def is_nearly_spent(self) -> bool:
        return any(line.is_nearly_spent for line in self.lines)


def caps_in_force(population: str) -> dict[tuple[str, str], BudgetCap]:
    """The cap of each unit and kind of period that has one, by (unit, period)."""
    asked = BudgetCap.objects.filter(population=population).select_related("decision")
    since = [(at, cap.pk, cap) for cap in asked if (at := in_force_since(cap)) is not None]
    newest = {(cap.unit, cap.period): cap for _, _, cap in sorted(since)}
    return {key: cap for key, cap in newest.items() if cap.epsilon is not None}


def in_force_since(cap: BudgetCap) -> "date | None":
    """Moment from which a cap held, until another replaced it; None if it never did."""
    if not cap.needs_second:
        return cap.set_at
    decision = getattr(cap, "decision", None)
    return decision.decided_at if decision is not None and decision.is_confirmed else None


def outlook(
    population: str, *, first_day: date, last_day: date, takes: Losses, without: str | None = None
) -> BudgetOutlook:
    """Return the budget that something on these days would take, in the place of the study `without`."""
    others = [each for each in studies_of(population) if each.is_deleted or each.study.slug != without]
    lines = []
    for (unit, period), cap in sorted(caps_in_force(population).items(), key=lambda item: order_of(*item[0])):
        for span in spans_of(first_day, last_day, period=period):
            spent = spent_in(others, span).of(unit)
            lines.append(BudgetLine(unit=unit, span=span, spent=spent, takes=takes.of(unit), cap=cap.epsilon))
    everything = counted(others)
    total = tuple(
        BudgetLine(unit=unit, span=Span(), spent=everything.of(unit), takes=takes.of(unit), cap=None)
        for unit in Unit
    )
    n_others = sum(each.is_counted for each in others)
    return BudgetOutlook(population=population, lines=tuple(lines), total=total, others=n_others)


def spent_in(studies: Iterable[StudyLosses], span: Span) -> Losses:
    """Losses of the studies of which a day is in a period; each counts wholly."""
    return counted(each for each in studies if span.touches(each.study.first_day, each.study.last_day))


def standing(population: str, studies: Sequence[StudyLosses], *, today: date) -> list[BudgetLine]:
    """Every cap in every period that a study, or today, touches; and the sums by year without one."""
    caps = caps_in_force(population)
    shown = dict.fromkeys(
        (unit, period)
        for unit, period in (
            *((unit, Period.YEAR) for unit in (Unit.PROFILE, Unit.ATTRIBUTE)),
            *caps,
        )
    )
    days = [(each.study.first_day, each.study.last_day) for each in studies] + [(today, today)]
    lines = []
    for unit, period in sorted(shown, key=lambda key: order_of(*key)):
        spans = {span for first, last in days for span in spans_of(first, last, period=period)}
        cap = caps.get((unit, period))
        lines += [
            BudgetLine(
                unit=unit,
                span=span,
                spent=spent_in(studies, span).of(unit),
                cap=None if cap is None else cap.epsilon,
            )
            for span in sorted(spans, reverse=True)
        ]
    return lines


def order_of(unit: str, period: str) -> tuple[int, int]:
    """Place of a cap on pages: by unit, then the longest period first."""
    return list(Unit).index(Unit(unit)), (Period.EVER, Period.YEAR, Period.MONTH).index(Period(period))
