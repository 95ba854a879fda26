"""Texts about a study's measurements and protection."""

from collections.abc import Iterable, Sequence
from datetime import time
from itertools import product

from django.urls import reverse
from django.utils.translation import gettext, ngettext

from ldp import FakedChannel, GrrChannel, PlanSpec
from ldp.privacy.plans import ReportChannel
from ldp.protocols.numbers.threshold import ThresholdChannel
from ldp.protocols.numbers.wave import WaveChannel, kept_share
from ldp.protocols.partial.regions import RegionChannel
from ldp.protocols.partial.sensitive import SensitiveChannel
from ldp.protocols.projective import ProjectiveChannel
from ldp.protocols.repeated.question import QuestionChannel
from ldp.protocols.two_round import TwoRoundGrr
from reports.base.formats import number, percent
from reports.base.status import WIDEST_INTERVAL, Status
from reports.studies.models import Study

Crumbs = list[tuple[str, str]]  # names and addresses of the pages above one


def crumbs_to(study: Study | None = None, query: str = "") -> Crumbs:
    """The way to a page below that of a study, with the days of `query`, or below the list of studies."""
    crumbs = [(gettext("Studies"), reverse("reports:studies"))]
    if study is None:
        return crumbs
    return [*crumbs, (study.shown_name, with_query(reverse("reports:study", args=[study.slug]), query))]


def with_query(address: str, query: str) -> str:
    """An address with a query, if there is one."""
    return f"{address}?{query}" if query else address


def plan_words(spec: PlanSpec, indexes: Iterable[int] = ()) -> str:
    """Explain how people report on the indicators at these positions of a plan, by default on all."""
    return " ".join(plan_points(spec, indexes))


def plan_points(spec: PlanSpec, indexes: Iterable[int] = ()) -> list[str]:
    """Points of `plan_words`, one or a few sentences each."""
    if spec.events:
        return [_event_plan_words(spec)]
    ways = (
        *(_how, _how_repeated, _how_joint, _how_number, _how_wave, _how_number_part, _how_hours, _how_moves),
        *(_how_groups, _how_sensitive),
    )
    places = list(indexes) or list(range(spec.d))
    how = dict.fromkeys(way(spec, index) for way, index in product(ways, places))
    undone = undone_day_words() if any(map(spec.has_new_noise, places)) else ""
    return list(filter(None, (_who_answers(spec), *how, undone, _what_fakes_hide(spec))))


def _event_plan_words(spec: PlanSpec) -> str:
    """Explain how events are reported."""
    if spec.is_sampled and spec.d > 1:
        text = gettext(
            "Each event reports on one of the %(d)d indicators. The indicator is drawn at random for each "
            "event. The value is randomised before it is counted."
        ) % {"d": spec.d}
    else:
        text = gettext(
            "Each event reports on every indicator. Values are randomised before they are counted."
        )
    if spec.max_events is None:
        return text
    return f"{text} {answered_events_words(spec.max_events)}"


def answered_events_words(most: int) -> str:
    """Say which events of a person give no answer, and what that means for shares."""
    return ngettext(
        "Only the first event of each person reports. Further events of a person are counted, but not "
        "reported on. Shares are those of the events that report.",
        "Only the first %(n)d events of each person report. Further events of a person are counted, but not "
        "reported on. Shares are those of the events that report.",
        most,
    ) % {"n": most}


def tallies_words(tallies: Sequence[str]) -> str:
    """Name the further tallies of presence of a plan."""
    if not tallies:
        return gettext("none")
    words = {"visits": gettext("number of days present"), "runs": gettext("length of stay")}
    return ", ".join(words[name] for name in tallies)


def answer_words(channel: ReportChannel) -> str:
    """Explain a report about a true category, in plain words."""
    answer = channel.answer if isinstance(channel, FakedChannel) else channel
    if isinstance(answer, WaveChannel):
        return wave_words(answer)
    values = {"kept": percent(float(answer.p)), "other": percent(float(answer.q))}
    if isinstance(answer, SensitiveChannel):
        values["open"] = percent(float(answer.disclosed))
        text = gettext(
            "An answer gives a sensitive category in %(kept)s of cases if it is true. It gives and discloses "
            "any other category in %(open)s of cases."
        )
        return text % values
    if isinstance(answer, RegionChannel):
        text = gettext(
            "The answer gives the group of the true category without noise. Within the group, it gives or "
            "includes the true category in at least %(kept)s of cases."
        )
        return text % values
    if isinstance(answer, ThresholdChannel):
        text = gettext(
            "Each person is asked about one threshold for the whole study. The answer says on which "
            "side of the threshold the person's value lies, and is correct in %(kept)s of cases."
        )
    elif isinstance(answer, QuestionChannel) and isinstance(answer.answer, TwoRoundGrr):
        values["sets"] = number(answer.groups)
        text = gettext(
            "For each person, the categories are divided into %(sets)s sets for the whole study. An "
            "answer names one set, which contains the true category in %(kept)s of cases."
        )
    elif isinstance(answer, QuestionChannel):
        text = gettext(
            "Each person is asked only one yes/no question for the whole study. The question is "
            "whether the person's value is on a list of about half of the categories. The answer is "
            "correct in %(kept)s of cases."
        )
    elif isinstance(answer, ProjectiveChannel):
        text = gettext(
            "Each answer represents a set of categories. The set includes the true category in %(kept)s of "
            "cases, and each of the other categories in %(other)s of cases."
        )
    elif isinstance(answer, GrrChannel | TwoRoundGrr):
        text = gettext(
            "The answer names the true category in %(kept)s of cases, and each of the other categories in "
            "%(other)s of cases."
        )
    else:
        text = gettext(
            "An answer marks the true category in %(kept)s of cases, and each of the other "
            "categories in %(other)s of cases."
        )
    if isinstance(channel, FakedChannel):
        text += " " + gettext("Only %(share)s of the reports are real answers; the others are made up.")
        values["share"] = percent(float(channel.share))
    return text % values


def status_reason(status: str, study: Study) -> str:
    """A sentence that explains a blank."""
    suppressed = gettext(
        "This study suppresses date ranges with fewer than %(small_cell)d visitors, and figures based on "
        "fewer than %(small_cell)d visitors. Differences between the date ranges that are shown can still "
        "reveal such small numbers. Suppression is a policy of the study. It is not part of the privacy "
        "guarantee, which does not depend on it."
    )
    worked_out = gettext("The figure is not shown because it would reveal a category that this study hides.")
    reasons = {
        Status.NOT_RELIABLE: gettext(
            "The 95%% interval spans more than %(width)s percentage points, so it cannot distinguish a "
            "share of one quarter from a share of three quarters. Only the interval is shown, without an "
            "estimate."
        ),
        Status.NOT_COLLECTED: gettext(
            "There is no data for these days, or no answers were received. The figures are unknown, not zero."
        ),
        Status.SUPPRESSED: " ".join(
            [suppressed] * bool(study.small_cell or not study.small_category)
            + [worked_out] * bool(study.small_category)
        ),
        Status.SMALL: gettext(
            "This study hides categories that are estimated at fewer than %(small_category)d visitors. This "
            "rule is set by the study and is not part of its privacy guarantee."
        ),
        Status.OUTAGE: gettext("The data source failed. Do not rely on figures for these days."),
    }
    text = reasons.get(Status(status), "")
    limits = {"small_cell": study.small_cell, "small_category": study.small_category}
    return text and text % {"width": round(WIDEST_INTERVAL * 100), **limits}


def invented_words(study: Study) -> str:
    """Say of a demo's map that no such place exists; empty for other studies."""
    if not study.is_demo:
        return ""
    return gettext("Demo: the geography on this map is invented, including the sea.")


def visitors_title(study: Study) -> str:
    """Return the name of a total: next to scaled visitors of categories, that it is not one of them."""
    is_whole = study.market_share == 1
    if study.presence is not None:
        return gettext("Visitors (noisy)") if is_whole else gettext("Visitors (noisy, not scaled)")
    if is_whole:
        return gettext("Visitors (exact)")
    return gettext("Visitors (exact, not scaled)")


def reports_title(study: Study) -> str:
    """Return the name of a number of answers."""
    return (
        gettext("Answers received (exact)") if study.presence is None else gettext("Answers received (noisy)")
    )


def visitor_rule(study: Study) -> str:
    """Explain the rule for visitors of a study."""
    return visitor_words(
        minutes=study.visitor_min_minutes,
        start=study.visitor_from,
        end=study.visitor_to,
        timezone=study.timezone,
    )


def visitor_words(*, minutes: int, start: time, end: time, timezone: str) -> str:
    """Explain a rule for visitors."""
    return gettext(
        "A subscriber is present on a day if at least %(minutes)d minutes pass between their first and "
        "last events inside the area. Only events from %(start)s to %(end)s local time (%(timezone)s) "
        "count."
    ) % {
        "minutes": minutes,
        "start": start.strftime("%H:%M"),
        "end": end.strftime("%H:%M"),
        "timezone": timezone,
    }


def _who_answers(spec: PlanSpec) -> str:
    if not spec.is_sampled and not spec.has_fakes:
        return gettext(
            "Each person reports on all %(d)d indicators, which share the plan's epsilon equally."
        ) % {"d": spec.d}
    if spec.d == 1:
        return gettext("The study has one indicator, and each person reports on it.")
    if spec.is_sampled and spec.shares is not None:
        return gettext(
            "Each person reports on one of the %(d)d indicators. The indicator is drawn at random for "
            "that person and stays the same for the whole study. Some indicators are drawn more often "
            "than others."
        ) % {"d": spec.d}
    if spec.is_sampled:
        return gettext(
            "Each person reports on one of the %(d)d indicators. The indicator is drawn at random for "
            "that person and stays the same for the whole study."
        ) % {"d": spec.d}
    return gettext(
        "Each person gives an answer for one of the %(d)d indicators. The indicator is drawn at random for "
        "that person and stays the same for the whole study. For the other indicators, the person sends "
        "made-up reports, which do not depend on the person's values."
    ) % {"d": spec.d}


def _how(spec: PlanSpec, index: int) -> str:
    """Explain the oracle of the mechanism, unless the indicator has a way that the others explain."""
    asked = spec.indicators[index]
    if (
        asked.moves is not None
        or asked.scale is not None
        or spec.has_question(index)
        or spec.is_hashed(index)
        or spec.is_renewed(index)
        or spec.is_stream(index)
    ):
        return ""
    if (asked.parts or asked.by_code) and not spec.has_codes:
        return ""
    if spec.mechanism == "spl-grr":
        return gettext(
            "Each of a person's answers is randomised once (GRR). The randomised answer is reused "
            "whenever the value is the same."
        )
    if spec.mechanism.endswith("-adp"):
        return gettext(
            "For each indicator, the more accurate of two methods is used (ADP). With the first "
            "(GRR), the answer names one category, which may be replaced by another at random. With "
            "the second (unary encoding, OUE), the answer can mark any number of categories, and "
            "each is randomised separately. The randomised answer is then reused whenever the value "
            "is the same."
        )
    if spec.has_codes:
        return gettext(
            "Each indicator with one value per person uses the more accurate of two methods: GRR or "
            "projective geometry response (PGR). The randomised answer is then reused whenever the "
            "value is the same."
        )
    if spec.mechanism.endswith("-grr"):
        return gettext(
            "The answer is randomised once (GRR). The randomised answer is reused whenever the "
            "value is the same."
        )
    return gettext(
        "The answer can mark any number of categories, and each category is randomised separately (unary "
        "encoding, OUE). The randomised answer is then reused whenever the value is the same."
    )


def _how_repeated(spec: PlanSpec, index: int) -> str:
    if spec.is_stream(index):
        return _how_stream(spec)
    if spec.is_hashed(index):
        return gettext(
            "For a daily indicator, the categories are divided at random into a few sets. Each person has "
            "their own division, which stays the same for the whole study. There are two sets, unless the "
            "plan specifies another number. For each set that contains one of the person's true values, one "
            "randomised set is drawn with the full epsilon and kept. Every report adds new noise to the kept "
            "set (LOLOHA). A single report therefore reveals less, and identical reports do not prove that "
            "the values are the same. However long the study lasts, the total epsilon never exceeds epsilon "
            "multiplied by the number of sets."
        )
    if spec.is_renewed(index):
        return _how_renewed()
    if not spec.has_question(index):
        return ""
    return gettext(
        "For a daily indicator, each person is assigned one yes/no question at random for the whole "
        "study. The question is whether the person's value is on a given list of about half of the "
        "categories. The true answer is randomised with the full epsilon. One randomised answer is "
        "drawn for a true “yes” and one for a true “no”, and both are then reused. A person "
        "therefore never has more than two randomised answers, however many days the study lasts."
    )


def _how_renewed() -> str:
    return gettext(
        "For an indicator with one value per person, one randomised answer is drawn with the full epsilon "
        "and kept in the operator zone. Each day on which the person is present has its own report, which "
        "adds new noise to the kept answer (ALLOMFREE). A single report therefore reveals less, and equal or "
        "different reports do not show for certain whether they come from the same person. Together, many "
        "reports from one person show the kept answer, but they never reveal more than epsilon. The more "
        "accurate of two methods is used: either the report names one category (L-GRR), or it can mark any "
        "number of categories (L-OSUE). For a combination of indicators, the report names one of a few sets "
        "into which the combinations are divided at random for each person (LOLOHA)."
    )


def unit_words(unit: str) -> str:
    """Name the privacy unit of a plan of people."""
    if unit == "profile":
        return gettext("all of a person's values (profile)")
    return gettext("one of a person's values (attribute)")


def undone_day_words() -> str:
    """Explain what a day that is undone and uploaded again shows, although each day has new noise."""
    return gettext(
        "Exception: if the uploads for a day are undone and the day is uploaded again, an unchanged value "
        "gives the same answer. The two versions of the day therefore show whether a person's value has "
        "changed between them. The guarantee does not cover this."
    )


def _how_stream(spec: PlanSpec) -> str:
    if spec.window_days == 1:
        return gettext(
            "For a daily indicator, each person answers on every day of presence. Each answer is "
            "randomised with GRR or PGR and the full epsilon, and with new noise, so answers do not show "
            "whether a value has changed (w-event privacy, for a window of one day)."
        )
    return gettext(
        "For a daily indicator, each person answers on at most one of any %(window)d consecutive days, "
        "always at the same interval. The first of these days is drawn at random for each person. Each "
        "answer is randomised with GRR or PGR and the full epsilon, and with new noise, so answers do not "
        "show whether a value has changed. Any %(window)d consecutive days therefore reveal at most epsilon "
        "(w-event privacy)."
    ) % {"window": spec.window_days}


def wave_words(channel: WaveChannel) -> str:
    """Explain a square-wave report on a number, in plain words."""
    values = {"kept": percent(float(kept_share(channel))), "n": channel.half_width}
    if not channel.half_width:
        return (
            gettext(
                "The answer is a value rounded down to a threshold. In %(kept)s of cases it is the person's "
                "value. In all other cases it is another value, drawn at random."
            )
            % values
        )
    return (
        ngettext(
            "The answer is a value on the scale of thresholds. In %(kept)s of cases it lies at most %(n)d "
            "threshold away from the person's value. In all other cases it lies further away.",
            "The answer is a value on the scale of thresholds. In %(kept)s of cases it lies at most %(n)d "
            "thresholds away from the person's value. In all other cases it lies further away.",
            channel.half_width,
        )
        % values
    )


def _how_joint(spec: PlanSpec, index: int) -> str:
    if spec.has_codes or not spec.indicators[index].parts:
        return ""
    return gettext(
        "An answer on a joint indicator combines the values of several indicators. The combination "
        "is randomised as one value, with the more accurate of two methods: GRR or projective "
        "geometry response (PGR). The randomised answer is then reused whenever the combination is "
        "the same."
    )


def _how_number_part(spec: PlanSpec, index: int) -> str:
    if spec.number_part(index) is None:
        return ""
    return gettext(
        "For an indicator that combines a number with another indicator, the answer says whether the number "
        "is at or above a threshold. For each person, the threshold for this number is drawn at random once."
    )


def _how_wave(spec: PlanSpec, index: int) -> str:
    if not spec.indicators[index].is_wave:
        return ""
    return gettext(
        "For a number that each person reports once, the report is a randomised value on the scale of "
        "thresholds, usually close to the person's value (square wave, SW). It uses the full epsilon. No "
        "person gives a second answer, because a second answer would use the full epsilon again."
    )


def _how_number(spec: PlanSpec, index: int) -> str:
    asked = spec.indicators[index]
    if asked.scale is None or asked.is_wave:
        return ""
    return gettext(
        "For an indicator with numeric values, each person is assigned one threshold at random for "
        "the whole study. The true answer says whether the person's value is at or above this "
        "threshold. The answer is randomised with the full epsilon (1BitMean). One randomised answer "
        "is drawn for each side of the threshold and then reused. A person therefore never has more "
        "than two randomised answers, however many days the study lasts."
    )


def _how_hours(spec: PlanSpec, index: int) -> str:
    if spec.has_codes or not spec.indicators[index].by_code:
        return ""
    return gettext(
        "An hour of the day is randomised with the more accurate of two methods: GRR or projective geometry "
        "response (PGR)."
    )


def _how_sensitive(spec: PlanSpec, index: int) -> str:
    if not spec.indicators[index].sensitive:
        return ""
    return gettext(
        "Only sensitive categories are hidden: an answer gives the true category, or a sensitive category at "
        "random (uRR). An answer that gives a category that is not sensitive discloses it."
    )


def _how_groups(spec: PlanSpec, index: int) -> str:
    if not spec.indicators[index].regions:
        return ""
    return gettext(
        "An answer gives the group of a category without noise. Only the category within the group is "
        "randomised, with the more accurate of two methods: GRR or projective geometry response (PGR). The "
        "group of each subscriber is not protected."
    )


def _how_moves(spec: PlanSpec, index: int) -> str:
    moves = spec.indicators[index].moves
    if moves is None:
        return ""
    if moves.items == "moves":
        return gettext(
            "For moves between zones, one of each person's moves is drawn at random every day. This move "
            "is randomised with the more accurate of two methods: GRR or projective geometry response "
            "(PGR). New noise is drawn every day, so the answers do not show whether a move is repeated. "
            "The epsilons of all days add up."
        )
    return gettext(
        "For visited zones, one of the zones that each person visits, or one pair of these zones, "
        "is drawn at random every day. The drawn zone or pair is randomised with the more "
        "accurate of two methods: GRR or projective geometry response (PGR). New noise is drawn "
        "every day, so answers do not show whether a person repeats a visit. The epsilons of all "
        "days add up."
    )


def _what_fakes_hide(spec: PlanSpec) -> str:
    if not spec.has_fakes or spec.d == 1:
        return ""
    if spec.unit == "attribute":
        return gettext(
            "A person's reports do not show which one is real and which are made up (RS+FD). Each value on "
            "its own is therefore protected, even from someone who knows all of the person's other values. "
            "Because the real report is hidden, answers can also be more accurate. All of a person's values "
            "together are less protected: their total privacy loss is larger than the loss guaranteed for a "
            "single value. If values are correlated, such as age and lifestyle, the larger loss is the one "
            "that counts."
        )
    return gettext(
        "With RS+FD, a report does not show whether it is real or made up. However, this plan protects "
        "all of a person's values together, and made-up reports add nothing to that protection. A "
        "mechanism without made-up reports (smp) would give more accurate estimates under the same "
        "guarantee."
    )
