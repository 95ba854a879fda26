"""Messages by e-mail and webhook, and their fate when refused. Receivers are real servers."""

import json
import logging
import os
import socketserver
import time
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest
from django.conf import settings as current
from django.core.management import CommandError, call_command
from django.test import override_settings
from django.utils import timezone

from mobility.operations import checks
from mobility.operations.alerts import channels
from mobility.operations.alerts import rules as alerts
from mobility.operations.alerts import without_database as alerts_apart
from mobility.operations.alerts.channels import ChannelError, Webhook, check_webhook_url, signature_of
from mobility.operations.findings import Finding, Level
from mobility.operations.models import Alert, AlertChannel
from mobility.operations.probes.channels import telling
from mobility.vault.models.profiles import FeedToken
from tests.mobility.data_folder import serving
from tests.mobility.operations.probe_world import disk, make_batch, make_study

pytestmark = [pytest.mark.django_db(databases=["default", "vault"]), pytest.mark.usefixtures("data_dir")]
SECRET = "only-for-tests-webhook-secret"
MARKER = "33699887766"
START = timezone.now().replace(microsecond=0)
FIELDS = {
    "at", "code", "facts", "id", "kind", "level", "runbook", "since", "status_url", "subject", "title",
    "todo", "version", "what", "zone",
}  # fmt: skip


@contextmanager
def receiving():
    """A server that receives webhooks, remembers them, and answers as configured."""
    receiver = SimpleNamespace(address="", got=[], status=204, headers={})

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            got = SimpleNamespace(headers=dict(self.headers), body=body, message=json.loads(body))
            receiver.got.append(got)
            self.send_response(receiver.status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver.address = f"http://127.0.0.1:{server.server_address[1]}/hook"
    with serving(server):
        yield receiver


@pytest.fixture
def hook(settings):
    with receiving() as receiver:
        settings.MOBILITY_ALERT_WEBHOOK_URL = receiver.address
        settings.MOBILITY_ALERT_WEBHOOK_SECRET = SECRET
        yield receiver


def kinds(hook):
    return [(each.message["code"], each.message["kind"]) for each in hook.got]


def look_at(seconds, *found):
    return alerts.check(found or [disk()], now=START + timedelta(seconds=seconds))


def test_webhook_gets_what_the_page_says_signed_with_time_body_and_secret(hook):
    look_at(0)
    assert look_at(60) == alerts.Outcome(open=1, told={"webhook": 1}, failed={})
    (got,) = hook.got
    assert (set(got.message), got.message["kind"]) == (FIELDS, "opened")
    assert got.message["facts"] == {"free_bytes": 5, "total_bytes": 100, "free_percent": 5}
    assert got.message["runbook"] == "docs/runbook/disk-low.md"
    assert got.headers["Mobility-Alert-Id"] == got.message["id"]
    sent_at = got.headers["Mobility-Alert-Time"]
    assert abs(time.time() - int(sent_at)) < 60
    expected = signature_of(got.body, sent_at=sent_at, secret=SECRET)
    assert got.headers["Mobility-Alert-Signature"] == f"sha256={expected}"
    given = {"sent_at": "1700000000", "secret": "s" * 16}
    # Computed with `printf '1700000000.{}' | openssl dgst -sha256 -hmac ssssssssssssssss`.
    openssl = "8145b6bbe655be9ac8ceb50795128d861d3a8e4ff497f6921df314ee9c647ce3"
    assert signature_of(b"{}", **given) == openssl
    for changed in ({"sent_at": "1700000001"}, {"secret": "t" * 16}):
        assert signature_of(b"{}", **given | changed) != openssl
    assert signature_of(b"[]", **given) != openssl


def test_what_was_not_answered_well_is_sent_again_with_the_same_id(hook):
    look_at(0)
    hook.status = 500
    assert look_at(60).failed == {"webhook": "http_500"}
    hook.status = 204
    assert look_at(75).told == {}  # it waits before it tries again
    assert look_at(95).told == {"webhook": 1}
    look_at(155)
    assert (kinds(hook), len({each.message["id"] for each in hook.got})) == ([("disk_low", "opened")] * 2, 1)
    look_at(90_000)
    assert kinds(hook)[2:] == [("disk_low", "reminder")]
    assert len({each.message["id"] for each in hook.got}) == 2


def test_pauses_grow_to_an_hour(monkeypatch, settings):
    settings.MOBILITY_ALERT_WEBHOOK_URL = "http://127.0.0.1:1/"
    pauses, at = [], 0.0
    look_at(at)
    for _ in range(9):
        look_at(at := at + 1)
        pauses.append((AlertChannel.objects.get().next_try_at - START).total_seconds() - at)
        at += pauses[-1]
    assert pauses == [30, 60, 120, 240, 480, 960, 1920, 3600, 3600]


def test_what_came_and_went_while_nobody_took_it_is_told_later(hook):
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
    assert kinds(hook) == [("disk_low", "ended")]
    assert AlertChannel.objects.get().failing_since is None


def test_redirects_are_not_followed_and_a_proxy_of_the_environment_is_told_nothing(hook, monkeypatch):
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with receiving() as elsewhere:
        hook.status, hook.headers = 302, {"Location": elsewhere.address}
        look_at(0)
        assert (look_at(60).failed, elsewhere.got) == ({"webhook": "http_302"}, [])


def test_messages_leave_by_https_only_and_plain_http_leads_to_this_machine_only(settings):
    for url in ("http://example.org/x", "ftp://127.0.0.1/x", "https:///x", "file:///etc/passwd", "x"):
        with pytest.raises(ValueError, match="must begin with https://"):
            check_webhook_url(url)
        settings.MOBILITY_ALERT_WEBHOOK_URL = url
        with pytest.raises(ChannelError, match="wrong_address"):
            list(Webhook().send([]))
    for url in ("https://example.org/x", "http://127.0.0.1:1/x", "http://[::1]:1/", "http://localhost/"):
        check_webhook_url(url)


def test_nobody_there_is_a_kind_of_error_and_quotes_no_address(settings, caplog):
    settings.MOBILITY_ALERT_WEBHOOK_URL = f"http://127.0.0.1:1/{MARKER}"
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    settings.MOBILITY_ALERT_EMAIL_TO = ["ops@example.org"]
    caplog.set_level(logging.DEBUG)
    look_at(0)
    assert look_at(60).failed == dict.fromkeys(("email", "webhook"), "ConnectionRefusedError")
    assert "alert_untold channel=webhook error=ConnectionRefusedError" in caplog.text
    assert MARKER not in caplog.text


def test_one_process_at_a_time_sends_by_a_channel(hook):
    look_at(0)
    AlertChannel.objects.update(busy_until=START + timedelta(seconds=200))
    assert look_at(60).told == {}
    assert look_at(201).told == {"webhook": 1}  # anyone who had it is gone


def test_channel_that_fails_twice_is_a_finding_which_the_other_tells(hook, settings, mailoutbox):
    settings.MOBILITY_ALERT_EMAIL_TO = ["ops@example.org"]
    hook.status = 401

    def seen():
        return {finding.subject: finding.level for finding in telling()}

    look_at(0)
    look_at(60)
    assert seen() == {"email": Level.OK, "webhook": Level.OK}
    look_at(91)
    assert seen() == {"email": Level.OK, "webhook": Level.ERROR}
    for seconds in (400, 460):
        look_at(seconds, disk(), *telling())
    assert [mail.subject for mail in mailoutbox] == [
        "[Mobility reports] opened: warning: Low disk space: data folder",
        "[Mobility reports] opened: error: Alerts cannot be sent by webhook",
    ]
    hook.status, hook.got = 204, []
    look_at(8000, disk(), *telling())
    assert kinds(hook) == [("disk_low", "opened")]  # and not that it did not work
    assert seen()["webhook"] == Level.OK


class Mailbox(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(b"220 here\r\n")
        while line := self.rfile.readline():
            word = line[:4].upper()
            if word == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                body = b""
                while not body.endswith(b"\r\n.\r\n"):
                    body += self.rfile.readline()
                self.server.mails.append(body.decode())
            self.wfile.write(b"250 ok\r\n" if word != b"QUIT" else b"221 bye\r\n")
            if word == b"QUIT":
                return


@pytest.fixture
def smtp(settings):
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Mailbox)
    server.mails = []
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = server.server_address[:2]
    settings.MOBILITY_ALERT_EMAIL_TO = ["ops@example.org", "night@example.org"]
    with serving(server):
        yield server.mails


def test_mail_reaches_a_server(smtp, settings):
    settings.DEFAULT_FROM_EMAIL = "mobility@example.org"
    look_at(0)
    assert look_at(60).told == {"email": 1}
    (mail,) = smtp
    assert "From: mobility@example.org" in mail
    assert "To: ops@example.org, night@example.org" in mail
    assert "Mobility-Alert-Id: " in mail
    assert "Free: 5 bytes of 100 bytes (5.0%)." in mail


def test_title_cannot_add_a_header(mailoutbox, settings):
    settings.MOBILITY_ALERT_EMAIL_TO = ["ops@example.org"]
    bad = Finding(code="worker_silent", level=Level.ERROR, subject="w\r\nBcc: eve@example.org", facts={})
    look_at(0, bad)
    look_at(60, bad)
    assert (mailoutbox[0].subject.count("\n"), mailoutbox[0].recipients()) == (0, ["ops@example.org"])


def test_late_feed_failed_batch_full_disk_and_key_that_is_due_are_told(hook, settings):
    settings.MOBILITY_DISK_FREE_GB = 1e9
    study = make_study(key_until=(timezone.now().date() + timedelta(days=3)).isoformat())
    make_batch(study, "failed", filename=f"{MARKER}.csv", created_by=MARKER, failure=MARKER)
    ends = timezone.now() + timedelta(days=9)
    FeedToken.objects.create(study=study, name=MARKER, digest="d" * 64, created_by="olga", expires_at=ends)
    for _ in range(2):
        alerts.check()
    told = {(each.message["code"], each.message["subject"]) for each in hook.got}
    wanted = {("feed_late", "fair"), ("batch_failed", "fair"), ("disk_low", "data"), ("key_due", "fair")}
    assert wanted <= told
    assert not any(code == "look_failed" for code, _ in told)
    assert MARKER not in b"".join(each.body for each in hook.got).decode()


def looked(capsys, *words):
    call_command("check_alerts", *words)
    return json.loads(capsys.readouterr().out)


def test_that_the_main_database_is_away_is_told_and_then_that_it_is_back(hook, unmount, capsys):
    unmount("default")
    assert [looked(capsys, "--now")["told"] for _ in range(3)] == [{}, {"webhook": 1}, {}]
    assert kinds(hook) == [("database_unreachable", "opened")]


def test_when_it_is_back_that_is_told_once(hook):
    about = {"code": "database_unreachable", "subject": "default", "facts": {"error": "OperationalError"}}
    away = Finding(level=Level.ERROR, **about)
    for seconds in (0, 60, 120):
        alerts_apart.check([away], now=START + timedelta(seconds=seconds))
    for seconds in (180, 240):
        look_at(seconds, disk(Level.OK))
    assert kinds(hook) == [("database_unreachable", "opened"), ("database_unreachable", "ended")]


def test_turns_are_taken_once_with_and_without_a_database(capsys):
    assert [alerts_apart.take_turn(after_s=60) for _ in range(3)] == [True, False, False]
    os.utime(current.PATHS.run / "alerts.turn", (time.time() - 61, time.time() - 61))
    assert alerts_apart.take_turn(after_s=60)
    answers = [looked(capsys, *words) for words in ([], [], ["--now"])]
    assert ([answer["looked"] for answer in answers], answers[0]["told"]) == ([True, False, True], {})


def test_test_alerts_sends_by_each_channel_says_which_one_fails_and_needs_one(hook, smtp, capsys, settings):
    call_command("test_alerts")
    well = [{"channel": channel, "told": True, "error": ""} for channel in ("email", "webhook")]
    assert (json.loads(capsys.readouterr().out), hook.got[0].message["kind"]) == ({"channels": well}, "test")
    assert "Test alert" in smtp[0]
    hook.status, settings.MOBILITY_ALERT_EMAIL_TO = 403, []
    with pytest.raises(CommandError, match="not sent by webhook"):
        call_command("test_alerts")
    assert json.loads(capsys.readouterr().out)["channels"][0]["error"] == "http_403"
    settings.MOBILITY_ALERT_WEBHOOK_URL = ""
    assert channels.channels() == []
    with pytest.raises(CommandError, match="no alert channel is configured"):
        call_command("test_alerts")


def test_what_is_unsafe_or_incomplete_is_found_and_not_quoted():
    to = {"MOBILITY_ALERT_EMAIL_TO": ["ops@example.org"]}
    for values, expected in (
        ({}, []),
        ({"MOBILITY_ALERT_WEBHOOK_URL": f"http://example.org/{MARKER}"}, ["mobility.E031", "mobility.W031"]),
        ({"MOBILITY_ALERT_WEBHOOK_URL": "https://example.org/x"}, ["mobility.W031"]),
        ({"MOBILITY_ALERT_WEBHOOK_URL": "https://x.org/", "MOBILITY_ALERT_WEBHOOK_SECRET": "s" * 16}, []),
        ({"MOBILITY_ALERT_WEBHOOK_SECRET": MARKER}, ["mobility.E032"]),
        ({"EMAIL_HOST": "mail.example.org", "EMAIL_USE_TLS": True}, ["mobility.W032"]),
        ({"EMAIL_HOST": "mail.example.org", **to}, ["mobility.W033"]),
        ({"EMAIL_HOST": "mail.example.org", "EMAIL_USE_SSL": True, **to}, []),
        ({"EMAIL_HOST": "127.0.0.1", **to}, []),
        ({"MOBILITY_METRICS_TOKEN": "t" * 31}, ["mobility.E033"]),
        ({"MOBILITY_METRICS_TOKEN": "t" * 32}, []),
    ):  # fmt: skip
        given = {"MOBILITY_ALERT_WEBHOOK_SECRET": "", "MOBILITY_ALERT_WEBHOOK_URL": ""} | values
        with override_settings(**given):
            found = [*checks.telling(), *checks.counting()]
        assert [each.id for each in found] == expected, values
        assert MARKER not in "".join(f"{each.msg} {each.hint}" for each in found)
