"""Texts of a simulation: readable results, risks, and why a mechanism wins."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from math import floor, log10

from django.utils.translation import gettext, ngettext, pgettext

from ldp import FakedChannel, GrrChannel, PlanSpec, certify
from ldp.estimation.simulation import LARGEST_EPSILON, Candidate
from ldp.privacy.accounting import certify_presence
from ldp.privacy.plans import ReportChannel
from ldp.protocols.numbers.threshold import ThresholdChannel
from ldp.protocols.numbers.wave import WaveChannel
from ldp.protocols.partial.regions import RegionChannel
from ldp.protocols.partial.sensitive import SensitiveChannel
from ldp.protocols.projective import ProjectiveChannel
from ldp.protocols.repeated.question import QuestionChannel
from ldp.protocols.two_round import TwoRoundGrr
from reports.base import formats
from reports.privacy.days_texts import repeated, two_categories, window_words
from reports.simulator.model import (
    Reading,
    Recommendation,
    Row,
    Setting,
    Simulation,
    n_unions,
    recommended,
    simulate,
)
from reports.studies.texts import wave_words

ALIKE = 1.005  # errors that differ by less are called equal


def half_width(value: float) -> str:
    """Plus or minus, in percentage points: "±2.4 points"."""
    return formats.plus_minus(points(value))


def plus_minus(value: float) -> str:
    """Return the same without the unit, for a place that shows it: "±2.4"."""
    return formats.plus_minus(_digits(value))


def points(value: float) -> str:
    """Format percentage points, with two digits where tenths would be too coarse: "0.04 points"."""
    return gettext("%(number)s points") % {"number": _digits(value)}


def standard_error(value: float) -> str:
    """Percentage points with three digits: "0.263 points"."""
    decimals = max(0, 2 - floor(log10(100 * value))) if value > 0 else 0
    return gettext("%(number)s points") % {"number": formats.decimal(100 * value, decimals=decimals)}


def of_100(share: float) -> str:
    """Share as a number of a hundred cases; below one in decimals, since none is not meant."""
    if 0 < share < 0.0095:
        return formats.decimal(100 * share, decimals=2)
    return str(round(100 * share))


def reading_word(found: Reading) -> str:
    """A word or two."""
    return {
        Reading.CLEAR: pgettext("how far bars can be read", "clear"),
        Reading.LARGE_ONLY: pgettext("how far bars can be read", "large categories only"),
        Reading.IMPRECISE: pgettext("how far bars can be read", "low precision"),
        Reading.NOISE: pgettext("how far bars can be read", "noise"),
    }[found]


def reading_words() -> list[tuple[str, str]]:
    """Explain each word, from the best to the worst."""
    return [
        (
            reading_word(Reading.CLEAR),
            gettext(
                "A category of average size can be distinguished from an empty one, and its share is "
                "accurate to within 10 percentage points."
            ),
        ),
        (
            reading_word(Reading.LARGE_ONLY),
            gettext(
                "A category of average size cannot be distinguished from an empty one, but larger "
                "categories can."
            ),
        ),
        (
            reading_word(Reading.IMPRECISE),
            gettext(
                "The margin of error is more than ±10 percentage points, so the report is marked as low "
                "precision."
            ),
        ),
        (
            reading_word(Reading.NOISE),
            gettext("The interval spans more than 50 percentage points, so it is shown without an estimate."),
        ),
    ]


def summary(simulation: Simulation) -> str:
    """Summarise in a sentence or two what a day and all days will show."""
    rows = simulation.rows
    noise = [row for row in rows if row.day_reading == Reading.NOISE]
    narrow = min(row.day_half_width for row in rows)
    wide = max(row.day_half_width for row in rows)
    if len(noise) == len(rows):
        return gettext(
            "With these settings, one day of data is too little: every bar of every indicator "
            "would show only noise. Change the settings."
        )
    visitors = formats.number(simulation.setting.crowd.visitors)
    if narrow == wide:
        text = gettext("With %(visitors)s visitors a day, shares are accurate to about ±%(wide)s.")
    else:
        text = gettext(
            "With %(visitors)s visitors a day, the accuracy of shares ranges from about ±%(narrow)s to "
            "±%(wide)s, depending on the indicator."
        )
    text %= {"visitors": visitors, "narrow": _digits(narrow), "wide": points(wide)}
    if noise:
        n = len(noise)
        text += " " + ngettext(
            "%(n)d of %(all)d indicators shows only noise.", "%(n)d of %(all)d indicators show only noise.", n
        ) % {"n": n, "all": len(rows)}
    return text


def warnings(simulation: Simulation) -> list[str]:
    """Name the hopeless indicators, and those not shown at all."""
    setting, found = simulation.setting, []
    visitors = formats.number(setting.crowd.visitors)
    if setting.crowd.visitors < setting.small_cell:
        found.append(
            gettext(
                "This study suppresses date ranges with fewer than %(least)s visitors. With %(visitors)s "
                "visitors a day, the figures for every single day would be suppressed."
            )
            % {"least": formats.number(setting.small_cell), "visitors": visitors}
        )
    noise = [row for row in simulation.rows if row.day_reading == Reading.NOISE]
    if noise:
        found.append(_noise_words(noise, visitors=visitors))
    return found


def truth_words(channel: ReportChannel) -> str:
    """Describe how often an answer is true, in cases of a hundred."""
    answer = channel.answer if isinstance(channel, FakedChannel) else channel
    if isinstance(answer, WaveChannel):
        return wave_words(answer)
    facts = {"kept": of_100(float(answer.p)), "other": of_100(float(answer.q))}
    if isinstance(answer, SensitiveChannel):
        facts["open"] = of_100(float(answer.disclosed))
        text = gettext(
            "An answer gives a sensitive category in %(kept)s of 100 cases if it is true. It gives and "
            "discloses any other category in %(open)s of 100 cases."
        )
        return text % facts
    if isinstance(answer, RegionChannel):
        text = gettext(
            "The answer gives the group of the true category without noise. Within the group, it gives or "
            "includes the true category in at least %(kept)s of 100 cases."
        )
        return text % facts
    if isinstance(answer, ThresholdChannel):
        text = gettext(
            "Each person is asked about one threshold for the whole study. The answer says on which "
            "side of the threshold the person's value lies, and is correct in %(kept)s of 100 cases."
        )
    elif isinstance(answer, QuestionChannel) and isinstance(answer.answer, TwoRoundGrr):
        facts["sets"] = formats.number(answer.groups)
        text = gettext(
            "For each person, the categories are divided into %(sets)s sets for the whole study. An "
            "answer names one set, which contains the true category in %(kept)s of 100 cases."
        )
    elif isinstance(answer, QuestionChannel):
        text = gettext(
            "Each person is asked a single yes/no question for the whole study: is their value on a list of "
            "about half of the categories? The answer is correct in %(kept)s of 100 cases."
        )
    elif isinstance(answer, ProjectiveChannel):
        text = gettext(
            "Each answer represents a set of categories. The set includes the true category in %(kept)s of "
            "100 cases, and each of the other categories in %(other)s of 100."
        )
    elif isinstance(answer, GrrChannel | TwoRoundGrr):
        text = gettext(
            "The answer names the true category in %(kept)s of 100 cases, and each of the other "
            "categories in %(other)s of 100 cases."
        )
    else:
        text = gettext(
            "An answer marks the true category in %(kept)s of 100 cases, and each of the other "
            "categories in %(other)s of 100."
        )
    if isinstance(channel, FakedChannel) and channel.share < 1:
        text += " " + gettext("Of 100 reports, %(answers)s are real answers; the others are made up.")
        facts["answers"] = of_100(float(channel.share))
    return text % facts


def odds_words(simulation: Simulation) -> list[str]:
    """Describe by how much published data can change a belief about one person."""
    certificate = simulation.certificate
    attribute, profile = certificate.epsilon_attribute, certificate.epsilon_profile
    of_days = _days_words(simulation.plan, {each.slug: each.name for each in simulation.setting.questions})
    one = gettext(
        "Suppose that an observer sees one report on an indicator and guesses the person's value for "
        "that indicator. The report changes the odds of a correct guess by a factor of at most "
        "%(factor)s (epsilon %(epsilon)s). This limit holds regardless of what else the observer "
        "knows, unless they have seen other reports from the same person."
    ) % {"factor": formats.odds(attribute), "epsilon": formats.epsilon(attribute)}
    if profile == attribute:
        both = gettext(
            "Suppose that an observer sees a person's reports and makes a guess about that person. "
            "The reports change the odds of a correct guess by a factor of at most %(factor)s "
            "(epsilon %(epsilon)s). This limit applies to guesses about one value and about all "
            "values together."
        )
        return [both % {"factor": formats.odds(profile), "epsilon": formats.epsilon(profile)}, *of_days]
    every = gettext(
        "Seeing all of a person's reports in the study changes the odds of a correct guess about that "
        "person by a factor of at most %(factor)s (epsilon %(epsilon)s)."
    ) % {"factor": formats.odds(profile), "epsilon": formats.epsilon(profile)}
    return [one, every, *of_days]


def _days_words(plan: PlanSpec, names: dict[str, str]) -> list[str]:
    """Between whom the factors hold if values change from day to day."""
    if plan.has_streams:
        return [
            gettext(
                "Each report on a daily indicator has new noise. The limits on the odds of a correct guess "
                "therefore also apply to guesses about whether a value has changed."
            ),
            *filter(None, [window_words(plan, certify(plan))]),
        ]
    if not repeated(plan):
        return []
    if all(plan.is_hashed(index) for index in repeated(plan)):
        return [
            gettext(
                "Each report on a daily indicator has new noise. A few reports therefore do not show for "
                "certain whether a person's value changed, but many reports can. For each person, the "
                "categories are divided into sets. The limits on the odds of a correct guess apply only if "
                "the observer chooses between two possible series of daily values that follow the same "
                "pattern. This means that if the values on two days are in the same set in one series, they "
                "are also in the same set in the other."
            )
        ]
    text = gettext(
        "Anyone who sees a person's reports on a daily indicator for several days can tell whether the value "
        "changed. The limits on the odds of a correct guess then apply only if the observer chooses between "
        "two possible series of daily values that follow the same pattern. This means that if two days have "
        "the same value in one series, they also have the same value in the other. Anyone who also knows the "
        "value on one day learns more about the other days than these limits indicate."
    )
    return [text, *filter(None, [two_categories(plan, names)])]


def totals_words(simulation: Simulation) -> str:
    """Describe numbers of visitors, and their risk for presence."""
    presence = certify_presence(simulation.plan)
    if presence is None:
        return gettext(
            "Visitor numbers are exact, so nothing hides whether a person was present, or on which days."
        )
    return gettext(
        "Visitor numbers contain noise: the number for the last day is accurate to ±%(error)s. Together, "
        "the counts of visitors and answers change the odds that a person was present at all by a factor "
        "of at most %(factor)s (epsilon %(epsilon)s)."
    ) % {
        "error": formats.number(simulation.visitors_error),
        "factor": formats.odds(presence.epsilon),
        "epsilon": formats.epsilon(presence.epsilon),
    }


def winner_words(simulation: Simulation) -> list[str]:
    """Explain why the best mechanism is the best here, and its limits."""
    best = simulation.ranking[0].mean_half_width
    tied = [each for each in simulation.ranking if each.mean_half_width / best < ALIKE]
    is_chosen = {
        each.mechanism: each.mechanism == simulation.setting.mechanism for each in simulation.ranking
    }
    first = next((each for each in tied if is_chosen[each.mechanism]), tied[0])
    others = [each for each in simulation.ranking if each is not first]
    found = [_family_words(first), _method_words(first, simulation)]
    chosen = next((each for each in others if is_chosen[each.mechanism]), None)
    if alike := [each.mechanism for each in tied if each is not first]:
        found.append(gettext("Equally accurate: %(names)s.") % {"names": ", ".join(alike)})
    own = (simulation.setting.epsilon_first, simulation.setting.hash_cells, simulation.setting.window_days)
    is_ranked = own == (None, None, None)
    if chosen is not None and is_ranked:
        found.append(
            gettext(
                "The intervals of the selected mechanism, %(name)s, are %(share)s wider than "
                "those of the most accurate one."
            )
            % {"name": chosen.mechanism, "share": formats.percent(chosen.mean_half_width / best - 1)}
        )
    name = recommended(simulation.setting).mechanism
    found.append(_recommended_words(name, first, simulation))
    if name != simulation.setting.mechanism:
        found.append(_other_unit_words(first, simulation))
    return [sentence for sentence in found if sentence]


def _recommended_words(name: str, first: Candidate, simulation: Simulation) -> str:
    """Say why another mechanism is recommended than the most accurate one; empty where it is the same."""
    proposed = next((each for each in simulation.ranking if each.mechanism == name), None)
    if proposed is None or proposed.mean_half_width / simulation.ranking[0].mean_half_width < ALIKE:
        return ""
    now, then = (each.certificate.epsilon_profile for each in (proposed, first))
    if simulation.setting.presence_epsilon is not None:
        text = gettext(
            "%(name)s is recommended although %(best)s is more accurate here, because noise on visitor "
            "numbers needs answers that name one category each."
        )
    elif Fraction(then) > Fraction(now) * Fraction(101, 100):
        text = gettext(
            "%(name)s is recommended although %(best)s is more accurate here, because all of a person's "
            "values together then lose at most epsilon %(now)s instead of %(then)s."
        )
    elif n_unions(proposed.plan) > n_unions(first.plan):
        text = gettext(
            "%(name)s is recommended although %(best)s is more accurate here for single days, because it "
            "also gives figures for date ranges of several days."
        )
    elif first.plan.has_fakes or not first.plan.is_sampled:
        text = gettext(
            "%(name)s is recommended although %(best)s is more accurate here, because each person then "
            "reports on one indicator only."
        )
    else:
        return ""
    return text % {
        "name": name,
        "best": first.mechanism,
        "now": formats.epsilon(now, decimals=2),
        "then": formats.epsilon(then, decimals=2),
    }


def mechanism_words(mechanism: str) -> str:
    """A mechanism in a few words, for a choice."""
    family, method = mechanism.split("-")
    who = {
        "smp": pgettext("who answers", "one indicator per person"),
        "spl": pgettext("who answers", "all indicators for each person"),
        "rsfd": pgettext("who answers", "one indicator per person, with made-up reports on the others"),
    }[family]
    how = {
        "grr": pgettext("how it is answered", "each answer names one category (GRR)"),
        "oue": pgettext("how it is answered", "each answer can mark several categories (OUE)"),
        "ouez": pgettext("how it is answered", "each answer can mark several categories (OUE)"),
        "adp": pgettext("how it is answered", "the more accurate of two methods for each indicator (ADP)"),
        "question": pgettext(
            "how it is answered",
            "one yes/no question per person on each daily indicator, for the whole study",
        ),
        "loloha": pgettext(
            "how it is answered",
            "daily values hashed into sets of categories, with new noise in every report",
        ),
        "allomfree": pgettext(
            "how it is answered",
            "also values that do not change are reported with new noise on every day",
        ),
        "stream": pgettext(
            "how it is answered",
            "daily values on one day in each window of days, with new noise in every report",
        ),
    }[method]
    return gettext("%(mechanism)s: %(who)s; %(how)s") % {"mechanism": mechanism, "who": who, "how": how}


def purpose_words(mechanism: str) -> str:
    """Say in one sentence what a mechanism is for."""
    return {
        "smp-grr": gettext("Use it for indicators with few categories, or to add noise to visitor numbers."),
        "spl-grr": gettext(
            "Use it if every person must report on every indicator. Epsilon is divided among the "
            "indicators if the guarantee covers all of a person's values."
        ),
        "smp-oue": gettext("Use it if all indicators have many categories."),
        "smp-adp": gettext(
            "Use it for values that do not change during the study, with any number of categories."
        ),
        "smp-question": gettext(
            "Use it for daily indicators in studies of several days: the total epsilon does not grow with "
            "the number of days."
        ),
        "smp-loloha": gettext(
            "Use it for daily indicators if identical reports must not prove that a value stayed the same."
        ),
        "smp-allomfree": gettext(
            "Use it if equal reports must not show that they come from the same person, even for values that "
            "do not change."
        ),
        "smp-stream": gettext(
            "Use it for daily indicators if any week of a person's values, including its changes, must have "
            "the same limit (w-event privacy)."
        ),
        "rsfd-grr": gettext(
            "Use it to hide which indicator a person really reports on, if all indicators have few "
            "categories."
        ),
        "rsfd-ouez": gettext(
            "Use it to hide which indicator a person really reports on, if all indicators have many "
            "categories."
        ),
        "rsfd-adp": gettext(
            "Use it to hide which indicator a person really reports on, if the numbers of categories differ."
        ),
    }[mechanism]


def recommendation_words(found: Recommendation) -> str:
    """Explain why a mechanism is the recommended one."""
    if found.mechanism == "smp-grr":
        return gettext("Noise on visitor numbers needs answers that name one category each.")
    if found.other is None:
        return gettext(
            "Each person spends the whole epsilon on one indicator, which is answered by the method with "
            "the smaller error: GRR or OUE."
        )
    if found.gain < 1 - 1 / ALIKE:
        return gettext("By the simulator's formulas, no mechanism of this kind is more accurate.")
    return gettext(
        "By the simulator's formulas, its intervals are %(share)s narrower on average than those of "
        "%(other)s with the same total epsilon per person."
    ) % {"other": found.other, "share": formats.percent(found.gain)}


def cells_words(cells: str) -> str:
    """Number of sets of categories in a few words, for a choice."""
    if cells == "two":
        return gettext("two sets: smallest total epsilon (BiLOLOHA)")
    return gettext("optimal number of sets: smallest error (OLOLOHA)")


def unreachable_words(setting: Setting, *, slugs: Sequence[str], of_union: bool) -> str:
    """Describe the best possible error, where no epsilon is enough."""
    best = simulate(replace(setting, epsilon=LARGEST_EPSILON))
    rows = [row for row in best.rows if row.question.slug in slugs]
    widths = [row.union_half_width if of_union else row.day_half_width for row in rows]
    if None in widths:
        if any(row.question.moves is not None for row in rows):
            return gettext(
                "Moves and visits are counted separately for each day, so date ranges are not available. "
                "Choose a single day."
            )
        return gettext(
            "For this indicator, each person reports on only some days, so date ranges are not available. "
            "Choose a single day."
        )
    return gettext(
        "No epsilon up to 20 achieves this accuracy. The best possible accuracy is %(width)s. More "
        "visitors would improve it."
    ) % {"width": half_width(max(width for width in widths if width is not None))}


def wanted_words(epsilon: Decimal) -> str:
    """Describe the epsilon that an error needs."""
    return gettext(
        "The smallest epsilon that achieves this accuracy is %(epsilon)s, to three decimal places."
    ) % {"epsilon": formats.epsilon(epsilon)}


def own_epsilon_words() -> str:
    """Explain why the plan's epsilon does not change an error."""
    return gettext("This indicator has its own epsilon, so changing the plan's epsilon does not affect it.")


def _noise_words(noise: Sequence[Row], *, visitors: str) -> str:
    """The worst in full, and which others are noise, too."""
    worst = max(noise, key=lambda row: row.day_half_width)
    text = gettext(
        "%(name)s: with %(visitors)s visitors and %(categories)s categories, every bar for a single "
        "day shows only noise. The interval is %(width)s wide, so it %(meaning)s."
    ) % {
        "name": worst.question.name,
        "visitors": visitors,
        "categories": formats.number(worst.question.domain_size),
        "width": points(2 * worst.day_half_width),
        "meaning": _meaning(2 * worst.day_half_width),
    }
    others = [row.question.name for row in noise if row is not worst]
    if not others:
        return text
    return (
        text
        + " "
        + gettext("Other indicators that show only noise: %(names)s.") % {"names": ", ".join(others)}
    )


def _meaning(width: float) -> str:
    if width >= 1:
        return pgettext("the interval", "is wider than the full range from 0% to 100%")
    return pgettext(
        "the interval", "cannot distinguish a share of one quarter from a share of three quarters"
    )


def _family_words(best: Candidate) -> str:
    if best.plan.d == 1:
        return gettext(
            "If there is only one indicator, everyone reports on it, regardless of the mechanism. The "
            "mechanisms then differ only in how they randomise an answer."
        )
    if best.plan.is_sampled:
        return gettext(
            "%(name)s is the most accurate, because each person spends the whole epsilon on one indicator. "
            "Each indicator then gets fewer answers, but that reduces accuracy less than a smaller epsilon "
            "per answer would."
        ) % {"name": best.mechanism}
    if best.plan.has_fakes:
        return gettext(
            "%(name)s is the most accurate. It adds made-up reports, and nothing in the reports shows "
            "which one is the real answer. Each answer can therefore have an epsilon of %(answer)s within "
            "the guarantee for one value."
        ) % {
            "name": best.mechanism,
            "answer": formats.epsilon(best.plan.indicators[0].epsilon, decimals=2),
        }
    return gettext(
        "%(name)s is the most accurate, because everyone reports on every indicator, with an epsilon of "
        "%(answer)s for each one. With these settings, more answers improve accuracy more than a larger "
        "epsilon per answer would."
    ) % {"name": best.mechanism, "answer": formats.epsilon(best.plan.indicators[0].epsilon, decimals=3)}


def _method_words(best: Candidate, simulation: Simulation) -> str:
    if best.plan.asks_questions:
        return gettext(
            "For a daily indicator, each person keeps the same yes/no question for the whole study. "
            "A person therefore gives at most two different answers, however many days the study "
            "lasts. This limit allows an epsilon of %(answer)s per answer."
        ) % {"answer": formats.epsilon(best.plan.indicators[0].epsilon, decimals=2)}
    if best.plan.has_streams:
        return gettext(
            "For a daily indicator, each person answers once in any %(window)d consecutive days. Few answers "
            "per person allow an epsilon of %(answer)s per answer."
        ) % {
            "window": best.plan.window_days,
            "answer": formats.epsilon(best.plan.indicators[0].epsilon, decimals=2),
        }
    if not best.mechanism.endswith("-adp") or any(each.parts or each.scale for each in best.plan.indicators):
        return ""
    questions = simulation.setting.questions
    unary = [each.name for index, each in enumerate(questions) if best.plan.is_unary(index)]
    if not unary:
        return gettext(
            "With so few categories, generalised randomised response (GRR) is the better "
            "method for every indicator."
        )
    if len(unary) == len(questions):
        return gettext(
            "With this number of categories, optimised unary encoding (OUE) is the better method for "
            "every indicator. With OUE, an answer can mark several categories."
        )
    return gettext(
        "The most accurate mechanism uses optimised unary encoding (OUE) for the indicators with "
        "many categories: %(names)s. With OUE, an answer can mark several categories. For the other "
        "indicators, the mechanism uses generalised randomised response (GRR)."
    ) % {"names": ", ".join(unary)}


def _other_unit_words(best: Candidate, simulation: Simulation) -> str:
    """A promise about one value leaves open what all of them lose together."""
    now = simulation.certificate.epsilon_profile
    then = best.certificate.epsilon_profile
    if simulation.setting.unit != "attribute" or Fraction(then) <= Fraction(now) * Fraction(101, 100):
        return ""
    return gettext(
        "The plan's guarantee applies to each value separately, not to all of a person's values together. "
        "For all of them together, the selected mechanism has a total privacy loss of epsilon %(now)s. "
        "With the most accurate mechanism, this loss would be epsilon %(then)s."
    ) % {"then": formats.epsilon(then, decimals=2), "now": formats.epsilon(now, decimals=2)}


def _digits(value: float) -> str:
    """Percentage points, at least two digits of them."""
    decimals = 1 if not 0 < value < 0.00995 else min(6, 1 - floor(log10(100 * value)))
    return formats.decimal(100 * value, decimals=decimals)
