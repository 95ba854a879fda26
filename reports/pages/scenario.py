"""Scenarios of presence: a question about days, its answer as a bar and a sentence, and likely patterns.

A worker computes answers that need long linear programs, as it makes files: the page shows the progress.
"""

import json
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from reports.accounts.access import account, readers_only, study_or_404
from reports.base import formats
from reports.estimates.page import indicator_page
from reports.estimates.picker import kept_days
from reports.estimates.queries import WindowError
from reports.exports.actions import ask_for_file
from reports.exports.formats.choosing import SCENARIO_ANSWER
from reports.exports.models import ExportFile
from reports.exports.recipes import Recipe
from reports.scenario import queries, texts
from reports.scenario.charts import Drawn, axis_end, drawn
from reports.scenario.queries import Answer
from reports.scenario.query import (
    ABSENT,
    PRESENT,
    Kind,
    Question,
    counted_days,
    default_question,
    question_of,
)
from reports.studies.models import Indicator, Study
from reports.studies.texts import crumbs_to

_OF_FORM: Final = "day-"  # a day of the form: day-2017-05-31=present


@require_safe
@readers_only
def scenario(request: HttpRequest, slug: str, indicator_slug: str = "") -> HttpResponse:
    """The question, its answer or how far that is, or why there is none."""
    study, indicator, context = _page(request, slug, indicator_slug)
    if text := queries.refusal(study, indicator):
        return render(request, "scenario/scenario.html", context | {"refusal": text})
    if any(name.startswith(_OF_FORM) for name in request.GET):
        query = "&".join(part for part in (query_of_form(request.GET), context["kept_days"]) if part)
        return HttpResponseRedirect(f"{request.path}?{query}")
    status = 200
    try:
        question = question_of(request.GET, study=study)
    except WindowError as error:
        context["problem"] = str(error)
        question, status = default_question(study), 400
    context |= form_context(question) | _answered(request, question, indicator)
    is_part = bool(request.headers.get("HX-Request"))
    template = "scenario/_scenario_answer.html" if is_part else "scenario/scenario.html"
    return render(request, template, context, status=status)


def _page(
    request: HttpRequest, slug: str, indicator_slug: str
) -> tuple[Study, Indicator | None, dict[str, Any]]:
    if indicator_slug:
        indicator, context = indicator_page(request, slug, indicator_slug, is_below=True)
        return indicator.study, indicator, context
    study = study_or_404(request, slug)
    days = kept_days(request.GET, study)
    return (
        study,
        None,
        {
            "study": study,
            "indicators": list(study.indicators.all()),
            "kept_days": days,
            "kept_days_fields": list(QueryDict(days).items()),
            "crumbs": crumbs_to(study, days),
        },
    )


def answer_context(question: Question, found: Answer) -> dict[str, Any]:
    """Return the texts of the page about an answer."""
    study = question.study
    rows = [
        {"days": texts.pattern_text(question, bar), "n_days": len(bar.days), "drawn": each}
        for bar, each in zip(found.patterns, drawn_bars(found.patterns), strict=True)
    ]
    return {
        "answer": found,
        "question_title": texts.title(question),
        "sentence": texts.sentence(question, found),
        "people": drawn_bars((found.people,))[0] if found.people else None,
        "axis_end": formats.number(axis_end((found.people,))) if found.people else "",
        "total": found.total,
        "categories": drawn_bars(found.categories),
        "patterns": rows,
        "is_scaled": study.market_share != 1,
        "is_open": study.state == "open",
    }


def form_context(question: Question) -> dict[str, Any]:
    """Fields of the form, with what was asked."""
    study = question.study
    days = [
        {"date": day, "state": _state(question, number)}
        for number in range(1, question.days + 1)
        for day in [study.date_of(number)]
    ]
    return {
        "question": question,
        "kind": str(question.kind),
        "kinds": [(str(kind), label, query) for kind, label, query in _kinds(study)],
        "form_days": days,
        "most_k": question.days - (question.kind == Kind.NIGHTS),
        "query": question.query,
    }


def asked_answer(
    question: Question, indicator: Indicator | None, *, by: Any
) -> tuple[Answer | None, ExportFile | None]:
    """The answer; or, where it takes long, the file that a worker makes of it for the account that waits."""
    prepared = queries.Prepared.of(question, indicator)
    if prepared.is_quick:
        return prepared.answer(), None
    recipe = Recipe(
        scope=SCENARIO_ANSWER,
        ending="json",
        indicator=indicator.slug if indicator else "",
        options=question.query,
    )
    asked = ask_for_file(question.study, recipe, by=by)
    row = asked.file or asked.waits_for
    if asked.file is not None and asked.file.state == ExportFile.State.DONE:
        return Answer.from_json(json.loads(b"".join(asked.file.pieces()))), None
    return None, row


def _answered(request: HttpRequest, question: Question, indicator: Indicator | None) -> dict[str, Any]:
    if request.method == "HEAD":  # computes nothing
        return {}
    found, row = asked_answer(question, indicator, by=account(request))
    if found is not None:
        return answer_context(question, found)
    return {
        "file_state": row.state if row else "",
        "file_stage": row.stage if row else 0,
        "address": request.get_full_path(),
        "question_title": texts.title(question),
    }


def drawn_bars(bars: tuple[Any, ...]) -> list[Drawn]:
    """Bars on one axis."""
    end = axis_end(bars)
    return [drawn(bar, end=end) for bar in bars]


def _state(question: Question, day: int) -> str:
    if day in question.present:
        return PRESENT
    return ABSENT if day in question.absent else ""


def _kinds(study: Study) -> list[tuple[Kind, str, str]]:
    """Kinds of questions, each with an example to begin with."""
    days = counted_days(study)
    return [
        (Kind.DAYS, gettext("Chosen days"), default_question(study).query),
        (Kind.EXACTLY, gettext("Number of days"), f"{Kind.EXACTLY}={min(2, days)}"),
        (Kind.IN_A_ROW, gettext("Days in a row"), f"{Kind.IN_A_ROW}={min(2, days)}"),
        (Kind.NIGHTS, gettext("Nights in a row"), f"{Kind.NIGHTS}=1"),
    ]


def query_of_form(query: QueryDict) -> str:
    """The address of what the form chose: days with the same state in one parameter."""
    chosen = {
        state: ",".join(
            name.removeprefix(_OF_FORM)
            for name, value in query.items()
            if name.startswith(_OF_FORM) and value == state
        )
        for state in (PRESENT, ABSENT)
    }
    found = QueryDict(mutable=True)
    for state, days in chosen.items():
        if days:
            found[state] = days
    if not found:
        found[PRESENT] = ""  # an empty choice, which is refused
    return found.urlencode(safe=",")
