"""A program with a token, in front of the study of the other tests."""

import pytest
from django.test import Client
from jsonschema import Draft202012Validator

from tests.reports.exports.conftest import computed, located  # noqa: F401  # fixtures


class Program:
    def __init__(self, token):
        self.client = Client()
        self.token = token
        self.headers = {"Authorization": f"Bearer {token}"}

    def get(self, path, query=None, **headers):
        return self.client.get(f"/api/v1/{path}", query or {}, headers=self.headers | headers)

    def read(self, path, **query):
        """An answer, which must be there; `from_` stands for the parameter `from`."""
        answer = self.get(path, {name.rstrip("_"): value for name, value in query.items()})
        assert answer.status_code == 200, answer.content
        assert answer["Content-Type"] == "application/json"
        return answer.json()

    def read_parts(self, path, *, limit):
        items, address = [], f"/api/v1/{path}?limit={limit}"
        while address:
            answer = self.client.get(address, headers=self.headers)
            items += answer.json()["items"]
            address = (answer.json()["next"] or "").removeprefix("http://testserver")
            assert ('rel="next"' in answer.get("Link", "")) == bool(address)
        return items


def template_of(path):
    return f"/api/v1/{path}".replace("fair-2024", "{study}").replace("gender", "{indicator}")


def check_answers(program, *paths):
    document = program.get("openapi.json").json()
    for path in paths:
        content = document["paths"][template_of(path)]["get"]["responses"]["200"]["content"]
        schema = content["application/json"]["schema"] | {"components": document["components"]}
        Draft202012Validator.check_schema(schema)
        Draft202012Validator(schema).validate(program.read(path))


@pytest.fixture
def program(token):
    return Program(token())
