"""Looks at what the vault knows: keys, batches, days, feeds, publications."""

from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from mobility.keystore import keystore
from mobility.models import Batch, FeedToken, VaultDay, VaultPublication, VaultStudy
from mobility.operations.findings import Level
from mobility.operations.models import Backup
from mobility.operations.probes import backups, batches, crossing, feeds, host, keys
from mobility.operations.wording import words
from mobility.services.liveness import goes_on, show_waiting
from tests.mobility.operations.probe_world import make_batch, make_study, only, trouble

pytestmark = [
    pytest.mark.django_db(databases=["default", "vault"]),
    pytest.mark.usefixtures("data_dir"),
    pytest.mark.database,
]
State = Batch.State


def test_each_open_study_needs_its_key(data_dir: Path) -> None:
    for slug in ("fine", "gone", "cut"):
        make_study(slug)
    assert trouble(keys.usable()) == []
    keystore().destroy("study-gone")
    (data_dir / "keystore" / "study-cut.key").write_bytes(b"short")
    found = {each.subject: each for each in keys.usable() if each.level > Level.OK}
    assert {slug: each.facts["why"] for slug, each in found.items()} == {"gone": "missing", "cut": "damaged"}
    assert all((each.code, each.level) == ("key_missing", Level.ERROR) for each in found.values())


def test_keys_of_closed_studies_are_gone_as_they_should(data_dir: Path) -> None:
    study = make_study()
    keystore().destroy(study.key_id)
    study.closed_at = timezone.now()
    study.save()
    assert trouble(keys.usable()) == []


def test_a_keystore_that_others_can_read_or_that_is_not_mounted(data_dir: Path) -> None:
    assert trouble(keys.usable()) == []  # no study, no key, no folder
    make_study()
    (data_dir / "keystore").chmod(0o755)
    assert only(keys.usable()).facts == {"why": "open"}
    (data_dir / "keystore").rename(data_dir / "elsewhere")
    found = only(keys.usable())
    assert (found.code, found.level, found.facts) == ("keystore_unusable", Level.ERROR, {"why": "absent"})


@pytest.mark.parametrize(
    ("in_days", "level"),
    [(15, Level.OK), (14, Level.WARNING), (0, Level.WARNING), (-1, Level.ERROR)],
)
def test_keys_are_reminded_of_before_the_day_of_their_promise(in_days: int, level: Level) -> None:
    until = (timezone.now() + timedelta(days=in_days)).date().isoformat()
    make_study(key_until=until)
    found = only(keys.due())
    assert found.level == level
    if level > Level.OK:
        assert found.facts["day"] == until
        assert found.facts["days_left"] == in_days


def test_failed_batches_count_until_the_same_file_has_come() -> None:
    study, other = make_study(), make_study("other")
    make_batch(study, State.FAILED, ago_h=2)
    make_batch(study, State.FAILED, ago_h=3, filename="second.csv")
    make_batch(other, State.FAILED, ago_h=80)  # long ago
    make_batch(other, State.FAILED, ago_h=2, validate_only=True)
    make_batch(study, State.DONE, ago_h=4)  # before it failed
    assert {each.subject: each.facts["batches"] for each in batches.failed()} == {"fair": 2}
    make_batch(study, State.DONE, ago_h=1)
    assert {each.subject: each.facts["batches"] for each in batches.failed()} == {"fair": 1}
    make_batch(study, State.DONE, ago_h=1, filename="second.csv")
    assert trouble(batches.failed()) == []


def test_a_failed_closing_of_days_is_made_good_by_one_of_the_same_days_only() -> None:
    study = make_study()
    closing = {"kind": Batch.Kind.CLOSE_DAYS, "filename": ""}
    make_batch(study, State.FAILED, ago_h=2, day=3, **closing)
    make_batch(study, State.DONE, ago_h=1, day=2, **closing)
    assert trouble(batches.failed()) == [("batch_failed", "fair", Level.WARNING)]
    make_batch(study, State.DONE, ago_h=1, day=3, **closing)
    assert trouble(batches.failed()) == []


def test_batches_that_wait_long_for_their_turn() -> None:
    study = make_study()
    make_batch(study, State.QUEUED, ago_h=0.9)
    assert trouble(batches.waiting()) == []
    assert only(batches.waiting()).facts == {"batches": 1}
    make_batch(study, State.QUEUED, ago_h=1.1)
    found = only(batches.waiting())
    assert (found.level, found.facts["batches"]) == (Level.WARNING, 2)
    assert found.facts["oldest_s"] == pytest.approx(1.1 * 3600, abs=60)


def test_a_batch_that_nobody_works_on_is_an_error(settings: Settings) -> None:
    settings.MOBILITY_BATCH_LEASE_S = 100
    study, now = make_study(), timezone.now()
    batch = make_batch(study, State.MERGING, alive_until=now - timedelta(seconds=150))
    assert trouble(batches.waiting()) == []  # the sweep has 100 more seconds to take it up
    Batch.objects.filter(pk=batch.pk).update(alive_until=now - timedelta(seconds=250))
    found = only(batches.waiting())
    assert (found.code, found.level, found.facts["why"]) == ("batch_waiting", Level.ERROR, "stuck")
    assert found.facts["oldest_s"] == pytest.approx(350, abs=10)


def test_a_batch_that_a_key_or_a_storage_holds_up_is_an_error_although_it_is_tried_again(
    settings: Settings,
) -> None:
    settings.MOBILITY_BATCH_LEASE_S = 100
    batch = make_batch(make_study(), State.READING)
    show_waiting(batch, waits_for="staging")
    assert trouble(batches.waiting()) == []  # most comes back soon
    since = timezone.now() - timedelta(seconds=310)
    Batch.objects.filter(pk=batch.pk).update(waits_since=since)
    show_waiting(batch, waits_for="staging")  # the next try, and the first one counts
    found = only(batches.waiting())
    assert (found.code, found.level, found.facts["why"]) == ("batch_waiting", Level.ERROR, "held_up")
    assert found.facts["oldest_s"] == pytest.approx(310, abs=10)
    batch.refresh_from_db()
    goes_on(batch)
    assert trouble(batches.waiting()) == []


def test_a_keystore_whose_disk_does_not_answer_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    """Who touched it would hang with it, and could tell nobody that its disk is silent."""
    question = host._Question()
    monkeypatch.setitem(host._unanswered, Path(settings.MOBILITY_KEYSTORE_DIR), question)
    assert list(keys.usable()) == []
    question.answer.set_result(host._Space(device=1, total=1, free=1))
    assert list(keys.usable())


def test_days_that_are_over_and_open(settings: Settings) -> None:
    settings.MOBILITY_DAY_OPEN_DAYS = 4
    study = make_study()  # ended three to ten days ago, in UTC
    VaultDay.objects.create(study=study, day=1, state=VaultDay.State.CLOSED)
    VaultDay.objects.create(study=study, day=7)
    assert trouble(batches.days()) == []
    VaultDay.objects.create(study=study, day=5)
    found = only(batches.days())
    assert (found.level, found.facts["days"]) == (Level.WARNING, 2)
    assert found.facts["day"] == (timezone.now() - timedelta(days=6)).date().isoformat()
    assert found.facts["over_s"] == pytest.approx(5.5 * 86_400, abs=0.51 * 86_400)


def test_days_that_are_published_and_not_closed_keep_their_times(settings: Settings) -> None:
    settings.EMBEDDED_REDIS, settings.MOBILITY_DAY_OPEN_DAYS = False, 1
    study = make_study()  # its last day ended three to four days ago, in UTC
    VaultDay.objects.create(study=study, day=1, state=VaultDay.State.CLOSED)
    for day in (2, 7):
        VaultDay.objects.create(study=study, day=day, state=VaultDay.State.PUBLISHED)
    found = only(batches.days())
    assert (found.code, found.subject, found.level) == ("day_open", "fair", Level.NOTE)
    assert found.facts == {"why": "not_closed", "days": 2}
    assert words(found).what.startswith("Days that were published and are not closed: 2.")
    settings.MOBILITY_DAY_OPEN_DAYS = 4
    assert only(batches.days()).facts["days"] == 1  # the other has not been over for long
    VaultDay.objects.create(study=study, day=3)
    assert only(batches.days()).facts["days"] == 1  # what counts nowhere comes first
    assert "why" not in only(batches.days()).facts


@pytest.mark.parametrize(
    ("ended_ago", "is_trial", "level"),
    [(11, False, Level.NOTE), (14, False, Level.WARNING), (14, True, Level.NOTE)],
)
def test_days_of_a_study_that_is_long_over_are_to_be_closed(
    settings: Settings, *, ended_ago: int, is_trial: bool, level: Level, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "is_trial", lambda: is_trial)
    settings.MOBILITY_DAY_OPEN_DAYS = 3
    study = make_study(first_day=(timezone.now() - timedelta(days=ended_ago + 7)).date())
    VaultDay.objects.create(study=study, day=7, state=VaultDay.State.PUBLISHED)
    assert only(batches.days()).level == level
    study.closed_at = timezone.now()
    study.save()
    assert trouble(batches.days()) == []


def test_a_feed_owes_every_day_after_its_first_file() -> None:
    study = make_study()
    assert only(feeds.late()).facts == {"studies": 0}  # people upload: nobody is late
    make_batch(study, State.DONE, created_by="feed north", days_touched=[2, 3])
    make_batch(study, State.DONE, created_by="olga", days_touched=[5])
    make_batch(study, State.FAILED, created_by="feed north", days_touched=[6])
    found = only(feeds.late())
    assert (found.level, found.facts["days"]) == (Level.WARNING, 3)  # 4, 6 and 7
    assert found.facts["day"] == (timezone.now() - timedelta(days=7)).date().isoformat()
    for day in (4, 6, 7):
        VaultDay.objects.create(study=study, day=day, state=VaultDay.State.CLOSED)
    assert trouble(feeds.late()) == []


def test_each_source_owes_its_own_days() -> None:
    study = make_study()
    make_batch(study, State.DONE, created_by="watched folder", days_touched=list(range(1, 8)))
    make_batch(study, State.DONE, created_by="feed b", profile="b", days_touched=[1, 2, 3, 4, 5, 6])
    assert only(feeds.late()).facts["days"] == 1


def test_days_within_the_grace_are_not_late(settings: Settings) -> None:
    study = make_study(first_day=(timezone.now() - timedelta(days=2)).date())
    make_batch(study, State.DONE, created_by="feed north", days_touched=[1])
    settings.MOBILITY_FEED_GRACE_H = 24  # day 2 ended today
    assert trouble(feeds.late()) == []
    settings.MOBILITY_FEED_GRACE_H = 0
    assert trouble(feeds.late()) == [("feed_late", "fair", Level.WARNING)]


def test_a_valid_token_or_a_watched_folder_is_a_promise_before_the_first_file(
    settings: Settings, tmp_path: Path
) -> None:
    study = make_study()
    token = make_token(study)
    assert only(feeds.late()).facts["days"] == 7
    end(token, "revoked_at")
    assert trouble(feeds.late()) == []
    (tmp_path / "fair").mkdir()
    settings.MOBILITY_WATCH_DIR = str(tmp_path)
    assert only(feeds.late()).facts["days"] == 7


def test_a_file_that_failed_or_was_only_checked_does_not_redeem_the_promise() -> None:
    study = make_study()
    make_token(study)
    make_batch(study, State.FAILED, created_by="feed north")
    make_batch(study, State.DONE, created_by="feed north", validate_only=True, days_touched=[1])
    assert only(feeds.late()).facts["days"] == 7


@pytest.mark.parametrize("how", ["revoked_at", "expires_at"])
def test_a_week_after_its_last_file_a_feed_whose_token_has_ended_owes_nothing(how: str) -> None:
    study = make_study()
    token = make_token(study)
    make_batch(study, State.DONE, ago_h=8 * 24, created_by="feed north", days_touched=[1])
    assert only(feeds.late()).facts["days"] == 6  # silent, and its token is open
    end(token, how)
    assert only(feeds.late()).facts == {"studies": 0}
    make_batch(study, State.DONE, ago_h=6 * 24, created_by="feed north", days_touched=[2])
    assert only(feeds.late()).facts["days"] == 5  # whoever forgot to make a new token hears of it


def test_a_new_token_of_the_same_name_goes_on_with_what_the_old_one_owed() -> None:
    study = make_study()
    end(make_token(study), "revoked_at")
    make_batch(study, State.DONE, ago_h=8 * 24, created_by="feed north", days_touched=[3])
    assert trouble(feeds.late()) == []
    make_token(study, digest="1" * 64)
    assert only(feeds.late()).facts["days"] == 4  # those after its first file


def test_a_week_after_its_last_file_what_lay_in_a_folder_that_is_gone_owes_nothing(
    settings: Settings, tmp_path: Path
) -> None:
    settings.MOBILITY_WATCH_DIR = str(tmp_path)
    (tmp_path / "fair").mkdir()
    study = make_study()
    make_batch(study, State.DONE, ago_h=8 * 24, created_by="watched folder", days_touched=[1])
    assert only(feeds.late()).facts["days"] == 6
    (tmp_path / "fair").rmdir()
    assert trouble(feeds.late()) == []
    make_batch(study, State.DONE, ago_h=6 * 24, created_by="watched folder", days_touched=[2])
    assert only(feeds.late()).facts["days"] == 5  # a mount may be away


@pytest.mark.parametrize(("ago_days", "days"), [(6, 6), (8, None)])
def test_a_source_is_forgotten_when_its_feed_has_brought_others_for_a_week(
    ago_days: int, days: int | None
) -> None:
    """It was tried out once, or its profile has another name now."""
    study = make_study()
    make_token(study)
    make_batch(
        study, State.DONE, ago_h=ago_days * 24, created_by="feed north", profile="trial", days_touched=[1]
    )
    assert only(feeds.late()).facts["days"] == 6  # nothing else has come: it is silent
    make_batch(study, State.DONE, created_by="feed north", days_touched=list(range(1, 8)))
    assert only(feeds.late()).facts.get("days") == days


def make_token(study: VaultStudy, *, digest: str = "0" * 64) -> FeedToken:
    """A token that is valid for a day, of the feed `north`."""
    expires_at = timezone.now() + timedelta(days=1)
    return FeedToken.objects.create(study=study, name="north", digest=digest, expires_at=expires_at)


def end(token: FeedToken, how: str) -> None:
    setattr(token, how, timezone.now() - timedelta(minutes=1))
    token.save()


@pytest.mark.parametrize(("ago_h", "level"), [(0.5, Level.OK), (2, Level.WARNING), (25, Level.ERROR)])
def test_publications_that_the_server_does_not_take(ago_h: float, level: Level) -> None:
    made = VaultPublication.objects.create(study=make_study(), number=1, subscribers=100, delta=b"")
    VaultPublication.objects.update(created_at=timezone.now() - timedelta(hours=ago_h))
    assert only(crossing.waiting()).level == level
    made.handed_over_at = timezone.now()
    made.save(update_fields=["handed_over_at"])
    assert only(crossing.waiting()).level == Level.OK


def test_an_installation_may_decide_against_escrow(settings: Settings) -> None:
    settings.EMBEDDED_REDIS = False
    make_study("one")
    assert only(backups.escrowed()).level == Level.WARNING
    settings.MOBILITY_ESCROW = "none"
    found = only(backups.escrowed())
    assert (found.level, found.facts) == (Level.OK, {"keys": 1, "escrow": "none"})
    assert words(found).what == "Keys of open studies in no escrow: 1. MOBILITY_ESCROW is none."


def test_keys_that_are_in_no_escrow(settings: Settings) -> None:
    settings.EMBEDDED_REDIS = False
    make_study("one")
    make_study("two")
    assert only(backups.escrowed()).facts == {"keys": 2, "escrow": "expected"}
    Backup.objects.create(
        kind=Backup.Kind.ESCROW, zone="all", made_at=timezone.now(), contents={"study-one": 32}
    )
    found = only(backups.escrowed())
    assert (found.level, found.facts) == (Level.WARNING, {"keys": 1, "escrow": "expected"})
