"""The doctor finds what is wrong with the data of both zones: every fault is planted, and found."""

import uuid
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from django.db import transaction
from django.utils import timezone

from mobility.batches import queries, staging
from mobility.batches.publication.publishing import send_missing
from mobility.batches.storages import Pieces, staging_storage
from mobility.models import PresenceShard, VaultPublication, VaultStudy
from mobility.operations.doctor import sealed, storage, tallies
from mobility.operations.findings import Level
from mobility.vault.keystore import Keystore, keystore
from mobility.vault.models.batch import KEY_PREFIX, Applied, Batch
from reports.models import Publication, Study, Tally, VisitorTally
from tests.mobility.pipeline import lose_totals, only, some_people

pytestmark = pytest.mark.django_db(databases=["default", "vault"])


def found(*, deep):
    looks = [*sealed.seals(deep=deep), *sealed.shards(), *sealed.keys_that_outlived()]
    looks += [*tallies.studies(), *tallies.publications(), *tallies.negative()]
    looks += [*storage.usable(), *storage.orphans(), *(tallies.recomputed() if deep else ())]
    return {(each.code, each.level) for each in looks if each.level > Level.OK}


@contextmanager
def undone():
    with transaction.atomic(), transaction.atomic(using="vault"):
        yield
        transaction.set_rollback(True)
        transaction.set_rollback(True, using="vault")


def alter_presence() -> None:
    shard = PresenceShard.objects.latest("shard")
    blob = bytes(shard.blob)
    PresenceShard.objects.filter(pk=shard.pk).update(blob=bytes([*blob[:-1], blob[-1] ^ 1]))


def count_twice() -> None:
    Publication.objects.all().delete()
    send_missing(VaultStudy.objects.get())


def change_one(model, column, *, by) -> None:
    row = model.objects.latest("pk")
    numbers = np.frombuffer(getattr(row, column), "<i8").copy()
    numbers[np.flatnonzero(numbers)[-1]] += by
    model.objects.filter(pk=row.pk).update(**{column: numbers.tobytes()})


def forget_one() -> None:
    change_one(Tally, "counts", by=-1)


def begin_work() -> None:
    VaultStudy.objects.update(active_batch=Batch.objects.latest("created_at"))


def close_by_hand() -> None:
    VaultStudy.objects.update(closed_at=timezone.now())
    Study.objects.update(closed_at=timezone.now(), state=Study.State.CLOSED)


E, W = Level.ERROR, Level.WARNING
FAULTS = {
    "a sealed part was altered": (alter_presence, {("seal_broken", E), ("totals_differ", W)}),
    "a shard was forgotten": (lambda: Applied.objects.first().delete(), {("shard_unfinished", E)}),
    "a shard of no study": (lambda: VaultStudy.objects.update(n_shards=1), {("shard_unfinished", E)}),
    "the analysts' study is gone": (
        lambda: Study.objects.update(slug="another"),
        {("study_missing", E), ("publication_missing", W), ("totals_differ", W)},
    ),
    "another plan": (lambda: VaultStudy.objects.update(plan_hash="0" * 64), {("plan_differs", E)}),
    "the vault is older": (
        lambda: Publication.objects.create(study=Study.objects.get(), publication_id=uuid.uuid4()),
        {("publication_unknown", E)},
    ),
    "counted twice": (count_twice, {("totals_differ", E)}),
    "one is missing": (forget_one, {("totals_differ", E)}),
    "a stay is missing": (lambda: change_one(VisitorTally, "stays", by=-1), {("totals_differ", E)}),
    "below zero": (
        lambda: change_one(VisitorTally, "counts", by=-(10**6)),
        {("totals_negative", E), ("totals_differ", E)},
    ),
    "a key outlived its study": (close_by_hand, {("key_outlived", E)}),
    "batch at work": (begin_work, {("totals_differ", Level.NOTE)}),
}


@pytest.mark.database
def test_faults_of_the_data_are_found(make_pipeline, definition, extract):
    pipeline = make_pipeline(plan=replace(definition.plan, tallies=("visits", "runs")))
    pipeline.upload(extract[0])
    pipeline.upload(extract[1], more_to_come=True)
    assert found(deep=True) == set()
    for name, (plant, expected) in FAULTS.items():
        with undone():
            plant()
            assert found(deep=True) == expected, name
    assert found(deep=True) == found(deep=False) == set()


@pytest.fixture
def meanwhile(monkeypatch):
    """Let something happen once, right before or right after a function that a check calls."""

    def patch(place, name, happens, *, after=False):
        real, left = getattr(place, name), [happens]

        def call(*given, **named):
            if not after and left:
                left.pop()()
            answer = real(*given, **named)
            if after and left:
                left.pop()()
            return answer

        monkeypatch.setattr(place, name, call)

    return patch


def cross() -> None:
    sent = {"number": 99, "subscribers": 0, "voided_days": 0, "delta": b""}
    sent = VaultPublication.objects.create(study=VaultStudy.objects.get(), **sent)
    Publication.objects.create(study=Study.objects.get(), publication_id=sent.pk)


def end_a_batch() -> None:
    ended = {"state": Batch.State.DONE, "shards": [0], "finished_at": timezone.now()}
    batch = Batch.objects.create(study=VaultStudy.objects.get(), **ended)
    Applied.objects.create(batch=batch, shard=0, counts={})


def begin_a_batch() -> None:
    batch = Batch.objects.create(study=VaultStudy.objects.get(), state=Batch.State.READING)
    keystore().create(batch.key_id)


def publish_more() -> None:
    forget_one()
    VaultStudy.objects.update(publication_number=99)


def test_what_happens_while_the_doctor_looks_is_no_fault(pipeline, extract, meanwhile, monkeypatch):
    pipeline.upload(extract[0])
    with undone():  # totals that change while they are compared
        meanwhile(tallies, "exact_tallies", publish_more)
        assert [each.level for each in tallies.recomputed()] == [Level.NOTE]
        assert [each.level for each in tallies.recomputed()] == [E]  # no further change
    with undone():
        forget_one()
        meanwhile(queries, "is_noisy", begin_work)  # after the study was opened
        assert [each.level for each in tallies.recomputed()] == [Level.NOTE]
    meanwhile(tallies, "known_publications", cross)
    assert {each.level for each in tallies.publications()} == {Level.OK}

    def scanned(**given):
        rows = list(Applied.objects.filter(**given).values_list("batch", "shard"))
        end_a_batch()
        return SimpleNamespace(values_list=lambda *_: rows)

    with monkeypatch.context() as patch:
        patch.setattr(sealed, "Applied", SimpleNamespace(objects=SimpleNamespace(filter=scanned)))
        assert {each.level for each in sealed.shards()} == {Level.OK}
    meanwhile(Keystore, "names", begin_a_batch)
    assert {each.level for each in sealed.keys_that_outlived()} == {Level.OK}
    ended = uuid.uuid4()
    staging_storage().save(f"{ended}/left", Pieces([b"sealed"]))
    meanwhile(staging, "staged_batches", lambda: staging.discard(ended), after=True)
    assert {each.level for each in storage.orphans()} == {Level.OK}


def test_what_waits_to_be_published_is_no_difference(pipeline, extract, tmp_path):
    pipeline.upload(extract[0])
    people = some_people(extract[1], tmp_path).read_text().split("\n")
    pipeline.upload(only(extract[1], people.__contains__, tmp_path))
    assert pipeline.study.batches.filter(outbox__isnull=False).exists()
    assert found(deep=True) == set()
    with undone():
        lose_totals()
        # The main database was restored from before the publication: it is on its way, and nothing differs.
        assert found(deep=True) == {("publication_missing", W)}


def test_another_keystore_and_keys_and_uploads_that_nobody_needs(pipeline, extract):
    pipeline.upload(extract[0])
    key = keystore().folder / f"{pipeline.study.key_id}.key"
    right = key.read_bytes()
    key.write_bytes(bytes(32))
    assert ("seal_broken", E) in found(deep=False)
    key.write_bytes(right)
    assert found(deep=False) == set()
    batch = uuid.uuid4()
    keystore().create(f"{KEY_PREFIX}{batch}")
    staging_storage().save(f"{batch}/left", Pieces([b"sealed"]))
    assert found(deep=False) == {("key_outlived", W), ("storage_orphans", W)}


def test_a_folder_or_a_bucket_that_cannot_be_used_is_found(pipeline, settings, tmp_path, request):
    settings.MOBILITY_STAGING_DIR = tmp_path / "file"
    settings.MOBILITY_STAGING_DIR.write_text("")
    assert [each.code for each in storage.usable()] == ["storage_unusable"]
    bucket = request.getfixturevalue("staging_bucket")
    assert [(each.code, each.level) for each in storage.usable()] == [("storage_unusable", Level.OK)]
    bucket.delete()
    assert [each.level for each in storage.usable()] == [E]
    bucket.create()
