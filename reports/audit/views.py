"""Page of the ledger: actions and actors, the state of the chain, and files to check it elsewhere."""

import json
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, QueryDict, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from reports.accounts.access import account, overseers_only
from reports.audit.export import ledger_lines
from reports.audit.texts import KIND_WORDS, entry_words, fact_lines, kind_words
from reports.base.attachments import attachment, streamed
from reports.ledger.actions import chain_waiting, record
from reports.ledger.check import HEAD
from reports.ledger.checks import check_ledger
from reports.ledger.key import public_pem
from reports.ledger.models import LedgerEntry, LedgerHead, LedgerKind

PAGE = 50
BY_STRANGERS = frozenset({LedgerKind.SHARE_OPENED, LedgerKind.SIGN_IN_FAILED})
CHOICES_MAX = 500  # names that are offered


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Filter of the page; empty: everything. Days are in UTC, both included."""

    study: str = ""
    kind: str = ""
    actor: str = ""
    first: date | None = None
    last: date | None = None

    @classmethod
    def from_query(cls, query: QueryDict) -> "Filter":
        """Return the filter in the address; an invalid day is ignored."""
        return cls(
            study=query.get("study", "")[:64],
            kind=query.get("kind", "") if query.get("kind", "") in set(LedgerKind) else "",
            actor=query.get("actor", "").strip()[:150],
            first=_day(query.get("from", "")),
            last=_day(query.get("to", "")),
        )

    @property
    def entries(self) -> QuerySet[LedgerEntry]:
        found = LedgerEntry.objects.order_by("-number")
        for name in ("study", "kind", "actor"):
            if value := getattr(self, name):
                found = found.filter(**{name: value})
        if self.first:
            found = found.filter(at__gte=datetime.combine(self.first, time(), UTC))
        if self.last:
            found = found.filter(at__lt=datetime.combine(self.last + timedelta(days=1), time(), UTC))
        return found

    @property
    def query(self) -> str:
        """Return the filter as in an address."""
        values = {
            "study": self.study, "kind": self.kind, "actor": self.actor, "from": self.first, "to": self.last,
        }  # fmt: skip
        return urlencode({name: value for name, value in values.items() if value})


@require_safe
@overseers_only
def ledger(request: HttpRequest) -> HttpResponse:
    """Entries, newest first, and the state of the chain."""
    chain_waiting()
    asked = Filter.from_query(request.GET)
    found = asked.entries
    if before := _number(request.GET.get("before", "")):
        found = found.filter(number__lt=before)
    entries = list(found[: PAGE + 1])
    context = {
        "rows": [_row(entry) for entry in entries[:PAGE]],
        "older": entries[PAGE - 1].number if len(entries) > PAGE else None,
        "is_newest": not before,
        "asked": asked,
        "head": LedgerHead.objects.filter(pk=LedgerHead.ONLY).first(),
        "studies": _known("study"),
        "actors": _known("actor"),
        "kinds": [(kind.value, str(words)) for kind, words in KIND_WORDS.items()],
    }
    return render(request, "ledger/ledger.html", context)


@require_POST
@overseers_only
def check(request: HttpRequest) -> HttpResponse:
    """Compute every hash again, now."""
    report = check_ledger()
    if report.is_ok:
        messages.success(request, gettext("Ledger verified: every hash and the signature match."))
    return redirect("ledger:ledger")


@require_safe
@overseers_only
def file(request: HttpRequest) -> StreamingHttpResponse:
    """The ledger as JSON Lines; of a study, what other entries say is left out."""
    study = request.GET.get("study", "")
    if study and not LedgerEntry.objects.filter(study=study).exists():
        raise Http404
    name = f"ledger_{study}.jsonl" if study else "ledger.jsonl"
    if request.method == "GET":
        facts = {"way": "page", "file": name}
        record(LedgerKind.EXPORT_MADE, actor=account(request).get_username(), study=study, facts=facts)
    return streamed(ledger_lines(study=study or None), content_type="application/x-ndjson", name=name)


@require_safe
@overseers_only
def head(_request: HttpRequest) -> HttpResponse:
    """The signed head: anyone who keeps it can tell later whether anything before it was changed."""
    found = _head_or_404()
    text = json.dumps({HEAD: found.signed.to_json()}, indent=1)
    return attachment(text, content_type="application/json", name=f"ledger_head_{found.number}.json")


@require_safe
@overseers_only
def public_key(_request: HttpRequest) -> HttpResponse:
    """Return the key that checks signatures."""
    pem = public_pem(_head_or_404().public_key).decode()
    return attachment(pem, content_type="application/x-pem-file", name="ledger_public_key.pem")


def _head_or_404() -> LedgerHead:
    chain_waiting()
    found = LedgerHead.objects.filter(pk=LedgerHead.ONLY, number__gt=0).first()
    if found is None:
        raise Http404
    return found


def _row(entry: LedgerEntry) -> dict[str, Any]:
    return {
        "entry": entry,
        "kind": kind_words(entry.kind),
        "nobody": gettext("unknown") if entry.kind in BY_STRANGERS else gettext("system"),
        "words": entry_words(entry),
        "facts": fact_lines(entry.facts),
    }


def _known(column: str) -> list[str]:
    """Choices of the column, for the person."""
    found = LedgerEntry.objects.exclude(**{column: ""}).order_by(column)
    return list(found.values_list(column, flat=True).distinct()[:CHOICES_MAX])


def _day(text: str) -> date | None:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
