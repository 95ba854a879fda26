"""Text of a page, and its reader."""

import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test import Client

IN_BOTH = pytest.mark.django_db(databases=["default", "vault"])
AS_OPERATOR = [IN_BOTH, pytest.mark.usefixtures("as_operator")]
AS_ADMINISTRATOR = [IN_BOTH, pytest.mark.usefixtures("as_administrator")]


def file(content: str | bytes, name: str = "study.toml") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, content if isinstance(content, bytes) else content.encode())


def page(client: Client, url: str) -> str:
    return text_of(html_of(client, url))


def html_of(client: Client, url: str, **headers: str) -> str:
    response = client.get(url, headers=headers)
    assert response.status_code == 200
    return response.content.decode()


def field_of(html: str, name: str) -> str:
    """The markup of one field of a form."""
    field = rf'<div class="field[^"]*">(?:(?!<div class="field).)*name="{re.escape(name)}".*?</div>'
    found = re.search(field, html, re.S)
    assert found, name
    return found[0]


def says(text: str, *phrases: str) -> None:
    missing = [phrase for phrase in phrases if phrase not in text]
    assert not missing, text


def lacks(text: str, *phrases: str) -> None:
    there = [phrase for phrase in phrases if phrase in text]
    assert not there, text


def said(response: HttpResponse) -> str:
    return text_of(response.content.decode())


def check_markup(html: str) -> None:
    assert not re.search(r"\sstyle=|\son\w+=|<style", html)
    inline = re.findall(r"<script(?![^>]*\ssrc=)([^>]*)>", html)
    assert all('type="application/json"' in attributes for attributes in inline)


def text_of(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html)).replace("\u202f", " ")


def mechanisms_of(html):
    """Mechanisms of a form: those shown first, and those that are folded away."""
    first, folded = html.partition("data-recommended>")[2].partition("</fieldset>")[0].split("<details ")
    return [re.findall(r'type="radio"[^>]* value="([^"]*)"', part) for part in (first, folded)]
