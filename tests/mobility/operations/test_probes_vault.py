"""Checks of the vault: keys, batches, days, feeds, publications."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.utils import timezone

from mobility.batches.states import goes_on, show_waiting
from mobility.models import Batch, FeedToken, VaultDay, VaultPublication
from mobility.operations.findings import Level
from mobility.operations.models import Backup
from mobility.operations.probes import batches, crossing, feeds, host, keys
from mobility.operations.texts import words
from mobility.vault.keystore import keystore
from tests.mobility.batches.quality.deliveries_by_hand import day_hours
from tests.mobility.operations.probe_world import make_batch, make_study, only, trouble

pytestmark = [pytest.mark.django_db(databases=["default", "vault"]), pytest.mark.usefixtures("data_dir")]
State = Batch.State
CLOSED, PUBLISHED = VaultDay.State.CLOSED, VaultDay.State.PUBLISHED


def date_of(days_ago):
    return (timezone.now() - timedelta(days=days_ago)).date()


def close(study):
    study.closed_at = timezone.now()
    study.save()


def test_each_open_study_needs_its_key(data_dir):
    for slug in ("fine", "gone", "cut"):
        make_study(slug)
    closed = make_study("closed")
    assert trouble(keys.usable()) == []
    keystore().destroy("study-gone")
    keystore().destroy("study-closed")
    close(closed)
    (data_dir / "keystore" / "study-cut.key").write_bytes(b"short")
    found = {each.subject: each for each in keys.usable() if each.level > Level.OK}
    assert {slug: each.facts["why"] for slug, each in found.items()} == {"gone": "missing", "cut": "damaged"}
    assert all((each.code, each.level) == ("key_missing", Level.ERROR) for each in found.values())


def test_a_keystore_that_others_can_read_or_that_is_not_mounted(data_dir):
    assert trouble(keys.usable()) == []  # no study, no key, no folder
    make_study()
    (data_dir / "keystore").chmod(0o755)
    assert only(keys.usable()).facts == {"why": "open"}
    (data_dir / "keystore").rename(data_dir / "elsewhere")
    found = only(keys.usable())
    assert (found.code, found.level, found.facts) == ("keystore_unusable", Level.ERROR, {"why": "absent"})


def test_a_keystore_whose_disk_does_not_answer_is_left_alone(monkeypatch, settings):
    """Touching it would hang, and its silent disk would go unreported."""
    question = host._Question()
    monkeypatch.setitem(host._unanswered, Path(settings.MOBILITY_KEYSTORE_DIR), question)
    assert list(keys.usable()) == []
    question.answer.set_result(host._Space(device=1, total=1, free=1))
    assert list(keys.usable())


@pytest.mark.parametrize(
    ("in_days", "level"), [(15, Level.OK), (14, Level.WARNING), (0, Level.WARNING), (-1, Level.ERROR)]
)
def test_keys_are_reminded_of_before_the_day_of_their_promise(in_days, level):
    until = date_of(-in_days).isoformat()
    make_study(key_until=until)
    found = only(keys.due())
    assert found.level == level
    if level > Level.OK:
        assert (found.facts["day"], found.facts["days_left"]) == (until, in_days)


@pytest.mark.database
def test_keys_that_are_in_no_escrow_unless_one_decides_against_it(settings):
    settings.EMBEDDED_REDIS = False
    make_study("one")
    make_study("two")
    assert only(keys.escrowed()).facts == {"keys": 2, "escrow": "expected"}
    made = {"zone": "all", "made_at": timezone.now(), "contents": {"study-one": 32}}
    Backup.objects.create(kind=Backup.Kind.ESCROW, **made)
    found = only(keys.escrowed())
    assert (found.level, found.facts) == (Level.WARNING, {"keys": 1, "escrow": "expected"})
    settings.MOBILITY_ESCROW = "none"
    found = only(keys.escrowed())
    assert (found.level, found.facts) == (Level.OK, {"keys": 1, "escrow": "none"})
    assert words(found).what == "Open studies whose key has no escrow copy: 1. MOBILITY_ESCROW is none."


@pytest.mark.database
def test_failed_batches_count_until_the_same_file_has_come_or_the_same_days_were_closed():
    study, other = make_study(), make_study("other")
    make_batch(study, State.FAILED, ago_h=2)
    make_batch(study, State.FAILED, ago_h=3, filename="second.csv", content_hash="c")
    make_batch(other, State.FAILED, ago_h=80)  # long ago
    make_batch(other, State.FAILED, ago_h=2, validate_only=True)
    make_batch(study, State.DONE, ago_h=4)  # before it failed
    assert {each.subject: each.facts["batches"] for each in batches.failed()} == {"fair": 2}
    make_batch(study, State.DONE, ago_h=1, rows_read=9)  # no row of it counts
    assert {each.subject: each.facts["batches"] for each in batches.failed()} == {"fair": 2}
    make_batch(study, State.DONE, ago_h=1, rows_accepted=9)
    assert {each.subject: each.facts["batches"] for each in batches.failed()} == {"fair": 1}
    with_another = {"ago_h": 1, "filename": "second.csv", "profile": "another"}
    for content, rows, is_lost in (("d", 9, True), ("", 9, True), ("c", 0, True), ("c", 9, False)):
        make_batch(study, State.DONE, **with_another, content_hash=content, rows_accepted=rows)
        assert bool(trouble(batches.failed())) == is_lost, (content, rows)
    closing = {"kind": Batch.Kind.CLOSE_DAYS, "filename": ""}
    make_batch(study, State.FAILED, ago_h=2, day=3, **closing)
    make_batch(study, State.DONE, ago_h=1, day=2, **closing)
    assert trouble(batches.failed()) == [("batch_failed", "fair", Level.WARNING)]
    make_batch(study, State.DONE, ago_h=1, day=3, **closing)
    assert trouble(batches.failed()) == []


def test_a_failed_file_is_made_up_for_by_another_one_of_its_days():
    study = make_study()
    of_day = {"days_touched": [2], "checks": {"hours": {"2": day_hours(100)}}}
    make_batch(study, State.FAILED, ago_h=2, filename="old.csv", **of_day)
    assert trouble(batches.failed()) == [("batch_failed", "fair", Level.WARNING)]
    make_batch(study, State.DONE, ago_h=1, filename="new.csv", rows_accepted=9, **of_day)
    assert trouble(batches.failed()) == []


def test_batches_that_wait_long_for_their_turn():
    study = make_study()
    make_batch(study, State.QUEUED, ago_h=0.9)
    assert (trouble(batches.waiting()), only(batches.waiting()).facts) == ([], {"batches": 1})
    make_batch(study, State.QUEUED, ago_h=1.1)
    found = only(batches.waiting())
    assert (found.level, found.facts["batches"]) == (Level.WARNING, 2)
    assert found.facts["oldest_s"] == pytest.approx(1.1 * 3600, abs=60)


def test_a_batch_that_nobody_works_on_or_that_is_held_up_is_an_error(settings):
    settings.MOBILITY_BATCH_LEASE_S = 100
    batch, now = make_batch(make_study(), State.READING), timezone.now()

    def stalled():
        found = only(batches.waiting())
        assert (found.code, found.level) == ("batch_waiting", Level.ERROR)
        return found.facts["why"], round(found.facts["oldest_s"], -1)

    for silent_s, is_late in ((150, False), (250, True)):  # the sweep has 100 seconds to take it up
        Batch.objects.filter(pk=batch.pk).update(alive_until=now - timedelta(seconds=silent_s))
        assert bool(trouble(batches.waiting())) == is_late
    assert stalled() == ("stuck", 350)
    show_waiting(batch, waits_for="staging")
    assert trouble(batches.waiting()) == []  # most comes back soon
    Batch.objects.filter(pk=batch.pk).update(waits_since=timezone.now() - timedelta(seconds=310))
    show_waiting(batch, waits_for="staging")  # the next try, and the first one counts
    assert stalled() == ("held_up", 310)
    batch.refresh_from_db()
    goes_on(batch)
    assert trouble(batches.waiting()) == []


@pytest.mark.parametrize(("ago_h", "level"), [(0.5, Level.OK), (2, Level.WARNING), (25, Level.ERROR)])
def test_publications_that_the_server_does_not_take(ago_h, level):
    made = VaultPublication.objects.create(study=make_study(), number=1, subscribers=100, delta=b"")
    VaultPublication.objects.update(created_at=timezone.now() - timedelta(hours=ago_h))
    assert only(crossing.waiting()).level == level
    made.handed_over_at = timezone.now()
    made.save(update_fields=["handed_over_at"])
    assert only(crossing.waiting()).level == Level.OK


def test_days_that_are_over_and_open(settings):
    settings.MOBILITY_DAY_OPEN_DAYS = 4
    study = make_study()  # ended three to ten days ago, in UTC
    VaultDay.objects.create(study=study, day=1, state=CLOSED)
    VaultDay.objects.create(study=study, day=7)
    assert trouble(batches.days()) == []
    VaultDay.objects.create(study=study, day=5)
    found = only(batches.days())
    assert (found.level, found.facts["days"]) == (Level.WARNING, 2)
    assert found.facts["day"] == date_of(6).isoformat()
    assert found.facts["over_s"] == pytest.approx(5.5 * 86_400, abs=0.51 * 86_400)


def test_days_that_are_published_and_not_closed_keep_their_times(settings):
    settings.EMBEDDED_REDIS, settings.MOBILITY_DAY_OPEN_DAYS = False, 1
    study = make_study()  # its last day ended three to four days ago, in UTC
    VaultDay.objects.create(study=study, day=1, state=CLOSED)
    for day in (2, 7):
        VaultDay.objects.create(study=study, day=day, state=PUBLISHED)
    found = only(batches.days())
    assert (found.code, found.subject, found.level) == ("day_open", "fair", Level.NOTE)
    assert found.facts == {"why": "not_closed", "days": 2}
    assert words(found).what.startswith("Days published but not closed: 2.")
    settings.MOBILITY_DAY_OPEN_DAYS = 4
    assert only(batches.days()).facts["days"] == 1  # the other has not been over for long
    VaultDay.objects.create(study=study, day=3)
    assert only(batches.days()).facts["days"] == 1  # days that count nowhere come first
    assert "why" not in only(batches.days()).facts


@pytest.mark.parametrize(
    ("ended_ago", "is_trial", "level"),
    [(11, False, Level.NOTE), (14, False, Level.WARNING), (14, True, Level.NOTE)],
)
def test_days_of_a_study_long_over_are_to_be_closed(settings, monkeypatch, ended_ago, is_trial, level):
    monkeypatch.setattr(batches, "is_trial", lambda: is_trial)
    settings.MOBILITY_DAY_OPEN_DAYS = 3
    study = make_study(first_day=date_of(ended_ago + 7))
    VaultDay.objects.create(study=study, day=7, state=PUBLISHED)
    assert only(batches.days()).level == level
    close(study)
    assert trouble(batches.days()) == []


def owed():
    return only(feeds.late()).facts.get("days")


def brought(study, *days, by="feed north", ago_days=0.05, **values):
    make_batch(study, State.DONE, ago_h=24 * ago_days, created_by=by, days_touched=days, **values)


def make_token(study, *, digest="0" * 64):
    expires_at = timezone.now() + timedelta(days=1)
    return FeedToken.objects.create(study=study, name="north", digest=digest, expires_at=expires_at)


def revoke(study, how="revoked_at"):
    study.feed_tokens.update(**{how: timezone.now() - timedelta(minutes=1)})


def try_in_vain(study):
    make_batch(study, State.FAILED, created_by="feed north")
    brought(study, 1, validate_only=True)


def watch(study):
    (Path(settings.MOBILITY_WATCH_DIR) / study.slug).mkdir()


def stop_watching(study):
    (Path(settings.MOBILITY_WATCH_DIR) / study.slug).rmdir()


WATCHED = {"by": "watched folder"}
ALL = range(1, 8)
# Steps of a study of seven days that are over, and the number of days its feeds owe after each.
FEEDS = {
    "each source owes its own days": [
        (lambda study: brought(study, *ALL, **WATCHED), None),
        (lambda study: brought(study, *range(1, 7), by="feed b", profile="b"), 1),
    ],
    "a valid token is a promise before the first file": [
        (make_token, 7), (try_in_vain, 7), (revoke, None),
    ],
    "a watched folder is one, too": [(watch, 7)],
    "a week after its last file a feed owes nothing if its token was revoked": [
        (make_token, 7), (lambda study: brought(study, 1, ago_days=8), 6), (revoke, None),
        (lambda study: brought(study, 2, ago_days=6), 5),
    ],
    "or has expired": [
        (make_token, 7), (lambda study: brought(study, 1, ago_days=8), 6),
        (lambda study: revoke(study, "expires_at"), None),
    ],
    "a new token of the same name goes on with what the old one owed": [
        (make_token, 7), (revoke, None), (lambda study: brought(study, 3, ago_days=8), None),
        (lambda study: make_token(study, digest="1" * 64), 4),  # those after its first file
    ],
    "a week after its last file a folder that is gone owes nothing, but a mount may be missing": [
        (watch, 7), (lambda study: brought(study, 1, ago_days=8, **WATCHED), 6), (stop_watching, None),
        (lambda study: brought(study, 2, ago_days=6, **WATCHED), 5),
    ],
    "a source is forgotten when its feed has brought others for a week": [
        (make_token, 7), (lambda study: brought(study, 1, profile="trial", ago_days=8), 6),
        (lambda study: brought(study, *ALL), None),
    ],
    "and not before": [
        (make_token, 7), (lambda study: brought(study, 1, profile="trial", ago_days=6), 6),
        (lambda study: brought(study, *ALL), 6),
    ],
}  # fmt: skip


@pytest.mark.parametrize("steps", FEEDS.values(), ids=FEEDS)
def test_what_feeds_owe(tmp_path, settings, steps):
    settings.MOBILITY_WATCH_DIR = str(tmp_path)
    study = make_study()
    for happens, days in steps:
        happens(study)
        assert owed() == days


def test_days_within_the_grace_are_not_late(settings):
    brought(make_study(first_day=date_of(2)), 1)
    settings.MOBILITY_FEED_GRACE_H = 24  # day 2 ended today
    assert trouble(feeds.late()) == []
    settings.MOBILITY_FEED_GRACE_H = 0
    assert trouble(feeds.late()) == [("feed_late", "fair", Level.WARNING)]


@pytest.mark.database
def test_a_feed_owes_every_day_after_its_first_file():
    study = make_study()
    assert only(feeds.late()).facts == {"studies": 0}  # people upload: no one is late
    brought(study, 2, 3)
    brought(study, 5, by="olga")
    make_batch(study, State.FAILED, created_by="feed north", days_touched=[6])
    found = only(feeds.late())
    assert (found.level, found.facts["days"]) == (Level.WARNING, 3)  # 4, 6 and 7
    assert found.facts["day"] == date_of(7).isoformat()
    for day in (4, 6, 7):
        VaultDay.objects.create(study=study, day=day, state=CLOSED)
    assert trouble(feeds.late()) == []
