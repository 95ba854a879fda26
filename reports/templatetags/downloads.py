"""The links of the downloads menu."""

from dataclasses import dataclass
from typing import Any

from django import template
from django.urls import reverse
from django.utils.functional import Promise

from reports.exports.formats import formats_for
from reports.exports.selection import Scope

register = template.Library()


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One file."""

    address: str
    label: str
    purpose: str | Promise


@register.simple_tag(takes_context=True)
def download_links(context: template.Context, scope: str) -> list[Link]:
    """Files of a scope; the context has `study`, of one indicator `indicator`, of a window `query`."""
    wanted = Scope(scope or Scope.WINDOW)
    return [
        Link(address=_address(context, wanted, ending=found.ending), label=found.label, purpose=found.purpose)
        for found in formats_for(wanted)
    ]


def _address(context: Any, scope: Scope, *, ending: str) -> str:
    study = context["study"]
    if scope == Scope.STUDY:
        return reverse("reports:study_file", args=[study.slug, ending])
    name = "reports:days_file" if scope == Scope.DAYS else "reports:indicator_file"
    address = reverse(name, args=[study.slug, context["indicator"].slug, ending])
    return f"{address}?{context['query']}" if scope == Scope.WINDOW else address
