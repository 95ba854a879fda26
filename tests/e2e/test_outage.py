"""PostgreSQL is restarted below a running web server: nobody sees a fault that is not there afterwards."""

import json
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse

import pytest

from benchmarks.installation import Installation
from benchmarks.load_web import Web
from scripts import services

HOME, API = "/sign-in/", "/api/v1/studies"
TOKEN = {"Authorization": "Bearer mobility-reader-of-nobody"}


@pytest.fixture(scope="module")
def installation() -> Iterator[tuple[Installation, Web]]:
    with (
        services.private_folder("outage") as folder,
        Installation(folder, is_postgres=True, is_durable=False, workers=0) as parts,
    ):
        parts.run_text("collectstatic", "--no-input", "--verbosity", "0")
        address = ("127.0.0.1", services.free_port())
        web = Web(environment=parts.environment, folder=folder, address=address)
        try:
            web.start()
            yield parts, web
        finally:
            web.stop()


def ask(web: Web, path: str, headers: dict[str, str] | None = None) -> tuple[HTTPResponse, str]:
    connection = HTTPConnection(*web.address, timeout=30)
    connection.request("GET", path, headers=headers or {})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    return response, text


def test_while_the_database_is_away_visitors_are_told_to_come_again(
    installation: tuple[Installation, Web],
) -> None:
    parts, web = installation
    cookie = {"Cookie": f"sessionid={'a' * 32}"}
    assert ask(web, "/", cookie)[0].status == 302  # to the sign-in, after a look at the session
    assert ask(web, API, TOKEN)[0].status == 401

    main = parts.postgres["default"]
    main.stop()
    try:
        page, text = ask(web, "/", cookie)
        answer, problem = ask(web, API, TOKEN)
    finally:
        main.start()

    assert page.status == 503 and page.headers["Retry-After"] == "5"
    assert "The service cannot answer now" in text and "no-store" in page.headers["Cache-Control"]
    assert answer.status == 503 and answer.headers["Retry-After"] == "5"
    assert json.loads(problem)["title"] == "Service Unavailable"
    # Every process and thread has connections of the server that was stopped: none of them is used.
    assert {ask(web, "/", cookie)[0].status for _ in range(20)} == {302}


def test_what_is_our_own_fault_stays_a_500() -> None:
    from django.test import RequestFactory

    from reports.outages import failed

    try:
        raise RuntimeError("a fault of ours")
    except RuntimeError:
        response = failed(RequestFactory().get("/"))
    assert response.status_code == 500
    assert "Retry-After" not in response.headers
