"""Alerts are sent: when certain, once, again when they last, and at the end."""

import time
from datetime import timedelta
from types import SimpleNamespace

import numpy as np
import pytest
from django.core import mail
from django.utils import timezone

from mobility.operations import health
from mobility.operations.alerts import rules as alerts
from mobility.operations.findings import CODES, Finding, Level
from mobility.operations.models import Alert, AlertWatch
from mobility.operations.probes import crowds, looking
from reports.forecasts.crowds import judge, set_limit
from reports.slots.queries import presence
from tests.mobility.operations.probe_world import disk
from tests.reports import slot_factory

pytestmark = [pytest.mark.django_db(databases=["default", "vault"]), pytest.mark.usefixtures("data_dir")]
START = timezone.now().replace(microsecond=0)
DISK = "warning: Low disk space: data folder"
FINE = disk(Level.OK)


@pytest.fixture(autouse=True)
def by_mail(settings):
    settings.MOBILITY_ALERT_EMAIL_TO = ["ops@example.org"]
    settings.MOBILITY_SITE_URL = "https://reports.example.org"


def looks(*found, every_s=60, begin_s=0):
    mail.outbox.clear()
    for number, finding in enumerate(found):
        alerts.check([finding] if finding else [], now=START + timedelta(seconds=begin_s + number * every_s))
    return [subject_of(message) for message in mail.outbox]


def subject_of(message):
    return str(message.subject).removeprefix("[Mobility reports] ")


@pytest.mark.database
def test_it_is_told_when_it_is_seen_twice_once_and_when_it_was_gone_for_a_while():
    assert looks(disk()) == []
    assert looks(disk(), begin_s=60) == [f"opened: {DISK}"]
    assert looks(disk(), disk(), disk(), begin_s=120) == []
    assert Alert.objects.get().facts["free_bytes"] == 5
    assert looks(*[FINE] * 9, begin_s=300) == []
    assert looks(FINE, begin_s=840) == [f"ended: {DISK}"]
    assert looks(FINE, FINE, begin_s=900) == []
    assert Alert.objects.get().ended_at is not None
    assert looks(disk(), disk(), begin_s=3600) == [f"opened: {DISK}"]
    assert Alert.objects.count() == 2


def test_what_is_seen_once_is_told_to_nobody_and_what_comes_and_goes_once():
    assert looks(disk(), *[FINE] * 15) == []
    assert not Alert.objects.exists()
    assert looks(*[disk(), FINE] * 10) == [f"opened: {DISK}"]


def test_what_is_no_longer_looked_at_since_a_setting_was_taken_away_is_over(settings):
    facts = {"publications": 1, "oldest_s": 90_000}
    waits = Finding(code="handover_waiting", level=Level.ERROR, subject="fair", facts=facts)
    refuses = Finding(code="alert_untold", level=Level.ERROR, subject="webhook", facts={"error": "http_401"})
    settings.HANDS_OVER = True
    for seconds in (0, 60):
        alerts.check([waits, refuses], now=START + timedelta(seconds=seconds))
    assert looks(*[None] * 20, begin_s=120) == []  # the vault is down: it may last
    assert not Alert.objects.exclude(ended_at=None).exists()
    settings.HANDS_OVER = False
    (ended,) = looks(None, None, begin_s=1920)
    assert ended == "ended: error: Totals for study fair are waiting to be handed over"
    settings.MOBILITY_ALERT_EMAIL_TO = []
    assert looks(disk(), disk(), begin_s=3000) == []  # nothing is sent, but it is remembered
    assert Alert.objects.get(code="disk_low").told == {}
    assert Alert.objects.get(code="alert_untold").ended_at is not None


@pytest.mark.usefixtures("with_broker")
def test_each_look_finds_the_codes_that_it_names_and_together_they_are_all(settings):
    """A finding without a check would end at once, and one whose check gives nothing would never end."""
    settings.HANDS_OVER = True
    for probe in looking._probes():
        assert {each.code for each in probe.look()} == set(probe.codes), probe.name
    assert looking.looked_for() == set(CODES)


def test_what_lasts_is_told_again_after_a_day_and_what_becomes_worse_at_once(settings):
    looks(disk(), disk())
    day_s = settings.MOBILITY_ALERT_REPEAT_H * 3600
    assert looks(disk(), begin_s=day_s - 60) == []
    assert looks(disk(), disk(), begin_s=day_s + 60) == [f"reminder: {DISK}"]
    worse = DISK.replace("warning", "error")
    assert looks(disk(Level.ERROR), begin_s=day_s + 180) == [f"worse: {worse}"]
    assert looks(disk(), disk(Level.ERROR), begin_s=day_s + 240) == []  # an improvement is no news


@pytest.mark.parametrize(("level", "told"), [("note", 1), ("warning", 0)])
def test_what_is_below_the_level_is_not_told(settings, level, told):
    settings.MOBILITY_ALERT_LEVEL = level
    assert len(looks(disk(Level.NOTE), disk(Level.NOTE))) == Alert.objects.count() == told


def failed(n):
    facts = {"batches": n, "within_s": 3600}
    return Finding(code="batch_failed", level=Level.WARNING, subject="fair", facts=facts)


def test_another_batch_that_fails_is_news_although_the_alert_is_open():
    title = "warning: Failed batches in study fair"
    assert looks(failed(1), failed(1), failed(2), failed(2)) == [f"opened: {title}", f"again: {title}"]
    assert looks(failed(1), failed(2), begin_s=240) == [f"again: {title}"]


def test_several_things_at_once_are_one_mail_with_the_worst_first():
    for _ in range(2):
        alerts.check([failed(1), disk(Level.ERROR)])
    (message,) = mail.outbox
    assert message.subject == "[Mobility reports] opened: error: Low disk space: data folder (+1)"
    body = str(message.body)
    assert body.index("disk_low") < body.index("batch_failed")
    assert "Status: https://reports.example.org/status/" in body
    assert "Runbook: docs/runbook/batch-failed.md" in body
    assert "Operators can find the reason on each batch's page, under Uploads" in body
    assert message.to == ["ops@example.org"]


@pytest.mark.database
def test_of_workers_that_ask_one_looks_in_each_zone(settings):
    assert [alerts.take_turn(after_s=54) for _ in range(3)] == [True, False, False]
    AlertWatch.objects.update(looked_at=timezone.now() - timedelta(seconds=55))
    assert [alerts.take_turn(after_s=54) for _ in range(3)] == [True, False, False]
    looks(disk(), disk())
    settings.MOBILITY_ZONE = "operator"  # and the database has rows of before
    looks(*[FINE] * 20)
    assert alerts.take_turn(after_s=1e8)
    assert Alert.objects.get(zone="all").ended_at is None


def test_web_server_stands_in_when_no_worker_looked_and_readiness_offers_it(client, settings, monkeypatch):
    def after(seconds):
        AlertWatch.objects.update(looked_at=timezone.now() - timedelta(seconds=seconds))
        return alerts.stand_in()

    alerts.take_turn(after_s=0)
    assert not after(200)
    assert after(301)
    assert not alerts.stand_in()
    began = []
    thread = SimpleNamespace(start=lambda: began.append("look"))
    monkeypatch.setattr(alerts.threading, "Thread", lambda target, **_: began.append(target) or thread)

    def ask(offered_at):
        monkeypatch.setattr(alerts, "_offered_at", offered_at)
        monkeypatch.setattr(health, "_kept", health._Kept())
        client.get("/healthz/ready")
        return began

    assert ask(float("-inf")) == [alerts._stand_in_apart, "look"]
    assert len(ask(time.monotonic())) == 2
    assert len(ask(time.monotonic() - 31)) == 4
    settings.MOBILITY_ALERT_EMAIL_TO = []  # without recipients
    assert len(ask(float("-inf"))) == 4


def test_a_limit_of_a_zone_alerts_once_a_level_and_says_when_it_is_over():
    study = slot_factory.create()
    now, told = timezone.now(), []
    set_limit(study, zone=presence(study).zones[0], ahead=0, capacity=1000, by="adam")
    # Noise of one slot: 41 people, so intervals reach 81 people to either side.
    for people in (900, 960, 970, 930, 1120, 1050, 980, 960, 850, 700):
        slot_factory.publish(study, np.array([[people, 0, 0, 0, people, 0]]))
        judge(study)
        for _ in range(12):  # minutes
            now += timedelta(minutes=1)
            alerts.check(list(crowds.full()), now=now)
        told.append([subject_of(message) for message in mail.outbox])
        mail.outbox.clear()
    may = "warning: North west in fair-2024 may have more people than the zone's limit allows"
    assert told == [
        [], [f"opened: {may}"], [], [],
        ["worse: error: North west in fair-2024 has more people than its limit allows"], [], [], [],
        [f"ended: {may}"], [],
    ]  # fmt: skip
    alert = Alert.objects.get()
    assert (alert.facts["capacity"], alert.facts["time"]) == (1000, "2024-05-30 03:30")
