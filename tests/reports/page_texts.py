"""Readers of pages, figures and commands for tests."""

import csv
import io
import json
import re
from html import escape, unescape
from html.parser import HTMLParser
from typing import Any

import pypdf
from django.contrib.auth.models import User
from django.core.management import call_command
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from jsonschema import Draft202012Validator


class Markup(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.links: dict[str, dict[str, str | None]] = {}
        self.refused: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "a":
            self.links[values["href"] or ""] = values
        is_data = values.get("type") == "application/json"
        if tag == "style" or (tag == "script" and "src" not in values and not is_data):
            self.refused.append(tag)
        self.refused += [name for name in values if name == "style" or name.startswith("on")]


def get(client: Client, name: str, *args: str, **query: str) -> Any:
    args = () if name == "studies" else ("fair-2024", *args)
    return client.get(reverse(f"reports:{name}", args=args), query)


def page(client: Client, name: str, *args: str, **query: str) -> str:
    answer = get(client, name, *args, **query)
    assert answer.status_code == 200
    return answer.content.decode()


def spaced(text: str) -> str:
    return " ".join(text.split())


def plain(text: str) -> str:
    return text.replace("\u202f", " ")


def words(response: HttpResponse) -> str:
    return spaced(re.sub(r"<[^>]+>", " ", response.content.decode()))


def shown(client: Client, address: str, *, status: int = 200) -> str:
    response = client.get(address)
    assert response.status_code == status, (address, response.content)
    return unescape(words(response))


def pdf_text(content: bytes) -> str:
    return spaced(" ".join(page.extract_text() for page in pypdf.PdfReader(io.BytesIO(content)).pages))


def shared(reader: Client, address: str) -> tuple[str, str]:
    """Share a page: returns the link and the shared page, which leads to no other one."""
    (ask,) = re.findall(r'href="(/access/shares/new/[^"]*)"', reader.get(address).content.decode())
    made = reader.post(unescape(ask), {"days": "3", "note": "", "password": ""}).content.decode()
    link = re.findall(r"/shared/[\w-]+", made)[-1] + "/"
    html = unescape(Client().get(link).content.decode())
    wrong = ('class="window-form', "data-file", "data-days", "/studies/")
    assert [each for each in wrong if each in html] == []
    assert f'href="{escape(address)}' in reader.get(reverse("access:shares")).content.decode()
    return link, html


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def text_of(html: str) -> str:
    return re.sub(r"[ \n]+", " ", re.sub(r"<[^>]+>", " ", html))


def data_of(html: str, name: str = "figure") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(re.search(rf'<script id="{name}"[^>]*>(.*?)</script>', html)[1])
    return found


def printed(*words: Any, **options: Any) -> str:
    out = io.StringIO()
    call_command(*words, stdout=out, **options)
    return out.getvalue()


def csv_rows(response: Any) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(response.content.decode())))


def check_document(client: Client, path: str, *, method: str = "get", answer: Any, body: Any = None) -> None:
    """An answer of the API, and what is posted to it, are as its own document says."""
    document = client.get("/api/v1/openapi.json").json()
    operation = document["paths"][path][method]
    for part, value in ((operation["responses"]["200"], answer), (operation.get("requestBody"), body)):
        if value is not None:
            schema = part["content"]["application/json"]["schema"] | {"components": document["components"]}
            Draft202012Validator(schema).validate(value)
