"""The links of the downloads menu."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from django import template
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy

from reports.estimates.options import GROUP, GROUPS
from reports.exports.bundle import bundle_refusal
from reports.exports.formats.choosing import (
    FLOWS,
    HEXAGONS,
    MOVEMENT,
    PLACES,
    PRESENCE,
    Format,
    formats_for,
    has_groups,
)
from reports.exports.selection import Scope
from reports.maps.zones import shared_zones
from reports.scenario.population import population_refusal
from reports.studies.models import Indicator, Study
from reports.studies.queries import has_unions

register = template.Library()
_PRESENCE_TITLES = {
    "day": gettext_lazy("Data: this day, all zones"),
    "all": gettext_lazy("Data: all published days, all zones"),
    "drawn": gettext_lazy("Images, as shown on this page"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One file."""

    address: str
    label: str | Promise
    purpose: str | Promise


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Files of one sort, under what they have in common."""

    title: str | Promise
    links: list[Link]


@register.simple_tag(takes_context=True)
def download_groups(context: template.Context, scope: str) -> list[Group]:
    """Files of a scope: data, and what follows the page.

    The context has `study`; of one indicator `indicator`; of a window `query` and, with the options of the
    page, `full_query`, and `has_map` if its categories are zones; of the days `kept_days`, and with the
    options `kept_with_categories`.
    """
    wanted = Scope(scope or Scope.WINDOW)
    formats = formats_for(wanted, has_zones=bool(context.get("has_map")))
    return _groups(
        ((found, _address(context, wanted, found)) for found in formats),
        data=gettext("Data: all values, in the same order as in the plan"),
        drawn=gettext("Documents")
        if wanted == Scope.STUDY
        else gettext("Documents and images, as shown on this page"),
    )


@register.simple_tag
def archive_links(study: Study) -> list[tuple[Link, str]]:
    """ZIP files of a study, each with the reason if there is none."""
    bundle = Link(
        address=reverse("reports:bundle", args=[study.slug]),
        label=gettext("Report bundle"),
        purpose=gettext(
            "ZIP file with tallies, plan, privacy statement, code, and a script that recomputes every figure"
        ),
    )
    people = Link(
        address=reverse("reports:population", args=[study.slug]),
        label=gettext("Synthetic population"),
        purpose=gettext(
            "ZIP file with records of made-up people, which together reproduce the published figures; no row "
            "describes a real person"
        ),
    )
    return [(bundle, bundle_refusal(study)), (people, population_refusal(study))]


@register.simple_tag(takes_context=True)
def findings_links(context: template.Context, page: str) -> list[Link]:
    """Files of a page ("compare", "movement", "crosstab", "flows", "number", of a scenario), by its address.

    The context has `request`, and `file_query` where the page shows more than its address says.
    """
    indicator = context.get("indicator")
    slugs = [context["study"].slug, *([indicator.slug] if indicator else [])]
    query = context.get("file_query") or context["request"].META.get("QUERY_STRING", "")
    links = []
    for found in formats_for(FLOWS if page == "flows" else MOVEMENT, has_zones="map_document" in context):
        address = reverse(f"reports:{page}_file", args=[*slugs, found.ending])
        links.append(_link(found, f"{address}?{query}" if query else address))
    return links


@register.simple_tag(takes_context=True)
def presence_groups(context: template.Context) -> list[Group]:
    """Files of presence by slot: of the day, of all days, and the chart; the context has `view`."""
    study, day = context["study"], context["view"].date.isoformat()
    has_zones = bool(context.get("map_document"))
    groups = {name: Group(title=title, links=[]) for name, title in _PRESENCE_TITLES.items()}
    for found in formats_for(PRESENCE, has_zones=has_zones):
        address = reverse("reports:presence_file", args=[study.slug, found.ending])
        if found.is_drawn:
            groups["drawn"].links.append(_link(found, f"{address}?{context['query']}"))
            continue
        groups["day"].links.append(_link(found, f"{address}?from={day}&to={day}"))
        groups["all"].links.append(_link(found, address))
    return list(groups.values())


@register.simple_tag(takes_context=True)
def places_groups(context: template.Context) -> list[Group]:
    """Files of reported places: data, and what follows the page; the context has `query` and `full_query`."""
    study = context["study"]
    offered = []
    for scope in PLACES:
        for found in formats_for(scope) if scope != HEXAGONS or study.area.h3_resolution is not None else ():
            address = reverse("reports:maps_file", args=[study.slug, scope, found.ending])
            offered.append((found, f"{address}?{context['full_query' if found.is_drawn else 'query']}"))
    return _groups(
        offered, data=gettext("Data"), drawn=gettext("Documents and images, as shown on this page")
    )


@register.simple_tag(takes_context=True)
def share_groups(context: template.Context) -> list[Group]:
    """Pages that make a share link to a report or board of a study in the chosen days.

    The context has `study`, `indicators`, `boards` and, of the days, `query`, `first` and `last`.
    """
    slug, indicators = context["study"].slug, context["indicators"]
    reports = [
        Link(
            address=reverse("access:new_share", args=[slug, each.slug])
            + (f"?{context['query']}" if _has_days(context, each) else ""),
            label=each.shown_name,
            purpose="",
        )
        for each in indicators
        if each.max_moves is None  # moves have no report
    ]
    share = reverse("access:new_share", args=[slug, indicators[0].slug])
    boards = [
        Link(address=f"{share}?board={each.pk}&{context['query']}", label=each.name, purpose="")
        for each in context["boards"]
    ]
    groups = {
        gettext("Create a share link to a report"): reports,
        gettext("Create a share link to a board"): boards,
    }
    return [Group(title=title, links=links) for title, links in groups.items() if links]


@register.simple_tag(takes_context=True)
def geojson_links(context: template.Context) -> list[Link]:
    """GeoJSON of a study in the chosen days: of each indicator of zones, and of reported places.

    The context has what `share_groups` needs and `area`; `has_places` and `no_places` of the view.
    """
    study, area = context["study"], context["area"]
    zones = area.zones if area is not None and area.has_outlines else []
    links = [
        Link(
            address=reverse("reports:indicator_file", args=[study.slug, each.slug, "geojson"])
            + f"?{context['query']}",
            label=each.shown_name,
            purpose=gettext("zones with their estimates"),
        )
        for each in context["indicators"]
        if each.max_moves is None and _has_days(context, each) and shared_zones(zones, each)
    ]
    if context.get("has_places") and not context.get("no_places"):
        files = [link for group in places_groups(context) for link in group.links]
        links += [link for link in files if urlsplit(link.address).path.endswith(".geojson")]
    return links


def _has_days(context: Any, indicator: Indicator) -> bool:
    """Return whether an indicator has figures for the chosen days together."""
    return context["first"] == context["last"] or has_unions(indicator)


def _groups(offered: Iterable[tuple[Format, str]], *, data: str, drawn: str) -> list[Group]:
    """Formats with their addresses: data first, then what is drawn."""
    groups = {False: Group(title=data, links=[]), True: Group(title=drawn, links=[])}
    for found, address in offered:
        groups[found.is_drawn].links.append(_link(found, address))
    return list(groups.values())


def _link(found: Format, address: str) -> Link:
    return Link(address=address, label=found.label, purpose=found.purpose)


def _address(context: Any, scope: Scope, found: Format) -> str:
    study = context["study"]
    if scope == Scope.STUDY:
        return reverse("reports:study_file", args=[study.slug, found.ending])
    slugs = [study.slug, context["indicator"].slug, found.ending]
    if scope == Scope.WINDOW:
        query = context["full_query" if found.is_drawn else "query"]
        if context.get("by_group") and not found.is_drawn and has_groups(scope, found):
            query = f"{query}&{urlencode({GROUP: GROUPS})}"
        return f"{reverse('reports:indicator_file', args=slugs)}?{query}"
    address = reverse("reports:days_file", args=slugs)
    query = context["kept_with_categories" if found.is_drawn else "kept_days"]
    return f"{address}?{query}" if query else address
