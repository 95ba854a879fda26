"""Reference of the reading API, from its OpenAPI document."""

from typing import Any

HEAD = """\
# The reading API: operations

Written by `make docs` from the OpenAPI document that the server gives at `/api/v1/openapi.json`; do not
edit. What holds for all of them (tokens, windows, refusals, unchanged answers): [the API for
programs](../api.md). The API that takes files in: [files by a program](feed-api.md).
"""
METHODS = ("get", "post", "put", "patch", "delete")


def page() -> str:
    """The page, in Markdown."""
    from reports.api.site import api

    document = api.document()
    lines = [HEAD]
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method in methods:
                lines += _operation(method.upper(), path, methods[method])
    lines += ["", "## Answers", ""]
    for name, schema in sorted(document.get("components", {}).get("schemas", {}).items()):
        if "properties" in schema:
            lines += _schema(name, schema)
    return "\n".join(lines) + "\n"


def _operation(method: str, path: str, operation: dict[str, Any]) -> list[str]:
    lines = ["", f"## {operation.get('summary', operation['operationId'])}", "", f"`{method} {path}`"]
    if operation.get("description"):
        lines += ["", _plain(operation["description"])]
    if parameters := operation.get("parameters", []):
        lines += ["", "| parameter | in | type | what it is |", "|---|---|---|---|"]
        for parameter in parameters:
            needed = ", needed" if parameter.get("required") else ""
            kind = _type(parameter["schema"])
            text = _cell(parameter.get("description") or parameter["schema"].get("description", ""))
            lines.append(f"| `{parameter['name']}` | {parameter['in']}{needed} | {kind} | {text} |")
    return [*lines, "", f"Answers: {', '.join(_answers(operation['responses']))}."]


def _answers(responses: dict[Any, Any]) -> list[str]:
    """`200` with the name of its schema, then the refusals."""
    found = []
    for status, response in sorted(responses.items(), key=lambda item: str(item[0])):
        media: dict[str, Any] = next(iter(response.get("content", {}).values()), {})
        schema = media.get("schema", {})
        found.append(f"`{status}` {_type(schema)}".strip() if schema else f"`{status}`")
    return found


def _schema(name: str, schema: dict[str, Any]) -> list[str]:
    lines = [f"### {name}", ""]
    if schema.get("description"):
        lines += [_plain(schema["description"]), ""]
    lines += ["| field | type | what it is |", "|---|---|---|"]
    lines += [
        f"| `{field}` | {_type(value)} | {_cell(value.get('description', ''))} |"
        for field, value in schema["properties"].items()
    ]
    return [*lines, ""]


def _type(schema: dict[str, Any]) -> str:
    """A type in words: `string (date)`, `list of Estimate`, `integer or null`."""
    if reference := schema.get("$ref"):
        name = reference.rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return " or ".join(_type(option) for option in schema[key])
    if "allOf" in schema:
        return " and ".join(_type(option) for option in schema["allOf"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    kind = str(schema.get("type", "any"))
    return f"{kind} ({schema['format']})" if "format" in schema else kind


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("<", "&lt;")


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|")
