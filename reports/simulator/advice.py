"""Changes that would make a hopeless setting readable: each on its own, and worked out, not guessed."""

from dataclasses import dataclass
from math import ceil, floor, log10

from django.utils.translation import gettext

from ldp.errors import LdpError
from reports.base import formats
from reports.base.status import WIDEST_INTERVAL
from reports.simulator.model import (
    Reading,
    Row,
    Setting,
    Simulation,
    categories_possible,
    epsilon_wanted,
    follows_plan,
    visitors_needed,
)
from reports.simulator.texts import ALIKE, half_width


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """One thing that would help; `changes` are fields of the simulator, empty where it is not one of them."""

    text: str
    changes: dict[str, str]


def advice(simulation: Simulation) -> list[Advice]:
    """Return changes that make the worst of the hopeless indicators readable on a day, each on its own."""
    hopeless = [row for row in simulation.rows if row.day_reading == Reading.NOISE]
    if not hopeless:
        return []
    row = max(hopeless, key=lambda each: each.day_half_width)
    wanted = WIDEST_INTERVAL / 2
    return [
        _more_visitors(row, wanted=wanted),
        *_larger_epsilon(simulation.setting, row, wanted=wanted),
        *_fewer_categories(simulation.setting, row, wanted=wanted),
        *_union(row),
        *_mechanism(simulation),
    ]


def _more_visitors(row: Row, *, wanted: float) -> Advice:
    needed = _two_digits(visitors_needed(row, half_width=wanted))
    text = gettext(
        "Increase the number of visitors. The bars are readable with about %(n)s or more visitors per day."
    ) % {"n": formats.number(needed)}
    return Advice(text=text, changes={"visitors": str(needed)})


def _larger_epsilon(setting: Setting, row: Row, *, wanted: float) -> list[Advice]:
    if setting.classes or not follows_plan(setting, row.question):
        return []
    try:
        epsilon = epsilon_wanted(setting, half_width=wanted, slugs=[row.question.slug], of_union=False)
    except LdpError:
        return []
    text = gettext(
        "Use a larger epsilon. With an epsilon of %(epsilon)s, the bars are readable, but the reports reveal "
        "more about each person."
    ) % {"epsilon": formats.epsilon(epsilon)}
    return [Advice(text=text, changes={"epsilon": str(epsilon)})]


def _fewer_categories(setting: Setting, row: Row, *, wanted: float) -> list[Advice]:
    most = categories_possible(setting, row.forecast.index, half_width=wanted)
    if most is None:
        return []
    text = gettext("Use fewer categories. The bars are readable with %(n)d categories or fewer.") % {
        "n": most
    }
    return [Advice(text=text, changes={f"k-{row.question.slug}": str(most)})]


def _union(row: Row) -> list[Advice]:
    if row.union_reading in (None, Reading.NOISE) or row.union_half_width is None:
        return []
    text = gettext(
        "Use a longer date range. With all days combined, shares are accurate to within %(width)s."
    )
    return [Advice(text=text % {"width": half_width(row.union_half_width)}, changes={})]


def _mechanism(simulation: Simulation) -> list[Advice]:
    best = simulation.ranking[0]
    chosen = simulation.setting.mechanism
    now = next((each for each in simulation.ranking if each.mechanism == chosen), None)
    if now is None or now.mean_half_width < ALIKE * best.mean_half_width:
        return []
    text = gettext(
        "Use another mechanism: with %(name)s, intervals are %(share)s narrower under the same guarantee."
    ) % {
        "name": best.mechanism,
        "share": formats.percent(1 - best.mean_half_width / now.mean_half_width),
    }
    return [
        Advice(text=text, changes={"mechanism": best.mechanism, "epsilon": str(best.epsilon.normalize())})
    ]


def _two_digits(value: float) -> int:
    """Rounded up to two digits."""
    step = 10 ** max(0, floor(log10(value)) - 1)
    return int(ceil(value / step) * step)
