"""A start is refused where messages could be read on the way, or a token guessed."""

from typing import Any

import pytest
from django.test import override_settings

from mobility.operations import checks

SECRET = "s" * 16
TO = {"MOBILITY_ALERT_EMAIL_TO": ["ops@example.org"]}


def ids(**values: Any) -> list[str | None]:
    given = {"MOBILITY_ALERT_WEBHOOK_SECRET": "", "MOBILITY_ALERT_WEBHOOK_URL": ""} | values
    with override_settings(**given):
        return [each.id for each in (*checks.telling(), *checks.counting())]


def test_without_channels_and_metrics_nothing_is_wrong() -> None:
    assert ids() == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"MOBILITY_ALERT_WEBHOOK_URL": "http://example.org/x"}, ["mobility.E031", "mobility.W031"]),
        ({"MOBILITY_ALERT_WEBHOOK_URL": "https://example.org/x"}, ["mobility.W031"]),
        ({"MOBILITY_ALERT_WEBHOOK_SECRET": "short"}, ["mobility.E032"]),
        ({"EMAIL_HOST": "mail.example.org", "EMAIL_USE_TLS": True}, ["mobility.W032"]),
        ({"EMAIL_HOST": "mail.example.org", **TO}, ["mobility.W033"]),
        ({"EMAIL_HOST": "mail.example.org", "EMAIL_USE_SSL": True, **TO}, []),
        ({"EMAIL_HOST": "127.0.0.1", **TO}, []),
        ({"MOBILITY_METRICS_TOKEN": "t" * 31}, ["mobility.E033"]),
        ({"MOBILITY_METRICS_TOKEN": "t" * 32}, []),
    ],
)
def test_what_is_unsafe_or_incomplete_is_found(values: dict[str, Any], expected: list[str]) -> None:
    assert ids(**values) == expected


def test_a_webhook_with_a_secret_is_fine_and_no_check_quotes_either() -> None:
    url = "https://example.org/hook/MARKER"
    assert ids(MOBILITY_ALERT_WEBHOOK_URL=url, MOBILITY_ALERT_WEBHOOK_SECRET=SECRET) == []
    bad = {
        "MOBILITY_ALERT_WEBHOOK_URL": "http://example.org/MARKER",
        "MOBILITY_ALERT_WEBHOOK_SECRET": "MARKER",
    }
    with override_settings(**bad):
        assert "MARKER" not in "".join(f"{each.msg} {each.hint}" for each in checks.telling())
