"""Scenarios from tables of other providers: chosen by the reader, used for one request, not kept.

The page carries the tables along, so that each further question sends them again.
"""

from collections.abc import Sequence
from datetime import date
from math import ceil, copysign
from typing import Any, Final
from urllib.parse import urlencode

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils.translation import gettext
from django.views.decorators.http import require_http_methods

from ldp.errors import LdpError
from reports.accounts.access import account, readers_only
from reports.base import formats
from reports.base.status import Status
from reports.estimates.queries import WindowError
from reports.pages.scenario import answer_context, drawn_bars, form_context, query_of_form
from reports.scenario import texts
from reports.scenario.published_tables import (
    HIDDEN_BELOW,
    PublishedTable,
    TableError,
    days_of,
    read_table,
)
from reports.scenario.queries import Answer, Bar
from reports.scenario.query import LEAST_DAYS, Kind, Question, default_question, question_of, unsolved
from reports.scenario.table_answers import seconds_of, table_answer
from reports.studies.models import Study
from reports.studies.texts import crumbs_to

MAX_PAGE_BYTES: Final = 1_500_000  # of all tables: the page carries them
MAX_TABLES: Final = 10
MOST_S: Final = 10  # no worker computes these answers: a worker would have to keep the tables
TURN_S: Final = 60  # far above what an answer takes: a server that died must not keep an account waiting
Contents = list[tuple[str, str]]  # names and texts of tables


@require_http_methods(["GET", "HEAD", "POST"])
@readers_only
def tables(request: HttpRequest) -> HttpResponse:
    """The form; of chosen tables, whether their numbers fit together, and the answer to a question."""
    context: dict[str, Any] = {"crumbs": crumbs_to(), "hidden_below": HIDDEN_BELOW}
    if request.method != "POST":
        return render(request, "scenario/tables.html", context)
    try:
        contents, found = _chosen(request)
        study = _calendar(found)
        question, problem = _question(request.POST, study, found)
        answered = _in_turn(request, found, question)
    except (TableError, LdpError) as error:
        text = str(error) if isinstance(error, TableError) else unsolved()
        return render(request, "scenario/tables.html", context | {"refused": text.split("\n")}, status=400)
    status = 400 if problem else 200
    if answered is None:
        problem = gettext("Your previous question is still being answered. Try again in a few seconds.")
        status = 429
    context |= (
        (answered or {})
        | form_context(question)
        | {
            "contents": contents,
            "tables": found,
            "days_title": formats.window_title(study.first_day, study.last_day),
            "hidden_below": request.POST.get("hidden_below"),
            "problem": problem,
            "most_k": study.days,
            "k": question.k or 2,
        }
    )
    return render(request, "scenario/tables.html", context, status=status)


def _chosen(request: HttpRequest) -> tuple[Contents, list[PublishedTable]]:
    """Tables of a request: chosen files, or those that the page carried along."""
    files = request.FILES.getlist("tables")[: MAX_TABLES + 1]
    names = [file.name or "" for file in files] or request.POST.getlist("name")
    parts = [file.read() for file in files] or _carried(request)
    length = int(request.headers.get("Content-Length") or 0)
    # The upload handler has dropped all files by now.
    if not parts and length > settings.FILE_UPLOAD_MAX_MEMORY_SIZE:
        raise _too_large(length)
    if not parts or len(parts) != len(names):
        raise TableError(gettext("Choose a file first."))
    if len(parts) > MAX_TABLES or len(set(names)) < len(names):
        text = gettext("Choose at most %(most)d files, each with a different name.")
        raise TableError(text % {"most": MAX_TABLES})
    if (size := sum(map(len, parts))) > MAX_PAGE_BYTES:
        raise _too_large(size)
    limit = request.POST.get("hidden_below", "")
    if not (limit.isascii() and limit.isdigit() and len(limit) <= 6):
        raise TableError(gettext("The limit below which numbers are replaced by “#” must be a whole number."))
    read = [
        read_table(part, name=name, hidden_below=int(limit)) for name, part in zip(names, parts, strict=True)
    ]
    return [(name, part.decode("utf-8-sig")) for name, part in zip(names, parts, strict=True)], read


def _carried(request: HttpRequest) -> list[bytes]:
    """Tables from the page; browsers end lines with two characters, which must not make a table too large."""
    return [text.replace("\r\n", "\n").encode() for text in request.POST.getlist("content")]


def _too_large(size: int) -> TableError:
    text = gettext(
        "The files must not exceed %(most)s bytes in total, but their total size is %(size)s bytes. For "
        "larger files, use manage.py scenario_of_table."
    )
    return TableError(text % {"most": formats.number(MAX_PAGE_BYTES), "size": formats.number(size)})


def _calendar(found: Sequence[PublishedTable]) -> Study:
    """A study that is not stored: it only numbers the days of tables."""
    first_day, days = days_of(found)
    if days < LEAST_DAYS:
        raise TableError(gettext("Scenarios need tables that cover at least two days."))
    return Study(first_day=first_day, days=days, market_share=1, state=Study.State.CLOSED)


def _question(posted: QueryDict, study: Study, found: Sequence[PublishedTable]) -> tuple[Question, str]:
    """The question of the form, and what is wrong with it."""
    kind = posted.get("kind", "")
    query = urlencode({kind: posted.get("k", "")})
    if kind in ("", Kind.DAYS):
        query = query_of_form(posted) if kind else ""
    try:
        question = question_of(QueryDict(query), study=study)
        problem = _too_long(found, question)
    except WindowError as error:
        problem = str(error)
    return (default_question(study), problem) if problem else (question, "")


def _too_long(found: Sequence[PublishedTable], question: Question) -> str:
    """Return why a page cannot wait for the answer; empty where it can."""
    if seconds_of(found, question.scenario) <= MOST_S:
        return ""
    return gettext(
        "This question takes too long to answer on this page, because the tables have many days or "
        "categories. Ask a different question, or use manage.py scenario_of_table on the server."
    )


def _in_turn(
    request: HttpRequest, found: Sequence[PublishedTable], question: Question
) -> dict[str, Any] | None:
    """The answer; None while the account waits for another: one at a time, as of files."""
    key = f"tables/{account(request).pk}"
    if not cache.add(key, "answering", timeout=TURN_S):
        return None
    try:
        return _answered(found, question)
    finally:
        cache.delete(key)


def _answered(found: Sequence[PublishedTable], question: Question) -> dict[str, Any]:
    """Texts of the answer; TableError where it would take too long."""
    study = question.study
    if problem := _too_long(found, question):
        raise TableError(problem)
    answer = table_answer(found, question.scenario, first_day=study.first_day, days=study.days)
    of_all = answer["all"]
    rows = [
        (f"{category} ({name})" if len(found) > 1 else category, each)
        for name, of_table in answer["categories"].items()
        for category, each in of_table.items()
    ]
    bars = [_bar(each, name=name) for name, each in rows]
    drawn = iter(drawn_bars(tuple(bar for bar in bars if bar)))
    total = _bar(of_all)
    plain = Answer(status=Status.OK, total=None, is_noisy=False, people=total)
    return answer_context(question, plain) | {
        "of_all": _fit(of_all, name=""),
        "rows": [
            _fit(each, name=name) | {"drawn": next(drawn) if bar else None}
            for (name, each), bar in zip(rows, bars, strict=True)
        ],
    }


def _bar(found: dict[str, Any], *, name: str = "") -> Bar | None:
    people = found.get("people")
    return Bar(name=name, **people) if people else None


def _fit(found: dict[str, Any], *, name: str) -> dict[str, Any]:
    """Describe on the page which numbers fit together, and which ones do not."""
    return {
        "name": name,
        "is_consistent": found["consistent"],
        "slack": ceil(found["slack"]),
        "problem": found.get("problem", ""),
        "moved": [(_title(each), _signed(each["by"])) for each in found["moved"]],
        "conflicts": [
            (_title(each), [(source, _range(*ends)) for source, ends in each["people"].items()])
            for each in found.get("conflicts", ())
        ],
    }


def _signed(people: float) -> str:
    text = formats.number(copysign(ceil(abs(people)), people))
    return f"+{text}" if people > 0 else text


def _range(least: int, most: int) -> str:
    return texts.range_text(Bar(least=least, most=most, estimate=None))


def _title(window: dict[str, Any]) -> str:
    return formats.window_title(*(date.fromisoformat(window[end]) for end in ("first", "last")))
