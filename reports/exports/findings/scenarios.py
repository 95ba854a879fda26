"""Scenarios as a table: the answer, categories and likely patterns, each from least to most."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any, Final

from django.http import QueryDict
from django.utils.translation import gettext

from reports.base.status import Status
from reports.base.version import software
from reports.estimates.queries import LEVEL, Window, window_report
from reports.exports.findings.tables import Findings, Record, head_of, interval_codes, tail_of
from reports.exports.formats.columns import Kind as Holds
from reports.exports.selection import select_summary
from reports.scenario import texts
from reports.scenario.queries import Answer, Bar, Prepared
from reports.scenario.query import Question, question_of
from reports.studies.models import Indicator, Study

Tick = Callable[[int], None]
LOOK_S: Final = 0.5  # from one sign of life to the next while a linear program runs
_LAST: Final = 95  # percent that an estimate of the time may claim


def asked_question(study: Study, options: str) -> Question:
    """The question of a recipe; WindowError if there is none such."""
    return question_of(QueryDict(options), study=study)


def scenario_answer(
    question: Question, indicator: Indicator | None, *, tick: Tick = lambda _: None
) -> Answer:
    """Compute an answer; NoScenarioError if the study or the indicator has none.

    `tick` takes, twice a second, how many percent are done, by an estimate of the time; what it raises ends
    the waiting.
    """
    prepared = Prepared.of(question, indicator)
    expected, begun = max(prepared.seconds, 1.0), time.monotonic()
    pool = ThreadPoolExecutor(max_workers=1)
    try:
        found = pool.submit(prepared.answer)
        while not found.done():
            tick(min(_LAST, int(100 * (time.monotonic() - begun) / expected)))
            wait([found], timeout=LOOK_S)
        return found.result()
    finally:
        pool.shutdown(wait=False)


def scenario_findings(question: Question, indicator: Indicator | None, found: Answer) -> Findings:
    """All that the page of a scenario says."""
    study = question.study
    if indicator is None:
        reports = select_summary(study).reports
    else:
        reports = (window_report(indicator, Window(1, question.days)),)
    name = [study.slug, *([indicator.slug] if indicator else []), "scenario"]
    return Findings(
        name="_".join(name),
        title=texts.title(question),
        sheet="scenario",
        reports=reports,
        is_of_study=indicator is None,
        words=(texts.sentence(question, found),),
        before=_head(question) | (head_of(reports[0]) if indicator else _study_head(question, found)),
        rows=list(_rows(question, found)),
        after=tail_of(reports[0]) if indicator else _study_tail(study),
        kinds=dict.fromkeys(("least", "most", "estimate", "market_share"), Holds.NUMBER)
        | {"k": Holds.COUNT, "n_days": Holds.COUNT},
        codes={"interval": interval_codes(), "figure": _figures()},
    )


def scenario_record(question: Question, indicator: Indicator | None, found: Answer) -> Record:
    """Plain values of an answer, as programs read it."""
    study = _study_head(question, found)
    return {
        "study": study.pop("study"),
        "indicator": indicator.slug if indicator else None,
        **study,
        **_head(question),
        "sentence": texts.sentence(question, found),
        "rows": list(_rows(question, found)),
        "market_share": float(question.study.market_share),
        **_study_tail(question.study),
    }


def _head(question: Question) -> Record:
    return {
        "question": str(question.kind),
        "present_days": _dates(question, question.present),
        "absent_days": _dates(question, question.absent),
        "k": question.k or None,
    }


def _study_head(question: Question, found: Answer) -> Record:
    study = question.study
    return {
        "study": study.slug,
        "first_day": study.first_day.isoformat(),
        "last_day": study.date_of(question.days).isoformat(),
        "n_visitors": found.total,
    }


def _study_tail(study: Study) -> Record:
    return {"ci_level": LEVEL, "timezone": study.timezone, "software_version": software()["version"]}


def _rows(question: Question, found: Answer) -> Iterator[Record]:
    """Rows with all columns; one without numbers says why."""
    noisy = "at_least" if found.is_noisy else "bounds"
    yield _row("people", question, found.people, interval=noisy, status=found.status)
    if found.stays is not None:
        stays = Bar(least=found.stays, most=found.stays, estimate=found.stays)
        yield _row("stays", question, stays, interval=noisy, status=found.status)
    for bar in found.categories:
        yield _row("category", question, bar, interval="at_least", status=found.status)
    for bar in found.patterns:
        yield _row("pattern", question, bar, interval=noisy, status=found.status)


def _row(figure: str, question: Question, bar: Bar | None, *, interval: str, status: Status) -> Record:
    values: dict[str, Any] = {
        "figure": figure,
        "category": (bar.name or None) if bar else None,
        "pattern_days": _dates(question, bar.days) if bar else None,
        "n_days": (len(bar.days) or None) if bar else None,
        "least": bar.least if bar else None,
        "most": bar.most if bar else None,
        "estimate": bar.estimate if bar else None,
    }
    is_counted = bar is not None and bar.is_determined and interval == "bounds"
    return values | {
        "interval": "count" if is_counted else interval if bar else None,
        "status": str(status),
    }


def _dates(question: Question, days: tuple[int, ...]) -> str | None:
    return " ".join(day.isoformat() for day in question.dates(days)) or None


def _figures() -> dict[str, str]:
    return {
        "people": gettext("all people who match the scenario"),
        "stays": gettext("stays that last exactly the number of days in the question"),
        "category": gettext("people in one category, scaled to the population using the market share"),
        "pattern": gettext(
            "people who visited on exactly these days of the study and on no other days; the figure does "
            "not depend on the question"
        ),
    }
