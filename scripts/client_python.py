"""Operations and types of the Python client, from the OpenAPI document of the reading API.

`make docs` writes them to clients/python, and its check says when they are old.
"""

import json
from typing import Any

HEAD = '''"""Operations of the reading API and the types of their answers.

Written by `make docs` from the OpenAPI document; changes here are lost.
"""

from abc import ABC, abstractmethod
from typing import Any, Literal, Required, TypedDict
from urllib.parse import quote


def segment(text: str) -> str:
    """Part of an address: a name never leads elsewhere."""
    return quote(text, safe="").replace(".", "%2E")


class Caller(ABC):
    """What the operations need of a client."""

    @abstractmethod
    def get(self, path: str, query: dict[str, Any]) -> Any:
        """Return the JSON at a path."""

    @abstractmethod
    def post(self, path: str, body: Any) -> Any:
        """Return the answer to a question in JSON."""


'''
PLAIN = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
RESERVED = {"from": "from_", "all": "all_", "format": "format_"}


def module() -> str:
    """Text of the module."""
    from reports.api.document import is_of_features
    from reports.api.site import api

    document = json.loads(json.dumps(api.document))
    schemas = document["components"]["schemas"]
    parts = [_typed_dict(name, schemas[name]) for name in sorted(schemas)]
    operations: dict[str, str] = {}
    for path, methods in document["paths"].items():
        for method, operation in () if is_of_features(path) else methods.items():
            name = operation["operationId"]
            name = f"{name}_of_indicator" if name in operations else name
            operations[name] = _operation(name, method, path, operation)
    head = 'class Operations(Caller):\n    """All operations; each answer is JSON, typed by its schema."""\n'
    return HEAD + "\n\n".join(parts) + "\n\n" + head + "\n" + "\n".join(operations.values())


def _typed_dict(name: str, schema: dict[str, Any]) -> str:
    """A TypedDict whose keys may be missing, unless the schema requires them; any name can be a key."""
    required = set(schema.get("required", ()))
    rows = []
    for key, value in schema.get("properties", {}).items():
        kind = _type(value)
        rows.append(f"    {key!r}: {f'Required[{kind}]' if key in required else kind},".replace("'", '"'))
    return f'{name} = TypedDict("{name}", {{  # noqa: UP013\n' + "\n".join(rows) + "\n}, total=False)\n"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return f'"{schema["$ref"].rpartition("/")[2]}"'
    if "enum" in schema or "const" in schema:
        return f"Literal[{', '.join(json.dumps(each) for each in schema.get('enum', [schema.get('const')]))}]"
    for key in ("anyOf", "oneOf", "allOf"):
        if key in schema:
            return _union([_type(each) for each in schema[key]])
    kind = schema.get("type", "object")
    if isinstance(kind, list):
        return _union([_type(schema | {"type": each}) for each in kind])
    if kind == "array":
        return f"list[{_type(schema.get('items', {}))}]"
    if kind == "object":
        of = schema.get("additionalProperties")
        return f"dict[str, {_type(of)}]" if isinstance(of, dict) else "dict[str, Any]"
    return PLAIN[kind]


def _union(kinds: list[str]) -> str:
    kinds = list(dict.fromkeys(kinds))
    if len(kinds) == 1:
        return kinds[0]
    if any(each.startswith('"') for each in kinds):  # names of later types are texts
        return '"' + " | ".join(each.strip('"') for each in kinds) + '"'
    return " | ".join(kinds)


def _operation(name: str, method: str, path: str, operation: dict[str, Any]) -> str:
    answer = next(iter(operation["responses"]["200"]["content"].values()))["schema"]
    kind = _type(answer).strip('"')
    given = [each for each in operation.get("parameters", ()) if each["name"] != "format"]
    in_path = [each for each in given if each["in"] == "path"]
    in_query = [each for each in given if each["in"] == "query"]
    arguments = [f"{_name(each)}: {_type(each['schema'])}" for each in in_path]
    if method == "post":
        body = next(iter(operation["requestBody"]["content"].values()))["schema"]
        arguments.append(f"question: {_type(body).strip(chr(34))}")
    if in_query:
        arguments += ["*", *(f"{_name(each)}: {_optional(each)}" for each in in_query)]
    relative = path.removeprefix("/api/v1/")
    for each in in_path:
        relative = relative.replace(f"{{{each['name']}}}", f"{{segment({_name(each)})}}")
    address = f'f"{relative}"' if in_path else f'"{relative}"'
    if method == "post":
        call = f"self.post({address}, question)"
    else:
        query = ", ".join(f'"{each["name"]}": {_name(each)}' for each in in_query)
        call = f"self.get({address}, {{{query}}})"
    text = operation["summary"].rstrip(".")
    return (
        f"    def {name}(self, {', '.join(arguments)}) -> {kind}:\n".replace("self, )", "self)")
        + f'        """{text}."""\n        found: {kind} = {call}\n        return found\n'
    )


def _name(parameter: dict[str, Any]) -> str:
    name: str = parameter["name"]
    return RESERVED.get(name, name)


def _optional(parameter: dict[str, Any]) -> str:
    kind = _type(parameter["schema"])
    if parameter.get("required"):
        return kind
    return f"{kind} = None" if "None" in kind else f"{kind} | None = None"
