"""Threshold or square-wave reports for numbers that a person reports once: which is more accurate."""

from dataclasses import dataclass, replace
from math import sqrt
from typing import Literal

from django.utils.translation import gettext

from ldp.errors import LdpError
from ldp.estimation.simulation import forecast
from ldp.protocols.numbers.threshold import Scale
from reports.base import formats
from reports.numbers.texts import figure_text
from reports.simulator.model import Setting, Simulation
from reports.simulator.texts import plus_minus


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Half of the 95% intervals of a day, of the mean and of a share above a threshold, with even levels."""

    mean: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportChoice:
    """Both kinds of reports on a number; `is_wave` = the setting has the square wave."""

    name: str
    scale: Scale
    is_wave: bool
    threshold: Errors
    wave: Errors

    @property
    def ratio(self) -> float:
        """Width of the intervals with the square wave over that with thresholds; mean of both figures."""
        return sqrt(self.wave.mean * self.wave.share / (self.threshold.mean * self.threshold.share))

    @property
    def prefers_wave(self) -> bool:
        """Return whether the square wave has the narrower intervals."""
        return self.ratio < 1


def report_choices(simulation: Simulation) -> list[ReportChoice]:
    """Compare the two for each number of which a person gives one report and that is no part."""
    setting, plan = simulation.setting, simulation.plan
    parts = {part for each in setting.questions for part in each.parts}
    found = []
    for index, asked in enumerate(setting.questions):
        if asked.scale is None or asked.slug in parts or plan.values_per_person(index) > 1:
            continue
        errors = [_errors(setting, index, report=report) for report in (None, "wave")]
        if errors[0] is not None and errors[1] is not None:
            found.append(
                ReportChoice(
                    name=asked.name,
                    scale=asked.scale,
                    is_wave=asked.scale.is_wave,
                    threshold=errors[0],
                    wave=errors[1],
                )
            )
    return found


def _errors(setting: Setting, index: int, *, report: Literal["wave"] | None) -> Errors | None:
    questions = list(setting.questions)
    scale = questions[index].scale
    if scale is None:
        return None
    questions[index] = replace(questions[index], scale=replace(scale, report=report))
    try:
        plan = replace(setting, questions=tuple(questions)).plan_at(setting.epsilon)
        of_number = forecast(plan, crowd=setting.crowd)[index]
    except LdpError:  # of the plan as a whole, as the page says elsewhere
        return None
    if of_number.even_mean_error is None:
        return None
    return Errors(mean=of_number.even_mean_error, share=of_number.day.half_width(of_number.even))


def choice_words(choice: ReportChoice) -> str:
    """Compare both kinds of reports in words, and recommend one."""
    text = gettext(
        "%(name)s is reported once per person. Suppose that values are spread evenly over the "
        "thresholds. With the square wave, the mean for one day is then accurate to ±%(wave_mean)s, "
        "and a share at or above a threshold to %(wave_share)s points. With threshold reports, the "
        "mean is accurate to ±%(threshold_mean)s, and the share to %(threshold_share)s points."
    ) % {
        "name": choice.name,
        "wave_mean": figure_text(choice.wave.mean, choice.scale),
        "wave_share": plus_minus(choice.wave.share),
        "threshold_mean": figure_text(choice.threshold.mean, choice.scale),
        "threshold_share": plus_minus(choice.threshold.share),
    }
    return f"{text} {_recommendation(choice)}"


def _recommendation(choice: ReportChoice) -> str:
    gain = {"share": formats.percent(1 - min(choice.ratio, 1 / choice.ratio))}
    if choice.prefers_wave and choice.is_wave:
        text = gettext(
            "The square wave, which you chose, is recommended: on average, its intervals are %(share)s "
            "narrower than those of threshold reports."
        )
    elif choice.prefers_wave:
        text = gettext(
            "The square wave is recommended for this epsilon: on average, its intervals are %(share)s "
            "narrower than those of threshold reports. To use it, set "
            'report = "wave" for this indicator.'
        )
    elif choice.is_wave:
        text = gettext(
            "Threshold reports are recommended for this epsilon: on average, their intervals are %(share)s "
            "narrower than those of the square wave. To use them, remove "
            'report = "wave" from this indicator.'
        )
    else:
        text = gettext(
            "Threshold reports, which you chose, are recommended: on average, their intervals are "
            "%(share)s narrower than those of the square wave."
        )
    return text % gain
