"""A small study, extracts of a few lines for it, and what a page says."""

import re
from base64 import b64encode

from django.http import HttpResponse
from django.test import Client

from mobility.models import Batch

STUDY_URL = "/operator/fair/"
UPLOADS_URL = "/operator/fair/uploads/"
TUS = {"Tus-Resumable": "1.0.0"}

STUDY = """
[study]
slug = "fair"
name = "Fair & market"
timezone = "Europe/Paris"
first_day = 2024-05-01
days = 3
min_publication = 2
expected_subscribers = 10
[study.visitor]
min_minutes = 60
from = "06:00"
to = "23:59"
[extract]
subscriber = "msisdn"
timestamp = "time"
max_bad_share = 0.5
[plan]
mechanism = "smp-grr"
unit = "profile"
epsilon = 1.0
[[indicator]]
slug = "age"
kind = "static"
column = "age"
categories = ["young", "old"]
[[indicator]]
slug = "visit_duration"
kind = "daily"
derive = "visit_duration"
epsilon = 0.5
"""


def rows(*subscribers: str, day: int = 1, age: str = "old") -> str:
    """Two events, three hours apart, of each subscriber."""
    return "".join(
        f"{who},2024-05-0{day}T{hour}:00:00,{age}\n" for who in subscribers for hour in ("10", "13")
    )


def extract(*parts: str) -> bytes:
    return ("msisdn,time,age\n" + "".join(parts)).encode()


GOOD = extract(rows("a", "b", "c"))


def page(client: Client, url: str) -> str:
    response = client.get(url)
    assert response.status_code == 200
    return text_of(response.content.decode())


def text_of(html: str) -> str:
    """Words of a page without its tags."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html)).replace("\u202f", " ")


def begin(client: Client, length: int, **described: str) -> HttpResponse:
    """Ask for an upload to be opened."""
    pairs = [f"{name} {b64encode(text.encode()).decode()}" for name, text in described.items()]
    headers = {**TUS, "Upload-Length": str(length), "Upload-Metadata": ",".join(pairs)}
    response: HttpResponse = client.post(UPLOADS_URL, headers=headers)
    return response


def send(client: Client, url: str, body: bytes, *, offset: int = 0) -> HttpResponse:
    """Send a part of an upload."""
    headers = {**TUS, "Upload-Offset": str(offset)}
    response: HttpResponse = client.patch(
        url, data=body, content_type="application/offset+octet-stream", headers=headers
    )
    return response


def put(client: Client, body: bytes = GOOD, *, filename: str = "day.csv", more: bool = False) -> Batch:
    """Upload a file as the browser does; returns its batch, which waits."""
    described = {"filename": filename} | ({"more_to_come": "1"} if more else {})
    opened = begin(client, len(body), **described)
    assert opened.status_code == 201, opened.content
    sent = send(client, opened["Location"], body)
    assert sent.status_code == 204, sent.content
    assert sent["Upload-Offset"] == str(len(body))
    return Batch.objects.get(pk=opened["Location"].split("/")[-2])
