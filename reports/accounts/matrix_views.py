"""Review of access: as a page and as a file."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from reports.accounts.access import overseers_only
from reports.accounts.matrix import Account, Matrix, access_matrix
from reports.accounts.texts import ROLE_MEANINGS, ROLE_WORDS, role_words
from reports.base.attachments import attachment
from reports.base.csv_texts import csv_text
from reports.studies.labels import label_of
from reports.studies.models import Study

COLUMNS = (
    "study", "account", "way", "role", "name", "report", "password", "until_utc", "last_used_utc"
)  # fmt: skip


@require_safe
@overseers_only
def matrix(request: HttpRequest) -> HttpResponse:
    """Accounts against studies, and the tokens and links that open each study."""
    everything = Study.objects.order_by("-first_day", "slug")
    chosen = request.GET.get("study", "")
    found = access_matrix(_asked(everything, chosen))
    context = {
        "matrix": found,
        "rows": [_row(each, found.studies) for each in found.accounts],
        "choices": [(each.slug, label_of(each, request.user)) for each in everything],
        "chosen": chosen,
        "roles": [(str(words), str(ROLE_MEANINGS[role])) for role, words in ROLE_WORDS.items()],
        "crumbs": [(gettext("People"), reverse("people:people"))],
    }
    return render(request, "accounts/matrix.html", context)


@require_safe
@overseers_only
def matrix_file(request: HttpRequest) -> HttpResponse:
    """Return the matrix as CSV: a row for each way into a study."""
    found = access_matrix(_asked(Study.objects.order_by("slug"), request.GET.get("study", "")))
    text = csv_text(COLUMNS, _records(found))
    name = f"who-can-see-what-{datetime.now(UTC):%Y-%m-%d}.csv"
    return attachment(text, content_type="text/csv; charset=utf-8", name=name)


def _asked(studies: QuerySet[Study], slug: str) -> QuerySet[Study]:
    return studies.filter(slug=slug) if slug else studies


def _row(found: Account, studies: tuple[Study, ...]) -> dict[str, Any]:
    cells = [
        (study, [(str(ROLE_WORDS[right.role]), right.until) for right in found.rights[study.pk]])
        for study in studies
    ]
    return {"person": found.user, "role_words": role_words(found.roles), "cells": cells}


def _records(found: Matrix) -> Iterator[tuple[str, ...]]:
    for study in found.studies:
        for each in found.accounts:
            for right in each.rights[study.pk]:
                last = each.user.last_login
                yield (
                    study.slug, each.user.get_username(), "account", right.role.value, "", "", "",
                    "" if right.until is None else right.until.isoformat(), _moment(last),
                )  # fmt: skip
        for opening in found.openings:
            if opening.study == study:
                yield (
                    study.slug, opening.maker.get_username(), opening.kind, "", opening.name,
                    opening.report, "yes" if opening.is_locked else "no" if opening.kind == "link" else "",
                    _moment(opening.until), _moment(opening.last_used),
                )  # fmt: skip


def _moment(moment: datetime | None) -> str:
    return "" if moment is None else moment.astimezone(UTC).isoformat(timespec="seconds")
