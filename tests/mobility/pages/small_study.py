"""A small study, and extracts of a few lines for it."""

from base64 import b64encode

from django.http import HttpResponse
from django.test import Client

from mobility.vault.models.batch import Batch
from reports.studies.studyfile import StudyDefinition, parse_study
from tests.study_text import columns, daily, static, study_text

STUDY_URL = "/operator/fair/"
UPLOADS_URL = "/operator/fair/uploads/"
TUS = {"Tus-Resumable": "1.0.0"}

STUDY = study_text(
    static("age", "young", "old"), daily("visit_duration", more="epsilon = 0.5\n"),
    slug="fair", name="Fair & market", first_day="2024-05-01",
    study="min_publication = 2\nexpected_subscribers = 10\n", extract=columns(more="max_bad_share = 0.5\n"),
)  # fmt: skip


def definition_of(text: str = STUDY, cells: bytes = b"") -> StudyDefinition:
    return parse_study(text.encode(), filename="study.toml", read=lambda _: cells)


def rows(*subscribers: str, day: int = 1, age: str = "old") -> str:
    times = [f"2024-05-0{day}T{hour}:00:00" for hour in ("10", "13")]
    return "".join(f"{who},{time},{age}\n" for who in subscribers for time in times)


def extract(*parts: str) -> bytes:
    return ("msisdn,time,age\n" + "".join(parts)).encode()


GOOD = extract(rows("a", "b", "c"))


def begin(client: Client, length: int, **described: str) -> HttpResponse:
    pairs = [f"{name} {b64encode(text.encode()).decode()}" for name, text in described.items()]
    headers = {**TUS, "Upload-Length": str(length), "Upload-Metadata": ",".join(pairs)}
    return client.post(UPLOADS_URL, headers=headers)


def send(client: Client, url: str, body: bytes, *, offset: int = 0) -> HttpResponse:
    headers = {**TUS, "Upload-Offset": str(offset)}
    return client.patch(url, data=body, content_type="application/offset+octet-stream", headers=headers)


def put(
    client: Client,
    body: bytes = GOOD,
    *,
    filename: str = "day.csv",
    more: bool = False,
    is_check: bool = False,
) -> Batch:
    described = {"filename": filename} | ({"more_to_come": "1"} if more else {})
    described |= {"validate_only": "1"} if is_check else {}
    opened = begin(client, len(body), **described)
    assert opened.status_code == 201, opened.content
    sent = send(client, opened["Location"], body)
    assert sent.status_code == 204, sent.content
    assert sent["Upload-Offset"] == str(len(body))
    return Batch.objects.get(pk=opened["Location"].split("/")[-2])
