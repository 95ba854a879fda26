"""/healthz: asked by machines, by any host name, without TLS and without a sign-in."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from pytest_django.fixtures import Settings

from mobility.operations import health
from mobility.operations.models import WorkerSign
from mobility.operations.probes import databases
from scripts import services

pytestmark = [
    pytest.mark.django_db(databases=["default", "vault"]),
    pytest.mark.usefixtures("data_dir"),
]


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    health._kept.forget()
    yield
    health._kept.forget()


def test_a_live_process_says_so_and_touches_nothing(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(0):
        answer = client.get("/healthz/live")
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "components": {"web": "ok"}})


def test_ready_while_everything_answers(client: Client, redis_server: services.Server) -> None:
    answer = client.get("/healthz/ready")
    well = {"database": "ok", "vault": "ok", "migrations": "ok", "broker": "ok"}
    assert (answer.status_code, answer.json()) == (200, {"status": "ok", "components": well})
    assert client.get("/healthz").json()["components"] == {"web": "ok", **well}
    assert answer.headers["Cache-Control"] == "no-store"
    redis_server.stop()
    health._kept.forget()
    answer = client.get("/healthz/ready")
    assert answer.status_code == 200  # pages are served, uploads are taken; batches wait
    assert answer.json() == {"status": "degraded", "components": {**well, "broker": "failed"}}
    assert client.get("/healthz/live").status_code == 200
    redis_server.start()
    health._kept.forget()
    assert client.get("/healthz/ready").json()["status"] == "ok"


def test_a_database_that_does_not_answer_and_nothing_of_where_it_is(
    client: Client, redis_server: services.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: str) -> int:
        raise OperationalError("connection to db.internal failed for user mobility")

    monkeypatch.setattr(databases, "_asked", refused)
    answer = client.get("/healthz/ready")
    assert answer.status_code == 503
    assert answer.json()["components"] == {
        "database": "failed", "vault": "failed", "migrations": "failed", "broker": "ok",
    }  # fmt: skip
    assert b"internal" not in answer.content


def test_any_host_name_and_no_tls_will_do(client: Client, settings: Settings) -> None:
    settings.SECURE_SSL_REDIRECT, settings.ALLOWED_HOSTS = True, ["reports.example.org"]
    assert client.get("/healthz/live", headers={"host": "10.0.0.7:8000"}).status_code == 200
    assert client.get("/", headers={"host": "10.0.0.7:8000"}).status_code in (301, 400)


def test_a_flood_asks_the_databases_once(
    client: Client, redis_server: services.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []
    look = health.look

    def counted() -> dict[str, str]:
        looks.append(1)
        return look()

    monkeypatch.setattr(health, "look", counted)
    for _ in range(20):
        client.get("/healthz/ready")
    assert len(looks) == 1


@pytest.mark.parametrize("address", ["/healthz", "/healthz/", "/healthz/live", "/healthz/live/"])
def test_only_reading_is_answered(client: Client, address: str, settings: Settings) -> None:
    assert client.post(address).status_code == 405
    assert client.head("/healthz/live").status_code == 200


def test_what_is_no_address_of_health_is_nobodys(client: Client) -> None:
    assert client.get("/healthz/more").status_code == 404
    assert client.get("/healthzlive").status_code == 404


def test_health_of_workers_by_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "here")
    now = timezone.now()
    sign = {"zone": "all", "version": "1", "started_at": now}
    WorkerSign.objects.create(name="celery@there", seen_at=now, **sign)
    WorkerSign.objects.create(name="celery@here", seen_at=now - timedelta(seconds=61), **sign)
    with pytest.raises(CommandError, match="no sign of life of a worker of here within 60 s"):
        call_command("worker_health")
    WorkerSign.objects.filter(name="celery@here").update(seen_at=now)
    call_command("worker_health")
    assert capsys.readouterr().out == '{"workers": ["celery@here"]}\n'
    call_command("worker_health", name="celery@there")
