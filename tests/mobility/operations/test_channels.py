"""What leaves by e-mail and webhook, and what happens when it is not taken. Receivers are real servers."""

import json
import logging
import os
import shutil
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as current
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django.fixtures import Settings

from mobility.models import FeedToken
from mobility.operations import alerts, alerts_apart, channels
from mobility.operations.channels import ChannelError, Webhook, check_webhook_url, signature_of
from mobility.operations.findings import Finding, Level
from mobility.operations.models import Alert, AlertChannel
from mobility.operations.probes.channels import telling
from tests.mobility.operations.alert_receiver import Receiver, receiving
from tests.mobility.operations.probe_world import make_batch, make_study

pytestmark = [pytest.mark.django_db(databases=["default", "vault"]), pytest.mark.usefixtures("data_dir")]
SECRET = "only-for-tests-webhook-secret"
MARKER = "33699887766"
START = timezone.now().replace(microsecond=0)
FIELDS = {
    "at", "code", "facts", "id", "kind", "level", "runbook", "since", "status_url", "subject", "title",
    "todo", "version", "what", "zone",
}  # fmt: skip


@pytest.fixture
def hook(settings: Settings) -> Iterator[Receiver]:
    with receiving() as receiver:
        settings.MOBILITY_ALERT_WEBHOOK_URL = receiver.address
        settings.MOBILITY_ALERT_WEBHOOK_SECRET = SECRET
        yield receiver


def disk(level: Level = Level.WARNING) -> Finding:
    facts = {"free_bytes": 5, "total_bytes": 100, "free_percent": 5}
    return Finding(code="disk_low", level=level, subject="data", facts=facts)


def look_at(seconds: float, *found: Finding) -> alerts.Outcome:
    return alerts.check(found or [disk()], now=START + timedelta(seconds=seconds))


# --- the webhook ----------------------------------------------------------------------------------


def test_webhook_gets_a_signed_message_that_holds_what_the_page_says(hook: Receiver) -> None:
    look_at(0)
    assert look_at(60) == alerts.Outcome(open=1, told={"webhook": 1}, failed={})
    (got,) = hook.got
    assert set(got.message) == FIELDS
    assert got.message["kind"] == "opened"
    assert got.message["facts"] == {"free_bytes": 5, "total_bytes": 100, "free_percent": 5}
    assert got.message["runbook"] == "docs/runbook/disk-low.md"
    assert got.headers["Mobility-Alert-Id"] == got.message["id"]
    sent_at = got.headers["Mobility-Alert-Time"]
    assert abs(time.time() - int(sent_at)) < 60
    expected = signature_of(got.body, sent_at=sent_at, secret=SECRET)
    assert got.headers["Mobility-Alert-Signature"] == f"sha256={expected}"


def test_signature_is_of_time_and_body_and_secret() -> None:
    given = {"sent_at": "1700000000", "secret": "s" * 16}
    # Computed with `printf '1700000000.{}' | openssl dgst -sha256 -hmac ssssssssssssssss`.
    assert signature_of(b"{}", **given) == OPENSSL
    for changed in ({"sent_at": "1700000001"}, {"secret": "t" * 16}):
        assert signature_of(b"{}", **given | changed) != OPENSSL
    assert signature_of(b"[]", **given) != OPENSSL


OPENSSL = "8145b6bbe655be9ac8ceb50795128d861d3a8e4ff497f6921df314ee9c647ce3"


def test_what_was_not_answered_well_is_sent_again_with_the_same_id(hook: Receiver) -> None:
    look_at(0)
    hook.status = 500
    assert look_at(60).failed == {"webhook": "http_500"}
    hook.status = 204
    assert look_at(75).told == {}  # it waits before it tries again
    assert look_at(95).told == {"webhook": 1}
    assert len({each.message["id"] for each in hook.got}) == 1
    assert [each.message["kind"] for each in hook.got] == ["opened", "opened"]
    look_at(155)
    assert len(hook.got) == 2


def test_each_message_of_an_alert_has_an_id_of_its_own(hook: Receiver) -> None:
    for seconds in (0, 60, 90_000, 190_000):
        look_at(seconds)
    assert [each.message["kind"] for each in hook.got] == ["opened", "reminder", "reminder"]
    assert len({each.message["id"] for each in hook.got}) == 3


def test_pauses_grow_to_an_hour(hook: Receiver) -> None:
    hook.status = 503
    pauses, at = [], 0.0
    look_at(at)
    for _ in range(9):
        look_at(at := at + 1)
        row = AlertChannel.objects.get()
        assert row.next_try_at is not None
        pauses.append((row.next_try_at - START).total_seconds() - at)
        at += pauses[-1]
    assert pauses == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]


def test_what_came_and_went_while_nobody_took_it_is_told_later(hook: Receiver) -> None:
    hook.status = 500
    fine = disk(Level.OK)
    look_at(0)
    look_at(60)
    look_at(120, fine)
    look_at(900, fine)
    assert Alert.objects.get(code="disk_low").ended_at is not None
    hook.status, hook.got = 204, []
    look_at(20_000, fine)
    look_at(20_060, fine)
    assert hook.kinds == [("disk_low", "ended")]
    assert AlertChannel.objects.get().failing_since is None


def test_redirects_are_not_followed(hook: Receiver) -> None:
    with receiving() as elsewhere:
        hook.status, hook.headers = 302, {"Location": elsewhere.address}
        look_at(0)
        assert look_at(60).failed == {"webhook": "http_302"}
        assert elsewhere.got == []


@pytest.mark.parametrize(
    "url", ["http://example.org/x", "ftp://127.0.0.1/x", "https:///x", "file:///etc/passwd", "x"]
)
def test_messages_leave_by_https_only(url: str, settings: Settings) -> None:
    with pytest.raises(ValueError, match="must begin with https://"):
        check_webhook_url(url)
    settings.MOBILITY_ALERT_WEBHOOK_URL = url
    with pytest.raises(ChannelError, match="wrong_address"):
        list(Webhook().send([]))


@pytest.mark.parametrize(
    "url", ["https://example.org/x", "http://127.0.0.1:1/x", "http://[::1]:1/", "http://localhost/"]
)
def test_plain_http_leads_to_this_machine_only(url: str) -> None:
    check_webhook_url(url)


def test_nobody_there_is_a_kind_of_error_and_quotes_no_address(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.MOBILITY_ALERT_WEBHOOK_URL = f"http://127.0.0.1:1/{MARKER}"
    caplog.set_level(logging.DEBUG)
    look_at(0)
    assert look_at(60).failed == {"webhook": "ConnectionRefusedError"}
    assert "alert_untold channel=webhook error=ConnectionRefusedError" in caplog.text
    assert MARKER not in caplog.text


def test_one_process_at_a_time_sends_by_a_channel(hook: Receiver) -> None:
    look_at(0)
    AlertChannel.objects.update(busy_until=START + timedelta(seconds=200))
    assert look_at(60).told == {}
    assert look_at(201).told == {"webhook": 1}  # whoever had it is gone


# --- a channel that fails -----------------------------------------------------------------------


def test_channel_that_fails_twice_is_a_finding_which_the_other_tells(
    hook: Receiver, settings: Settings, mailoutbox: list[Any]
) -> None:
    settings.MOBILITY_ALERT_EMAIL_TO = ["ops@example.org"]
    hook.status = 401

    def seen() -> dict[str, Level]:
        return {finding.subject: finding.level for finding in telling()}

    look_at(0)
    look_at(60)
    assert seen() == {"email": Level.OK, "webhook": Level.OK}
    look_at(91)
    assert seen() == {"email": Level.OK, "webhook": Level.ERROR}
    for seconds in (400, 460):
        look_at(seconds, disk(), *telling())
    assert [mail.subject for mail in mailoutbox] == [
        "[Mobility reports] opened: warning: Little space is left: data folder",
        "[Mobility reports] opened: error: Alerts cannot be sent by webhook",
    ]
    hook.status, hook.got = 204, []
    look_at(8000, disk(), *telling())
    assert hook.kinds == [("disk_low", "opened")]  # and not that it did not work
    assert seen()["webhook"] == Level.OK


# --- e-mail -----------------------------------------------------------------------------------------


class Mailbox(socketserver.StreamRequestHandler):
    """As much of SMTP as it takes to get a mail."""

    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        while line := self.rfile.readline():
            word = line[:4].upper()
            if word == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                body = b""
                while not body.endswith(b"\r\n.\r\n"):
                    body += self.rfile.readline()
                self.server.mails.append(body.decode())  # type: ignore[attr-defined]
            self.wfile.write(b"250 ok\r\n" if word != b"QUIT" else b"221 bye\r\n")
            if word == b"QUIT":
                return


@pytest.fixture
def smtp(settings: Settings) -> Iterator[list[str]]:
    """Mails that a server of this machine got."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Mailbox) as server:
        server.mails = []  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = server.server_address[:2]
        settings.MOBILITY_ALERT_EMAIL_TO = ["ops@example.org", "night@example.org"]
        yield server.mails  # type: ignore[attr-defined]
        server.shutdown()


def test_a_proxy_of_the_environment_is_told_nothing(hook: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    look_at(0)
    assert look_at(60).told == {"webhook": 1}


def test_mail_reaches_a_server(smtp: list[str], settings: Settings) -> None:
    settings.DEFAULT_FROM_EMAIL = "mobility@example.org"
    look_at(0)
    assert look_at(60).told == {"email": 1}
    (mail,) = smtp
    assert "From: mobility@example.org" in mail
    assert "To: ops@example.org, night@example.org" in mail
    assert "Mobility-Alert-Id: " in mail
    assert "Free: 5 bytes of 100 bytes (5.0\u202f%)." in mail


def test_mail_server_that_is_away_is_a_kind_of_error(settings: Settings) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    settings.MOBILITY_ALERT_EMAIL_TO = ["ops@example.org"]
    look_at(0)
    assert look_at(60).failed == {"email": "ConnectionRefusedError"}


def test_title_cannot_add_a_header(mailoutbox: list[Any], settings: Settings) -> None:
    settings.MOBILITY_ALERT_EMAIL_TO = ["ops@example.org"]
    bad = Finding(code="worker_silent", level=Level.ERROR, subject="w\r\nBcc: eve@example.org", facts={})
    look_at(0, bad)
    look_at(60, bad)
    assert mailoutbox[0].subject.count("\n") == 0
    assert mailoutbox[0].recipients() == ["ops@example.org"]


# --- what must be told ----------------------------------------------------------------------------


def test_late_feed_failed_batch_full_disk_and_key_that_is_due_are_told(
    hook: Receiver, settings: Settings
) -> None:
    """By the real looks, from rows and disks as they are."""
    settings.MOBILITY_DISK_FREE_GB = 1e9
    today = timezone.now().date()
    study = make_study(key_until=(today + timedelta(days=3)).isoformat())
    make_batch(study, "failed", filename=f"{MARKER}.csv", created_by=MARKER, failure=MARKER)
    FeedToken.objects.create(
        study=study, name=MARKER, digest="d" * 64, created_by="olga",
        expires_at=timezone.now() + timedelta(days=9),
    )  # fmt: skip
    for _ in range(2):
        alerts.check()
    told = {(each.message["code"], each.message["subject"]) for each in hook.got}
    wanted = {("feed_late", "fair"), ("batch_failed", "fair"), ("disk_low", "data"), ("key_due", "fair")}
    assert wanted <= told
    assert not any(code == "look_failed" for code, _ in told)
    assert MARKER not in b"".join(each.body for each in hook.got).decode()


# --- without the main database ----------------------------------------------------------------------


def away(level: Level = Level.ERROR) -> Finding:
    facts = {"error": "OperationalError"} if level else {"ms": 1, "bytes": 1}
    return Finding(code="database_unreachable", level=level, subject="default", facts=facts)


def test_commands_tell_that_the_main_database_is_away(tmp_path: Path, hook: Receiver) -> None:
    """Real commands, and a database server that is not there."""
    root = tmp_path / "installation"
    root.mkdir(mode=0o700)
    environment = os.environ | {
        "MOBILITY_DATA_DIR": str(root),
        "DATABASE_URL": "postgres://nobody@127.0.0.1:1/none",
        "MOBILITY_ZONE": "analyst",
        "REDIS_URL": "redis://127.0.0.1:1/0",
        "MOBILITY_ALERT_WEBHOOK_URL": hook.address,
        "DJANGO_SETTINGS_MODULE": "mobility.settings",
    }
    command = [sys.executable, "manage.py", "check_alerts", "--now"]
    answers = []
    for _ in range(2):
        done = subprocess.run(
            command, env=environment, cwd=current.BASE_DIR, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        answers.append(json.loads(done.stdout))
    assert [answer["told"] for answer in answers] == [{}, {"webhook": 1}]
    assert hook.kinds == [("database_unreachable", "opened")]
    shutil.rmtree(root)


def test_when_it_is_back_that_is_told_once(hook: Receiver) -> None:
    for seconds in (0, 60, 120):
        alerts_apart.check([away()], now=START + timedelta(seconds=seconds))
    for seconds in (180, 240):
        look_at(seconds, away(Level.OK))
    assert hook.kinds == [("database_unreachable", "opened"), ("database_unreachable", "ended")]


def test_turns_without_a_database_are_taken_once() -> None:
    assert [alerts_apart.take_turn(after_s=60) for _ in range(3)] == [True, False, False]
    stamp = current.PATHS.run / "alerts.turn"
    os.utime(stamp, (time.time() - 61, time.time() - 61))
    assert alerts_apart.take_turn(after_s=60)


# --- trying it out ------------------------------------------------------------------------------------


def test_test_alerts_sends_by_each_channel(
    hook: Receiver, smtp: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("test_alerts")
    assert json.loads(capsys.readouterr().out) == {
        "channels": [
            {"channel": "email", "told": True, "error": ""},
            {"channel": "webhook", "told": True, "error": ""},
        ]
    }
    assert hook.got[0].message["kind"] == "test"
    assert "A test of alerts" in smtp[0]


def test_test_alerts_says_which_channel_fails(hook: Receiver, capsys: pytest.CaptureFixture[str]) -> None:
    hook.status = 403
    with pytest.raises(CommandError, match="not told by webhook"):
        call_command("test_alerts")
    assert json.loads(capsys.readouterr().out)["channels"][0]["error"] == "http_403"


def test_test_alerts_needs_a_channel() -> None:
    with pytest.raises(CommandError, match="no channel is set up"):
        call_command("test_alerts")


def test_check_alerts_looks_unless_somebody_just_has(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], [], ["--now"]):
        call_command("check_alerts", *words)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["looked"] for line in lines] == [True, False, True]
    assert lines[0]["told"] == {}


def test_channels_are_those_that_are_set_up(settings: Settings) -> None:
    assert channels.channels() == []
    settings.MOBILITY_ALERT_EMAIL_TO = ["ops@example.org"]
    assert [channel.name for channel in channels.channels()] == ["email"]
