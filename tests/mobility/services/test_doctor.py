"""The doctor finds what is wrong with the data of both zones: every fault is planted, and found."""

import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import numpy as np
import pytest
from django.db import transaction
from django.utils import timezone

from mobility.keystore import Keystore, keystore
from mobility.models import Applied, Batch, PresenceShard, VaultPublication, VaultStudy
from mobility.models.batch import KEY_PREFIX
from mobility.operations.doctor import sealed, storage, tallies
from mobility.operations.doctor.diagnosis import Diagnosis
from mobility.operations.findings import Level
from mobility.services import presence_crossing, staging
from mobility.services.publishing import send_missing
from mobility.storages import Pieces, staging_storage
from reports.models import Publication, Study, Tally, VisitorTally
from tests.mobility.services.conftest import Pipeline

pytestmark = [pytest.mark.database, pytest.mark.django_db(databases=["default", "vault"])]
Found = set[tuple[str, Level]]


def found(*, deep: bool) -> Found:
    """Codes and levels of what is wrong with the data."""
    looks: list[Diagnosis] = [
        *sealed.seals(deep=deep),
        *sealed.shards(),
        *sealed.keys_that_outlived(),
        *tallies.studies(),
        *tallies.publications(),
        *tallies.negative(),
        *storage.usable(),
        *storage.orphans(),
        *(tallies.recomputed() if deep else ()),
    ]
    return {(each.code, each.level) for each in looks if each.level > Level.OK}


@contextmanager
def undone() -> Iterator[None]:
    """What is changed in the databases inside this block is taken back."""
    with transaction.atomic(), transaction.atomic(using="vault"):
        yield
        transaction.set_rollback(True)
        transaction.set_rollback(True, using="vault")


def alter_presence() -> None:
    shard = PresenceShard.objects.order_by("shard").last()
    assert shard is not None
    blob = bytearray(shard.blob)
    blob[-1] ^= 1
    PresenceShard.objects.filter(pk=shard.pk).update(blob=bytes(blob))


def count_twice() -> None:
    """What happens when the main database forgets what it has: totals hold a publication twice."""
    Publication.objects.all().delete()
    send_missing(VaultStudy.objects.get())


def forget_one() -> None:
    """A total that lost one subscriber, wherever that is in a tally."""
    tally = Tally.objects.order_by("pk").last()
    assert tally is not None
    counts = np.frombuffer(tally.counts, "<i8").copy()
    counts[np.flatnonzero(counts)[-1]] -= 1
    Tally.objects.filter(pk=tally.pk).update(counts=counts.tobytes())


def below_zero() -> None:
    row = VisitorTally.objects.get()
    counts = np.frombuffer(row.counts, "<i8").copy()
    counts[-1] = -1
    VisitorTally.objects.update(counts=counts.tobytes())


def close_by_hand() -> None:
    VaultStudy.objects.update(closed_at=timezone.now())
    Study.objects.update(closed_at=timezone.now(), state=Study.State.CLOSED)


E, W = Level.ERROR, Level.WARNING
FAULTS: Final[dict[str, tuple[Callable[[], object], Found]]] = {
    "a sealed part was altered": (alter_presence, {("seal_broken", E), ("totals_differ", W)}),
    "a shard was forgotten": (lambda: Applied.objects.first().delete(), {("shard_unfinished", E)}),  # type: ignore[union-attr]
    "a shard of no study": (
        lambda: VaultStudy.objects.update(n_shards=1),
        {("shard_unfinished", E)},
    ),
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
    "below zero": (below_zero, {("totals_negative", E), ("totals_differ", E)}),
    "a key outlived its study": (close_by_hand, {("key_outlived", E)}),
    "batch at work": (
        lambda: VaultStudy.objects.update(active_batch=Batch.objects.first()),
        {("totals_differ", Level.NOTE)},
    ),
}


def test_faults_of_the_data_are_found(pipeline: Pipeline, extract: list[Path]) -> None:
    pipeline.upload(extract[0])
    pipeline.upload(extract[1], more_to_come=True)
    assert found(deep=True) == set()
    for name, (plant, expected) in FAULTS.items():
        with undone():
            plant()
            assert found(deep=True) == expected, name
    assert found(deep=True) == set()
    assert found(deep=False) == set()


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let something happen once, right before or right after a function that a check calls."""

    def patch(place: Any, name: str, happens: Callable[[], object], *, after: bool = False) -> None:
        real, left = getattr(place, name), [happens]

        def call(*given: Any, **named: Any) -> Any:
            if not after and left:
                left.pop()()
            answer = real(*given, **named)
            if after and left:
                left.pop()()
            return answer

        monkeypatch.setattr(place, name, call)

    return patch


def cross() -> None:
    sent = VaultPublication.objects.create(
        study=VaultStudy.objects.get(), number=99, subscribers=0, voided_days=0, delta=b""
    )
    Publication.objects.create(study=Study.objects.get(), publication_id=sent.pk)


def end_a_batch() -> None:
    batch = Batch.objects.create(study=VaultStudy.objects.get(), state=Batch.State.DONE, shards=[0])
    Applied.objects.create(batch=batch, shard=0, counts={})


def begin_a_batch() -> None:
    batch = Batch.objects.create(study=VaultStudy.objects.get(), state=Batch.State.READING)
    keystore().create(batch.key_id)


def publish_more() -> None:
    forget_one()
    VaultStudy.objects.update(publication_number=99)


def test_what_happens_while_the_doctor_looks_is_no_fault(
    pipeline: Pipeline,
    extract: list[Path],
    meanwhile: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pipeline.upload(extract[0])
    meanwhile(tallies, "known_publications", cross)
    assert {each.level for each in tallies.publications()} == {Level.OK}

    def scanned(**given: Any) -> SimpleNamespace:
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


def test_totals_that_change_while_they_are_compared(
    pipeline: Pipeline, extract: list[Path], meanwhile: Callable[..., None]
) -> None:
    pipeline.upload(extract[0])
    with undone():
        meanwhile(tallies, "exact_tallies", publish_more)
        assert [each.level for each in tallies.recomputed()] == [Level.NOTE]
        assert [each.level for each in tallies.recomputed()] == [E]  # nothing happens any more
    begun = Batch.objects.create(study=VaultStudy.objects.get())
    with undone():
        forget_one()
        meanwhile(
            presence_crossing, "is_noisy", lambda: VaultStudy.objects.update(active_batch=begun)
        )  # after the study was opened
        assert [each.level for each in tallies.recomputed()] == [Level.NOTE]


def test_what_waits_to_be_published_is_no_difference(pipeline: Pipeline, extract: list[Path]) -> None:
    pipeline.upload(extract[0])
    few = extract[0].with_name("few.csv")
    header, *rows = extract[1].read_text().splitlines()
    people = set(list(dict.fromkeys(row.split(",")[0] for row in rows))[:20])
    few.write_text("\n".join([header, *(row for row in rows if row.split(",")[0] in people)]))
    pipeline.upload(few)
    assert pipeline.study.batches.filter(outbox__isnull=False).exists()
    assert found(deep=True) == set()
    with undone():
        Publication.objects.all().delete()
        VisitorTally.objects.update(counts=bytes(len(VisitorTally.objects.get().counts)))
        for tally in Tally.objects.all():
            Tally.objects.filter(pk=tally.pk).update(
                counts=bytes(len(tally.counts)), n_reports=bytes(len(tally.n_reports))
            )
        # The main database was restored from before the publication: it is on its way, and nothing differs.
        assert found(deep=True) == {("publication_missing", W)}


def test_another_keystore(pipeline: Pipeline, extract: list[Path]) -> None:
    pipeline.upload(extract[0])
    key = keystore().folder / f"{pipeline.study.key_id}.key"
    right = key.read_bytes()
    key.write_bytes(bytes(32))
    assert ("seal_broken", E) in found(deep=False)
    key.write_bytes(right)
    assert found(deep=False) == set()


def test_keys_and_uploads_that_nobody_needs(pipeline: Pipeline) -> None:
    batch = uuid.uuid4()
    keystore().create(f"{KEY_PREFIX}{batch}")
    staging_storage().save(f"{batch}/left", Pieces([b"sealed"]))
    assert found(deep=False) == {("key_outlived", W), ("storage_orphans", W)}


def test_storage_that_cannot_be_used(pipeline: Pipeline, settings: object, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    settings.MOBILITY_STAGING_DIR = file  # type: ignore[attr-defined]
    assert [each.code for each in storage.usable()] == ["storage_unusable"]


def test_a_bucket_can_be_used(staging_bucket: object) -> None:
    assert [(each.code, each.level) for each in storage.usable()] == [("storage_unusable", Level.OK)]
    staging_bucket.objects.delete()  # type: ignore[attr-defined]
    staging_bucket.delete()  # type: ignore[attr-defined]
    assert [each.level for each in storage.usable()] == [E]
    staging_bucket.create()  # type: ignore[attr-defined]
