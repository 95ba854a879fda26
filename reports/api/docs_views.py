"""The API in words: a plain page, made from the same description that programs read."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from reports.accounts.access import exporters_only, readable
from reports.api.door import site
from reports.studies.models import Indicator, Study
from reports.studies.texts import crumbs_to


@require_safe
@exporters_only
def docs(request: HttpRequest) -> HttpResponse:
    """All operations with their parameters, and an address of each to try."""
    document = site().api.document
    example = (
        Indicator.objects.filter(study__in=readable(request))
        .select_related("study")
        .order_by("-study__first_day", "position")
        .first()
    )
    located = readable(request).filter(plans__location_tally__isnull=False).order_by("-first_day").first()
    context = {
        "operations": [
            _operation(path, method, found, try_url=_filled(path, example, located=located))
            if method == "get"
            else _operation(path, method, found | _fields(found, document), try_url="")
            for path, methods in document["paths"].items()
            for method, found in methods.items()
        ],
        "root": request.build_absolute_uri(reverse("reading:root")),
        "example": example,
        "crumbs": crumbs_to(),
    }
    return render(request, "api/api.html", context)


def _fields(found: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """Fields of the body of an operation, in the place of its parameters."""
    schema = found["requestBody"]["content"]["application/json"]["schema"]
    fields = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]["properties"]
    return {
        "parameters": [
            {"in": "query", "name": name, "description": field["description"], "schema": field}
            for name, field in fields.items()
        ]
    }


def _operation(path: str, method: str, found: dict[str, Any], *, try_url: str) -> dict[str, Any]:
    parameters = [
        {
            "name": parameter["name"],
            "text": parameter.get("description", ""),
            "values": _values(parameter["schema"]),
        }
        for parameter in found["parameters"]
        if parameter["in"] == "query"
    ]
    return {
        "name": found["operationId"],
        "summary": found["summary"],
        "description": found.get("description", ""),
        "path": path,
        "method": method.upper(),
        "has_body": method != "get",
        "parameters": parameters,
        "try_url": try_url,
    }


def _filled(path: str, example: Indicator | None, *, located: Study | None) -> str:
    """The address with a study (`located` has reported places) and an indicator in it; empty without one."""
    if "/places" in path:
        return "" if located is None else path.replace("{study}", located.slug)
    if example is None:
        return "" if "{" in path else path
    filled = path.replace("{study}", example.study.slug).replace("{indicator}", example.slug)
    return "" if "{" in filled else filled


def _values(schema: dict[str, Any]) -> str:
    """Return the values of a parameter, as short as people write it."""
    if "enum" in schema:
        return " | ".join(schema["enum"])
    if "anyOf" in schema:
        return _values(schema["anyOf"][0])
    if schema.get("format") == "date":
        return "YYYY-MM-DD"
    if schema.get("type") == "integer":
        return f"{schema['minimum']}..{schema.get('maximum', '')}"
    return str(schema.get("type", ""))
