"""The links of the downloads menu."""

from dataclasses import dataclass
from typing import Any

from django import template
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext

from reports.exports.findings import WRITERS
from reports.exports.formats.choosing import FORMATS, Format, formats_for
from reports.exports.places.formats import places_formats
from reports.exports.selection import Scope

register = template.Library()


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One file."""

    address: str
    label: str | Promise
    purpose: str | Promise


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Files of one sort, under what they have in common."""

    title: str
    links: list[Link]


@register.simple_tag(takes_context=True)
def download_groups(context: template.Context, scope: str) -> list[Group]:
    """Files of a scope: data, and what follows the page.

    The context has `study`; of one indicator `indicator`; of a window `query` and, with the options of the
    page, `full_query`, and `has_map` if its categories are zones; of the days `kept_with_categories`.
    """
    wanted = Scope(scope or Scope.WINDOW)
    drawn = gettext("For reading") if wanted == Scope.STUDY else gettext("For reading: as shown on this page")
    groups = []
    for is_drawn, title in ((False, gettext("Data: all values, in plan order")), (True, drawn)):
        offered = formats_for(wanted, has_zones=bool(context.get("has_map")))
        formats = [found for found in offered if found.is_drawn == is_drawn]
        links = [
            Link(address=_address(context, wanted, found), label=found.label, purpose=found.purpose)
            for found in formats
        ]
        groups.append(Group(title=title, links=links))
    return groups


@register.simple_tag(takes_context=True)
def findings_links(context: template.Context, page: str) -> list[Link]:
    """Files of the page "compare" or "movement", by the same address; the context has `request`."""
    slugs = [context["study"].slug, context["indicator"].slug]
    query = context["request"].META.get("QUERY_STRING", "")
    links = []
    for found in (FORMATS[ending] for ending in WRITERS):
        address = reverse(f"reports:{page}_file", args=[*slugs, found.ending])
        full = f"{address}?{query}" if query else address
        links.append(Link(address=full, label=found.label, purpose=found.purpose))
    return links


@register.simple_tag(takes_context=True)
def places_groups(context: template.Context) -> list[Group]:
    """Files of reported places: data, and what follows the page; the context has `query` and `full_query`."""
    offered = places_formats(has_hexagons=context["study"].area.h3_resolution is not None)
    groups = []
    for is_drawn, title in ((False, gettext("Data")), (True, gettext("For reading: as shown on this page"))):
        links = []
        for found in offered:
            if found.is_drawn == is_drawn:
                slugs = [context["study"].slug, found.content, found.ending]
                query = context["full_query" if is_drawn else "query"]
                address = f"{reverse('reports:maps_file', args=slugs)}?{query}"
                links.append(Link(address=address, label=found.label, purpose=found.purpose))
        groups.append(Group(title=title, links=links))
    return groups


def _address(context: Any, scope: Scope, found: Format) -> str:
    study = context["study"]
    if scope == Scope.STUDY:
        return reverse("reports:study_file", args=[study.slug, found.ending])
    slugs = [study.slug, context["indicator"].slug, found.ending]
    if scope == Scope.WINDOW:
        query = context["full_query" if found.is_drawn else "query"]
        return f"{reverse('reports:indicator_file', args=slugs)}?{query}"
    address = reverse("reports:days_file", args=slugs)
    query = context["kept_with_categories"] if found.is_drawn else ""
    return f"{address}?{query}" if query else address
