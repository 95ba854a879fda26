"""Messages by e-mail and webhook, and their fate when refused. Receivers are real servers."""

import json
import logging
import os
import socketserver
import time
from datetime import timedelta

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
from tests.mobility.commands import printed
from tests.mobility.data_folder import answering, serving
from tests.mobility.operations.probe_world import disk, make_batch, make_study

pytestmark = [pytest.mark.django_db(databases=["default", "vault"]), pytest.mark.usefixtures("data_dir")]
SECRET = "only-for-tests-webhook-secret"
MARKER = "33699887766"
START = timezone.now().replace(microsecond=0)
FIELDS = {
    "at", "code", "facts", "id", "kind", "level", "runbook", "since", "status_url", "subject", "title",
    "todo", "version", "what", "zone",
}  # fmt: skip


@pytest.fixture
def hook(settings):
    with answering(204, b"") as site:
        settings.MOBILITY_ALERT_WEBHOOK_URL = f"{site.url}/hook"
        settings.MOBILITY_ALERT_WEBHOOK_SECRET = SECRET
        yield site


def messages(hook):
    return [json.loads(got.body) for got in hook.asked]


def kinds(hook):
    return [(message["code"], message["kind"]) for message in messages(hook)]


def look_at(seconds, *found):
    return alerts.check(found or [disk()], now=START + timedelta(seconds=seconds))


def test_webhook_gets_what_the_page_says_signed_with_time_body_and_secret(hook):
    look_at(0)
    assert look_at(60) == alerts.Outcome(open=1, told={"webhook": 1}, failed={})
    (got,), (message,) = hook.asked, messages(hook)
    assert (set(message), message["kind"]) == (FIELDS, "opened")
    assert message["facts"] == {"free_bytes": 5, "total_bytes": 100, "free_percent": 5}
    assert message["runbook"] == "docs/runbook/disk-low.md"
    assert got.headers["Mobility-Alert-Id"] == message["id"]
    sent_at = got.headers["Mobility-Alert-Time"]
    assert abs(time.time() - int(sent_at)) < 60
    expected = signature_of(got.body, sent_at=sent_at, secret=SECRET)
    assert got.headers["Mobility-Alert-Signature"] == f"sha256={expected}"
    given = {"sent_at": "1700000000", "secret": "s" * 16}
    # Computed with `printf '1700000000.{}' | openssl dgst -sha256 -hmac ssssssssssssssss`.
    openssl = "8145b6bbe655be9ac8ceb50795128d861d3a8e4ff497f6921df314ee9c647ce3"
    assert signature_of(b"{}", **given) == openssl
    for body, changed in ((b"{}", {"sent_at": "1700000001"}), (b"{}", {"secret": "t" * 16}), (b"[]", {})):
        assert signature_of(body, **given | changed) != openssl


def test_what_was_not_answered_well_is_sent_again_with_the_same_id_by_one_process_at_a_time(hook):
    look_at(0)
    hook.status = 500
    assert look_at(60).failed == {"webhook": "http_500"}
    hook.status = 204
    assert look_at(75).told == {}  # it waits before it tries again
    AlertChannel.objects.update(busy_until=START + timedelta(seconds=200))
    assert look_at(95).told == {}
    assert look_at(201).told == {"webhook": 1}  # anyone who had it is gone
    look_at(255)
    ids = [message["id"] for message in messages(hook)]
    assert (kinds(hook), len(set(ids))) == ([("disk_low", "opened")] * 2, 1)
    look_at(90_000)
    assert kinds(hook)[2:] == [("disk_low", "reminder")]
    assert messages(hook)[2]["id"] not in ids


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
    hook.status, hook.asked[:] = 204, []
    look_at(20_000, fine)
    look_at(20_060, fine)
    assert kinds(hook) == [("disk_low", "ended")]
    assert AlertChannel.objects.get().failing_since is None


def test_redirects_are_not_followed_and_a_proxy_of_the_environment_is_told_nothing(hook, monkeypatch):
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    hook.status, hook.headers = 302, {"Location": "/elsewhere"}
    look_at(0)
    assert (look_at(60).failed, [got.path for got in hook.asked]) == ({"webhook": "http_302"}, ["/hook"])


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
        "[Mobility reports] opened: error: Alerts cannot be sent via webhook",
    ]
    hook.status, hook.asked[:] = 204, []
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


def test_mail_reaches_a_server_and_a_title_cannot_add_a_header(settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.MOBILITY_ALERT_EMAIL_TO = ["ops@example.org", "night@example.org"]
    settings.DEFAULT_FROM_EMAIL = "mobility@example.org"
    bad = Finding(code="worker_silent", level=Level.ERROR, subject="w\r\nBcc: eve@example.org", facts={})
    with serving(socketserver.ThreadingTCPServer(("127.0.0.1", 0), Mailbox)) as server:
        server.mails = []
        settings.EMAIL_HOST, settings.EMAIL_PORT = server.server_address[:2]
        look_at(0)
        assert look_at(60).told == {"email": 1}
        for seconds in (300, 360):
            look_at(seconds, bad)
    for part in (
        "From: mobility@example.org", "To: ops@example.org, night@example.org", "Mobility-Alert-Id: ",
        "Free: 5 bytes of 100 bytes (5.0%).",
    ):  # fmt: skip
        assert part in server.mails[0]
    head, _, body = server.mails[1].partition("\r\n\r\n")
    assert "\nBcc:" not in head and "Subject:" in head and body


def test_late_feed_failed_batch_full_disk_and_key_that_is_due_are_told(hook, settings):
    settings.MOBILITY_DISK_FREE_GB = 1e9
    study = make_study(key_until=(timezone.now().date() + timedelta(days=3)).isoformat())
    make_batch(study, "failed", filename=f"{MARKER}.csv", created_by=MARKER, failure=MARKER)
    ends = timezone.now() + timedelta(days=9)
    FeedToken.objects.create(study=study, name=MARKER, digest="d" * 64, created_by="olga", expires_at=ends)
    for _ in range(2):
        alerts.check()
    told = {(message["code"], message["subject"]) for message in messages(hook)}
    wanted = {("feed_late", "fair"), ("batch_failed", "fair"), ("disk_low", "data"), ("key_due", "fair")}
    assert wanted <= told
    assert not any(code == "look_failed" for code, _ in told)
    assert MARKER not in b"".join(got.body for got in hook.asked).decode()


def test_that_the_main_database_is_away_is_told_and_that_it_is_back_once(hook, unmount):
    unmount("default")
    assert [printed("check_alerts", "--now")["told"] for _ in range(3)] == [{}, {"webhook": 1}, {}]
    assert kinds(hook) == [("database_unreachable", "opened")]


def test_when_it_is_back_that_is_told_once(hook):
    about = {"code": "database_unreachable", "subject": "default", "facts": {"error": "OperationalError"}}
    away = Finding(level=Level.ERROR, **about)
    for seconds in (0, 60, 120):
        alerts_apart.check([away], now=START + timedelta(seconds=seconds))
    for seconds in (180, 240):
        look_at(seconds, disk(Level.OK))
    assert kinds(hook) == [("database_unreachable", "opened"), ("database_unreachable", "ended")]


def test_turns_are_taken_once_with_and_without_a_database():
    assert [alerts_apart.take_turn(after_s=60) for _ in range(3)] == [True, False, False]
    os.utime(current.PATHS.run / "alerts.turn", (time.time() - 61, time.time() - 61))
    assert alerts_apart.take_turn(after_s=60)
    answers = [printed("check_alerts", *words) for words in ([], [], ["--now"])]
    assert ([answer["looked"] for answer in answers], answers[0]["told"]) == ([True, False, True], {})


def test_test_alerts_sends_by_each_channel_says_which_one_fails_and_needs_one(
    hook, mailoutbox, settings, capsys
):
    settings.MOBILITY_ALERT_EMAIL_TO = ["ops@example.org"]
    well = [{"channel": channel, "told": True, "error": ""} for channel in ("email", "webhook")]
    assert (printed("test_alerts"), messages(hook)[0]["kind"]) == ({"channels": well}, "test")
    assert "Test alert" in mailoutbox[0].subject
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
