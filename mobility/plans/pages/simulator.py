"""Predict accuracy and risks of a plan, before anything is collected; all state is in the address."""

import re
from dataclasses import astuple
from math import ceil, isfinite
from typing import Any, get_args

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _
from django.views.decorators.http import require_GET

from ldp.errors import LdpError, NoReportsError
from ldp.privacy.plans import OF_EVENTS, Mechanism
from mobility.plans.models import PlanDraft
from mobility.plans.pages.simulated import (
    people_entered,
    query_for_draft,
    query_for_new_study,
    unlike_the_draft,
)
from mobility.plans.pages.simulator_form import WORST, SimulatorForm
from mobility.plans.pages.simulator_source import crumbs_of, source_of
from reports.accounts.access import overseers_only
from reports.base import formats
from reports.base.reasons import Reason
from reports.base.status import Status
from reports.estimates import texts as estimates_texts
from reports.numbers import texts as number_texts
from reports.numbers.report_choice import choice_words, report_choices
from reports.privacy.days_texts import repeated
from reports.simulator import model, texts
from reports.simulator.advice import advice
from reports.simulator.classes import class_errors
from reports.simulator.combinations import costs
from reports.simulator.deployments import DEPLOYMENTS
from reports.simulator.events import event_errors
from reports.simulator.example import MOST_BARS, draw_example, example_figure, example_report
from reports.simulator.slots import SlotSetting, slot_rows
from reports.simulator.texts import mechanism_words
from reports.studies.policies import Role, roles_of

BADGES = {
    model.Reading.CLEAR: "badge--ok",
    model.Reading.LARGE_ONLY: "badge--accent",
    model.Reading.IMPRECISE: "badge--warn",
    model.Reading.NOISE: "badge--bad",
}


@require_GET
@overseers_only
def simulator(request: HttpRequest) -> HttpResponse:
    """Sliders and what follows from them; htmx asks for what follows only."""
    form = SimulatorForm(request.GET, source=source_of(request))
    context: dict[str, Any] = {"form": form, "source": form.source}
    if form.is_valid():
        context |= result_context(form)
        if "impossible" not in context and Role.ADMINISTRATOR in roles_of(request.user):
            context |= _use(form)
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "simulator/_simulator_result.html", context)
    context |= {"crumbs": crumbs_of(form.source), "deployments": DEPLOYMENTS}
    return render(request, "simulator/simulator.html", context)


def _use(form: SimulatorForm) -> dict[str, Any]:
    """Links that carry the values into the simulated draft, or into a new study."""
    number = form.source.kept.get("draft")
    if number is None:
        if "days" not in form.fields:
            return {}
        return {"use_in_new": query_for_new_study(form), "people_entered": people_entered(form)}
    if not PlanDraft.objects.filter(pk=number, state__in=PlanDraft.OPEN).exists():
        return {}
    address = reverse("administrator:edit_draft", args=[number])
    return {"use_in_draft": f"{address}?{query_for_draft(form)}", "is_unlike": unlike_the_draft(form)}


def result_context(form: SimulatorForm) -> dict[str, Any]:
    """Return the page's contents for a valid form."""
    setting = form.setting
    try:
        found = model.simulate(setting)
    except LdpError as error:
        return {"impossible": _refusal(error, form)}
    return {
        "setting": setting,
        "summary": texts.summary(found),
        "warnings": texts.warnings(found),
        "advice": [(each.text, each.changes and form.query(**each.changes)) for each in advice(found)],
        "readings": texts.reading_words(),
        "rows": [_row(each) for each in found.rows],
        "report_choices": [choice_words(each) for each in report_choices(found)],
        "leaves_out_own": setting.has_own and not found.plan.is_sampled,
        "odds": texts.odds_words(found),
        "totals": texts.totals_words(found),
        "days_in_all": setting.crowd.in_all(setting.days),
        "recognition": found.recognition
        and [
            {"answered": _guess(each.answered), "with_value": _guess(each.with_value)}
            for each in found.recognition
        ],
        "is_static": all(each.kind == "static" for each in found.plan.indicators),
        "is_hashed": found.plan.hashes_values
        and all(found.plan.is_hashed(index) for index in repeated(found.plan)),
        **_example(found, slug=form.cleaned_data["show"]),
        **(_combination(found) if form.is_combined else {}),
        **_classes(found),
        **_slots(form.slots),
        **_events(form),
        **_ranking(found, form=form),
        **_wanted(setting, form=form),
    }


def _refusal(error: LdpError, form: SimulatorForm) -> Reason:
    """Reason for which a plan is not possible, by the names of fields and indicators."""
    text = str(error)
    if text.startswith("presence_epsilon must be absent"):
        return Reason(
            _(
                "Leave %(field)s empty: with this plan, the noise of several counts would add up in each "
                "figure. Presence noise needs a mechanism whose answers name one category, and indicators "
                "that are no numbers, hours, moves or combinations"
            ),
            field=[str(form["presence_epsilon"].label)],
        )
    names = {name: str(field.label) for name, field in form.fields.items() if "_" in name}
    names |= {each.slug: each.name for each in form.setting.questions}
    names |= {each: mechanism_words(each) for each in get_args(Mechanism)}
    keys = sorted(names, key=len, reverse=True)
    found = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, keys))})(?![\w-])")
    return Reason(found.sub(lambda key: f"“{names[key[0]]}”", text))


def _row(row: model.Row) -> dict[str, Any]:
    """Cells of the tables, in words."""
    day, union, even = row.forecast.day, row.forecast.union, row.forecast.even
    shared = row.forecast.difference_shared
    return {
        "name": row.question.name,
        "slug": row.question.slug,
        "is_daily": row.question.kind == "daily",
        "is_by_day": row.question.moves is not None,
        "categories": row.question.domain_size,
        "epsilon": row.certified.epsilon,
        "n_reports": day.n_reports,
        "mean": _mean(row),
        "is_number": row.question.scale is not None,
        "even": even,
        "day": texts.half_width(row.day_half_width),
        "at_zero": texts.plus_minus(day.half_width(0)),
        "at_worst": texts.plus_minus(day.worst_half_width),
        "reading": texts.reading_word(row.day_reading),
        "badge": BADGES[row.day_reading],
        "union": None if union is None else texts.half_width(union.half_width(even)),
        "union_reading": row.union_reading and texts.reading_word(row.union_reading),
        "union_badge": row.union_reading and BADGES[row.union_reading],
        "difference": _difference(row.forecast.difference),
        "difference_shared": None if shared == row.forecast.difference else _difference(shared),
        "nothing_known": _guess(row.knowing_nothing),
        "shares_known": _guess(row.knowing_shares),
        "at_most": texts.of_100(row.at_most),
        "a_day_known": None if row.knowing_a_day is None else texts.of_100(row.knowing_a_day),
    }


def _mean(row: model.Row) -> str:
    """Error of the mean of a number on one day and of all days together, of moves or visits; else empty."""
    if row.question.moves is not None:
        width = row.question.moves.per_day * row.day_half_width
        if row.question.moves.items == "moves":
            moves = formats.decimal(100 * width, decimals=1)
            return gettext("moves between two zones: ±%(moves)s per 100 visitors") % {"moves": moves}
        text = (
            gettext("visitors to one zone: ±%(points)s points")
            if row.question.moves.items == "places"
            else gettext("visitors to both zones of a pair: ±%(points)s points")
        )
        return text % {"points": formats.decimal(100 * width, decimals=1)}
    scale, day, union = row.forecast.scale, row.forecast.mean_error, row.forecast.union_mean_error
    if scale is None or day is None:
        return ""
    if row.question.parts and not isfinite(day):
        return gettext("mean in one category for one day: not shown, because the noise is too large")
    if row.question.parts:
        error = {"day": number_texts.figure_text(day, scale)}
        return gettext("mean in one category for one day: ±%(day)s") % error
    errors = {"day": number_texts.figure_text(day, scale)}
    if union is None:
        return gettext("mean for one day: ±%(day)s") % errors
    errors["union"] = number_texts.figure_text(union, scale)
    return gettext("mean for one day: ±%(day)s; mean for all days together: ±%(union)s") % errors


def _combination(simulation: model.Simulation) -> dict[str, Any]:
    """Accuracy of the last question, which the plan does not have, and its cost to the others."""
    row = _row(simulation.rows[-1])
    found = [
        {
            "name": each.without.question.name,
            "without": texts.half_width(each.without.day_half_width),
            "together": texts.half_width(each.together.day_half_width),
        }
        for each in costs(simulation)
    ]
    shown = {name: row[name] for name in ("name", "day", "reading", "badge")}
    return {"combination": {**shown, "n": row["categories"], "costs": found}}


def _classes(simulation: model.Simulation) -> dict[str, Any]:
    """Errors of a share with classes, and without; nothing for a plan without classes."""
    setting = simulation.setting
    if not setting.classes:
        return {}
    plan = setting.plan_at(setting.epsilon)
    try:
        errors = [
            class_errors(
                plan,
                row.forecast.index,
                classes=setting.classes,
                visitors=setting.crowd.visitors,
                frequency=row.forecast.even,
            )
            for row in simulation.rows
        ]
    except NoReportsError:
        errors = []
    return {
        "classes": [
            (each.name, formats.percent(each.share), formats.epsilon(each.epsilon))
            for each in setting.classes
        ],
        "class_errors": [
            (row.question.name, [texts.standard_error(value) for value in astuple(each)])
            for row, each in zip(simulation.rows, errors, strict=False)
        ],
        "largest": [each.name for each in setting.classes if each.epsilon == setting.epsilon],
        "least": min(each.epsilon for each in setting.classes),
    }


def _slots(setting: SlotSetting | None) -> dict[str, Any]:
    """Errors of counts by time slot."""
    if setting is None:
        return {}
    rows = [
        {
            "epsilon": each.epsilon,
            "central": formats.decimal(each.central, decimals=1),
            "interval": formats.plus_minus(formats.number(ceil(1.96 * each.central))),
            "local": formats.number(each.local),
            "is_chosen": each.is_chosen,
        }
        for each in slot_rows(setting)
    ]
    return {"slot_rows": rows, "slots": setting}


def _events(form: SimulatorForm) -> dict[str, Any]:
    """Errors of numbers of events."""
    per_day = form.cleaned_data["events_per_day"]
    if per_day is None:
        return {}
    found = event_errors(form.setting, per_day=per_day, max_events=form.cleaned_data["max_events"])
    if found is None:
        mechanisms = formats.listed([mechanism_words(each) for each in OF_EVENTS])
        text = gettext(
            "These settings do not suit a study of events. It needs a static indicator with categories, and "
            "one of these mechanisms: %(mechanisms)s."
        )
        return {"events": {"refusal": text % {"mechanisms": mechanisms}}}
    rows = [
        {
            "name": each.name,
            "categories": each.categories,
            "cells": [formats.plus_minus(formats.number(ceil(1.96 * sd))) for sd in each.deviations.values()],
        }
        for each in found.rows
    ]
    epsilons = {"epsilon_event": found.epsilon_event, "epsilon_person": found.epsilon_person}
    return {"events": {"rows": rows, "per_day": per_day, **epsilons}}


def _difference(rise: float | None) -> str | None:
    return None if rise is None else texts.points(rise)


def _guess(guess: model.Guess) -> tuple[str, str]:
    return texts.of_100(guess.before), texts.of_100(guess.after)


def _example(simulation: model.Simulation, *, slug: str) -> dict[str, Any]:
    """A made-up day of one indicator, drawn as reports are."""
    row = simulation.row(slug)
    shown = {"shown": row.question, "truth": texts.truth_words(row.channel)}
    n_visitors = round(simulation.setting.crowd.visitors)
    example = draw_example(simulation.plan, row.forecast.index, n_visitors=n_visitors)
    if example is None:
        return shown
    name = row.question.name
    report = example_report(example, question=name)
    return {
        **shown,
        "example": example,
        "figure": example_figure(example, question=name),
        "figure_summary": estimates_texts.report_summary(report),
        "is_readable": report.status == Status.OK,
        "n_bars": MOST_BARS if example.truth.size > MOST_BARS else None,
        "is_cut": example.n_visitors < n_visitors,
    }


def _ranking(simulation: model.Simulation, *, form: SimulatorForm) -> dict[str, Any]:
    best = simulation.ranking[0].mean_half_width
    return {
        "winner": texts.winner_words(simulation),
        "ranking": [
            {
                "name": texts.mechanism_words(each.mechanism),
                "epsilon": each.epsilon,
                "profile": each.certificate.epsilon_profile,
                "attribute": each.certificate.epsilon_attribute,
                "width": texts.half_width(each.mean_half_width),
                "ratio": formats.percent(each.mean_half_width / best - 1),
                "is_chosen": each.mechanism == simulation.setting.mechanism,
                "query": form.query(mechanism=each.mechanism, epsilon=f"{each.epsilon.normalize():f}"),
            }
            for each in simulation.ranking
        ],
    }


def _wanted(setting: model.Setting, *, form: SimulatorForm) -> dict[str, Any]:
    """The other way: the epsilon for an error."""
    # With classes, the epsilon of the plan is that of a class.
    asked = () if setting.classes else setting.questions
    choices = [each.slug for each in asked if model.follows_plan(setting, each)]
    wanted, of = form.cleaned_data["wanted"], form.cleaned_data["of"]
    of_union = form.cleaned_data["over"] == "union"
    context: dict[str, Any] = {"can_solve": bool(choices), "hidden": form.hidden("wanted", "of", "over")}
    if wanted is None or not choices:
        return context
    slugs = [slug for slug in choices if of in (WORST, slug)]
    if not slugs:
        return context | {"solved": texts.own_epsilon_words()}
    try:
        width = float(wanted) / 100
        epsilon = model.epsilon_wanted(setting, half_width=width, slugs=slugs, of_union=of_union)
    except LdpError:
        return context | {"solved": texts.unreachable_words(setting, slugs=slugs, of_union=of_union)}
    query = form.query(epsilon=f"{epsilon.normalize():f}", epsilon_first="", wanted="", of="", over="")
    return context | {"solved": texts.wanted_words(epsilon), "solved_query": query}
