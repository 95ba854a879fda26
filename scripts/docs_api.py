"""Reference of the reading API, from its OpenAPI document."""

from collections import Counter
from itertools import groupby
from typing import Any, NamedTuple

HEAD = """\
# The reading API: operations

Written by `make docs` from the OpenAPI document at `/api/v1/openapi.json`. Tokens, windows, lists, statuses
and errors: [the API for programs](../api.md). Sending files: [feed API](feed-api.md).

`{study}` and `{indicator}` are slugs. A type with `?` may be null. Features: [QGIS](../api.md#qgis).
In addition to 200, every operation with `GET` can answer %s.
"""


# Types that a name tells: n_windows, radius_m, first_day.
PLAIN = ("string", "integer", "number", "boolean", "date", "object")


class Named(NamedTuple):
    """A parameter or a field, in words."""

    name: str
    type: str
    text: str


def page() -> str:
    """The page, in Markdown."""
    from reports.api.document import is_of_features
    from reports.api.site import api

    document = api.document
    schemas = {name: each for name, each in document["components"]["schemas"].items() if "properties" in each}
    lists = {name: each["properties"]["items"] for name, each in schemas.items() if _is_list(each)}
    operations = [
        (f"{method.upper()} {path}", operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        if not is_of_features(path)  # a standard describes them
    ]
    fields = {name: _fields(each) for name, each in sorted(schemas.items()) if name not in lists}
    usual_fields = _shared(list(fields.values()))
    usual = _answers(operations[0][1])
    parameters = [_parameters(operation) for _, operation in operations]
    lines = [HEAD % ", ".join(f"`{status}`" for status in usual if status >= 300)]
    lines += ["Parameters of several operations:", "", *_items(_shared(parameters))]
    for (address, operation), own in zip(operations, parameters, strict=True):
        answers = _answers(operation)
        body = _body(operation)
        if not body and _refusals(answers) != _refusals(usual):
            raise ValueError(f"{address} has its own refusals: {answers}")
        lines += ["", f"## {operation['summary']}", "", f"`{address}`", "", _plain(operation["description"])]
        lines += ["", *_named(own, _shared(parameters), "Parameters")]
        if body:
            refusals = ", ".join(f"`{status}`" for status in sorted(_refusals(answers)))
            lines += [f"Body: {_type(body, lists)}. Other answers: {refusals}.", ""]
        lines += [f"Answer: {_type(answers[200], lists)}."]
    lines += ["", "## Objects", "", "Fields of several objects:", "", *_items(usual_fields), ""]
    for name, own in fields.items():
        lines += [f"### {name}", ""]
        if text := schemas[name].get("description"):
            lines += [_plain(text), ""]
        lines += _named(own, usual_fields, "Fields")
    return "\n".join(lines).rstrip() + "\n"


def _named(own: list[Named], shared: list[Named], title: str) -> list[str]:
    """List in one line those that need no words, or have them elsewhere; then the others as items."""
    items = [each for each in own if each.text and each not in shared]
    short = [
        f"`{each.name}`" if each in shared or each.type in PLAIN else f"`{each.name}` ({each.type})"
        for each in own
        if each not in items
    ]
    lines = [f"{title}: {', '.join(short)}.", ""] if short else []
    return [*lines, *_items(items), *([""] if items else [])]


def _items(found: list[Named]) -> list[str]:
    """An item for neighbours of the same type and words."""
    kinds = groupby(found, key=lambda each: f" ({each.type}): {each.text}")
    return [f"- {_names(list(same))}{words}" for words, same in kinds]


def _names(found: list[Named]) -> str:
    return ", ".join(f"`{each.name}`" for each in found)


def _shared(lists: list[list[Named]]) -> list[Named]:
    """Return those with words that are in several lists, and mean the same there."""
    counts = Counter(each for found in lists for each in found if each.text)
    return [each for each, n in counts.items() if n > 1]


def _parameters(operation: dict[str, Any]) -> list[Named]:
    found = [each for each in operation.get("parameters", []) if each["in"] == "query"]
    return [_named_of(each["name"], each["schema"], each.get("description", "")) for each in found]


def _fields(schema: dict[str, Any]) -> list[Named]:
    return [_named_of(name, each, each.get("description", "")) for name, each in schema["properties"].items()]


def _named_of(name: str, schema: dict[str, Any], text: str) -> Named:
    return Named(name=name, type=_type(schema, {}), text=_plain(text or schema.get("description", "")))


def _answers(operation: dict[str, Any]) -> dict[int, dict[str, Any]]:
    """Schemas by status; empty where there is no body."""
    found = {}
    for status, response in operation["responses"].items():
        media: dict[str, Any] = next(iter(response.get("content", {}).values()), {})
        found[int(status)] = media.get("schema", {})
    return dict(sorted(found.items()))


def _refusals(answers: dict[int, Any]) -> set[int]:
    """Statuses without figures."""
    return {status for status in answers if status >= 300}


def _body(operation: dict[str, Any]) -> dict[str, Any]:
    """Schema of the question; empty where there is none."""
    content = operation.get("requestBody", {}).get("content", {})
    found: dict[str, Any] = content.get("application/json", {}).get("schema", {})
    return found


def _is_list(schema: dict[str, Any]) -> bool:
    return set(schema["properties"]) == {"count", "next", "items"}


def _type(schema: dict[str, Any], lists: dict[str, dict[str, Any]]) -> str:
    """A type in words: `date`, `list of Estimate`, `integer?`."""
    if reference := schema.get("$ref"):
        name = reference.rpartition("/")[2]
        return _type(lists[name], {}) if name in lists else f"[{name}](#{name.lower()})"
    for key in ("anyOf", "oneOf"):
        if key in schema:
            options = [_type(option, lists) for option in schema[key]]
            if options[1:] == ["null"] and "," not in options[0]:
                return f"{options[0]}?"
            return " or ".join(options)
    if "allOf" in schema:
        return " and ".join(_type(option, lists) for option in schema["allOf"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}), lists)}"
    kind = str(schema.get("type", "any"))
    return str(schema["format"]) if "format" in schema else kind


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("<", "&lt;")
