"""Texts about presence by slot."""

from collections.abc import Iterator, Sequence
from datetime import date

import numpy as np
from django.utils.translation import gettext, ngettext, pgettext

from ldp.privacy.slots import DAY_MINUTES
from reports.base import formats
from reports.base.status import Status
from reports.privacy.statement.document import certified
from reports.privacy.statement.slots import slots_words
from reports.slots import facts
from reports.slots.facts import Change, Peak
from reports.slots.queries import Floats, Presence, SlotFigure, SlotStatus, SlotZone
from reports.slots.query import View, time_text
from reports.studies import texts as studies_texts
from reports.studies.queries import current_plan


def sentence(view: View) -> str:
    """The answer of the page: people of the first zone in the chosen slot, or why there is no number."""
    if not view.zones:
        return gettext("The study has no zones.")
    found, zone = view.found, view.zones[0]
    words = {"zone": zone.shown_name, "time": time_text(found, view.slot)}
    shown = found.figure(view.slot, zone)
    status = found.status(view.slot)
    if status != SlotStatus.OK or shown is None:
        words["status"] = status_word(status)
        return gettext("%(zone)s at %(time)s: %(status)s.") % words
    return figure_sentence(words, shown, is_exact=not found.half_width, is_scaled=found.scale != 1)


def figure_sentence(words: dict[str, str], shown: SlotFigure, *, is_exact: bool, is_scaled: bool) -> str:
    """People of a zone at a time in a sentence; `words` are `zone` and `time`."""
    n = max(round(shown.people), 0)
    words |= {"people": formats.number(n), **_ends(shown)}
    if is_exact and not is_scaled:
        text = ngettext(
            "%(zone)s: %(people)s person at %(time)s.", "%(zone)s: %(people)s people at %(time)s.", n
        )
    elif is_exact:
        text = gettext("%(zone)s: about %(people)s people at %(time)s.")
    elif shown.low <= 0:
        text = gettext(
            "%(zone)s: at most %(high)s people at %(time)s; the noise is too large to give a lower limit."
        )
    else:
        text = gettext("%(zone)s: about %(people)s people at %(time)s, between %(low)s and %(high)s.")
    return text % words


def change_sentence(view: View, found: Change) -> str:
    """Compare the chosen slot with another day, or with the median of its weekday, in a sentence."""
    less = found.difference
    words = {
        "n": formats.number(abs(less.people)),
        "other": other_title(view),
        "people": formats.number(max(found.other.people, 0)),
        "low": formats.number(min(abs(less.low), abs(less.high))),
        "high": formats.number(max(abs(less.low), abs(less.high))),
    }
    if not found.difference.people and less.low == less.high:
        return gettext("The number of people is the same as for %(other)s.") % words
    if not found.is_clear:
        return (
            gettext(
                "No clear difference from %(other)s (about %(people)s people): the noise is larger than the "
                "difference."
            )
            % words
        )
    if less.low == less.high:
        more, fewer = (
            gettext("Compared with %(other)s: %(n)s more people."),
            gettext("Compared with %(other)s: %(n)s fewer people."),
        )
        return (more if less.people > 0 else fewer) % words
    more = gettext("Compared with %(other)s: about %(n)s more people (between %(low)s and %(high)s more).")
    fewer = gettext("Compared with %(other)s: about %(n)s fewer people (between %(low)s and %(high)s fewer).")
    return (more if less.people > 0 else fewer) % words


def other_title(view: View) -> str:
    """Name the day to compare with, or the median, inside a sentence; empty without."""
    if view.other == View.OF_WEEKDAY:
        n = len(view.weekday_days)
        text = ngettext(
            "%(n)d other day that falls on the same weekday",
            "the median of %(n)d other days that fall on the same weekday",
            n,
        )
        return text % {"n": n}
    return formats.day_title(view.found.study.date_of(view.other)) if view.other else ""


def other_legend(view: View) -> str:
    """Name the day to compare with, or the median, in the legend of a chart."""
    is_median = view.other == View.OF_WEEKDAY
    return gettext("median for this weekday") if is_median else other_title(view)


def fact_sentences(view: View) -> list[str]:
    """Facts about the day and the chosen slot that the noise can carry."""
    if not view.zones:
        return []
    found, zone = view.found, view.zones[0]
    sentences = []
    if (best := facts.peak(found, zone, day=view.day)) is not None:
        sentences.append(peak_sentence(found, zone, best))
    if (hours := facts.person_hours(found, zone, day=view.day)) is not None:
        sentences.append(_hours_sentence(found, zone, hours))
    if fullest := facts.fullest(view):
        sentences.append(_fullest_sentence(view, fullest))
    return sentences


def peak_sentence(found: Presence, zone: SlotZone, best: Peak) -> str:
    """Say when a zone was fullest."""
    words = {
        "zone": zone.shown_name,
        "time": time_text(found, best.first_slot),
        "last": f"{found.ends_at(best.last_slot):%H:%M}",
        "people": formats.number(best.figure.people),
        **_ends(best.figure),
    }
    if not found.half_width and best.first_slot == best.last_slot:
        return gettext("%(zone)s was busiest at %(time)s, with %(people)s people.") % words
    if best.first_slot == best.last_slot:
        text = gettext(
            "%(zone)s was busiest at %(time)s, with about %(people)s people (%(low)s to %(high)s)."
        )
        return text % words
    text = gettext(
        "%(zone)s was busiest between %(time)s and %(last)s, with about %(people)s people (%(low)s to "
        "%(high)s)."
    )
    return text % words


def _hours_sentence(found: Presence, zone: SlotZone, hours: SlotFigure) -> str:
    words = {"zone": zone.shown_name, "hours": formats.number(hours.people), **_ends(hours)}
    if not found.half_width:
        return gettext("In total, people spent %(hours)s hours in %(zone)s on this day.") % words
    return (
        gettext("In total, people spent about %(hours)s hours in %(zone)s on this day (%(low)s to %(high)s).")
        % words
    )


def _fullest_sentence(view: View, fullest: Sequence[SlotZone]) -> str:
    words = {
        "time": time_text(view.found, view.slot),
        "zones": ", ".join(zone.shown_name for zone in fullest),
    }
    if len(fullest) == 1:
        return gettext("Busiest zone at %(time)s: %(zones)s.") % words
    if not view.found.half_width:
        return gettext("Tied for busiest zone at %(time)s: %(zones)s.") % words
    return (
        gettext("Busiest zone at %(time)s: one of %(zones)s. The noise is too large to tell which one.")
        % words
    )


def status_word(status: SlotStatus) -> str:
    """Return why a slot has no number, in a word or two; a published one has none."""
    return (
        pgettext("status", "not published yet")
        if status == SlotStatus.NOT_YET
        else formats.status_word(status)
    )


def status_sign(status: SlotStatus) -> str:
    """Return one character next to the word."""
    return "…" if status == SlotStatus.NOT_YET else formats.status_sign(status)


def status_reason(status: SlotStatus, view: View) -> str:
    """A sentence that explains a slot without a number."""
    if status == SlotStatus.NOT_YET:
        return gettext("This time slot has not ended, or its counts have not been published yet.")
    if status == SlotStatus.NOT_COLLECTED:
        return gettext(
            "No file was received for this day, so the day's counts do not show how many people were present."
        )
    return studies_texts.status_reason(Status(status), view.found.study)


def privacy_sentences(found: Presence) -> list[str]:
    """Explain the protection of a person in the counts by slot, exactly, and how to read them."""
    study = found.study
    spec, _ = certified(current_plan(study))
    sentences = slots_words(spec, hold_minutes=found.slots.hold_minutes)
    if found.half_width:
        sentences.append(
            gettext("In 95%% of cases, the noise alone changes a count by at most %(n)s people.")
            % {"n": formats.number(found.half_width)}
        )
    if study.small_cell:
        sentences.append(
            gettext(
                "The small-cell rule of this study does not apply to time slots. Noise protects the "
                "people in small counts, and the counts of empty zones also contain noise."
            )
        )
    return sentences


def bands_words(found: Presence) -> str:
    """Explain the bands of the chart; empty where there are none."""
    return gettext("Bands show the 95% interval for each time slot.") if found.half_width else ""


def counting_sentences(found: Presence) -> list[str]:
    """Explain how to read a count."""
    spec = found.spec
    sentences = [gettext("Each time shown is the start of a time slot.")]
    if spec.noise is None and spec.slots_per_day < DAY_MINUTES // spec.minutes:
        sentences.append(
            ngettext(
                "Each day, a person is counted in at most %(n)d time slot: the first.",
                "Each day, a person is counted only in their first %(n)d time slots.",
                spec.slots_per_day,
            )
            % {"n": spec.slots_per_day}
        )
    if found.study.market_share != 1:
        sentences.append(
            gettext("Counts and intervals are scaled to the population, using the market share of %s.")
            % formats.percent(float(found.study.market_share))
        )
    else:
        sentences.append(
            gettext("Figures count the operator's subscribers and are not scaled to the population.")
        )
    sentences.append(
        gettext(
            "The counts of a published time slot never change, even if more rows or files arrive later, "
            "or the uploads for its day are undone."
        )
    )
    return sentences


def figure_text(shown: SlotFigure | None) -> str:
    """People and interval in a few characters; not below none."""
    if shown is None:
        return formats.MISSING
    number = formats.number(max(shown.people, 0))
    return number if shown.low == shown.high else f"{number} ({interval_text(shown)})"


def interval_text(shown: SlotFigure) -> str:
    """The interval; no one has less than none."""
    return formats.people_range(shown.low, shown.high)


def figure_texts(found: Presence, slot: int, zones: Sequence[SlotZone]) -> list[str]:
    """Return `figure_text` of some zones in a published slot."""
    (pairs,) = number_pairs(found, range(slot, slot + 1), zones)
    return [f"{number} ({interval})" if interval else number for number, interval in pairs]


def column_texts(people: Floats, half: float) -> list[str]:
    """Return `figure_text` of a zone in the slots of a day; a sign where there is no figure."""
    people = np.maximum(people, 0)
    lows, highs = people - half, people + half
    shown, *ends = (
        formats.numbers(np.nan_to_num(np.maximum(each, 0)).tolist()) for each in (people, lows, highs)
    )
    pattern = "%(people)s (%(range)s)" if half else "%(people)s"
    words = gettext("%(low)s to %(high)s")
    return [
        formats.MISSING
        if is_missing
        else pattern % {"people": number, "range": words % {"low": low, "high": high}}
        for is_missing, number, low, high in zip(np.isnan(people).tolist(), shown, *ends, strict=True)
    ]


def number_pairs(found: Presence, slots: range, zones: Sequence[SlotZone]) -> Iterator[list[tuple[str, str]]]:
    """Numbers and intervals of zones in each of some published slots, not below none."""
    first, columns = found.first_slot, [zone.place for zone in zones]
    people = found.counts[slots.start - first : slots.stop - first, columns].astype(np.float64)
    people, half = np.maximum(people, 0) * found.scale, found.half_width
    shown, *ends = (
        iter(formats.numbers(np.maximum(each, 0).ravel().tolist()))
        for each in (people, people - half, people + half)
    )
    pattern = gettext("%(low)s to %(high)s")
    for _ in people:
        yield [
            (number, pattern % {"low": low, "high": high} if half else "")
            for _, number, low, high in zip(zones, shown, *ends, strict=False)
        ]


def slot_title(found: Presence, slot: int) -> str:
    """Day and time of a slot."""
    day: date = found.study.date_of(int(found.clock.day[slot]))
    return f"{formats.day_title(day)}, {time_text(found, slot)}"


def level_title(level: str) -> str:
    """Name of a level for readers."""
    return level or gettext("Zones")


def _ends(shown: SlotFigure) -> dict[str, str]:
    low, high = formats.people_bounds(shown.low, shown.high)
    return {"low": formats.number(low), "high": formats.number(high)}
