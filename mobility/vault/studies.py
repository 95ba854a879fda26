"""A study as the pipeline works with it: the approved definition and plan, and the keys that open it."""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any, Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from ldp.estimation.series.counts import SlotCounts
from ldp.estimation.tallies import Delta
from ldp.kernels.entropy import KeyedPrf
from ldp.kernels.streams import derive_subkey
from mobility.base.errors import SealBrokenError
from mobility.extracts.profiles.definition import Profile
from mobility.extracts.rows.rows import RowCoder
from mobility.vault.blobs import Stored
from mobility.vault.models.outbox import OutboxDelta, OutboxSlots
from mobility.vault.models.subscribers import (
    AnswerShard,
    DayState,
    OptOutShard,
    PresenceShard,
    VaultDay,
    VaultStudy,
)
from mobility.vault.optouts import OptOuts
from mobility.vault.sanitise import StudySanitiser
from mobility.vault.sealing import seal, unseal
from mobility.vault.state.answered import AnsweredEvents
from mobility.vault.state.answers import KnownAnswers
from mobility.vault.state.daily import DailyValues
from mobility.vault.state.days import DaySightings
from mobility.vault.state.presence import Presence
from mobility.vault.state.subscribers import SubscriberCoder
from mobility.vault.unlocking import UnlockedStudy, read_key


class Packable(Protocol):
    """State that has a form as bytes."""

    def pack(self) -> bytes: ...


class OpenStudy(UnlockedStudy):
    """An unlocked study, with what reads, changes and seals the state of its subscribers."""

    @cached_property
    def prf(self) -> KeyedPrf:
        return KeyedPrf(derive_subkey(self.master_key, purpose="sanitise"))

    @cached_property
    def sanitiser(self) -> StudySanitiser:
        return StudySanitiser(self.plan, prf=self.prf)

    @cached_property
    def event_prf(self) -> KeyedPrf:
        """Keys of events."""
        return KeyedPrf(derive_subkey(self.master_key, purpose="events"))

    @cached_property
    def day_sanitiser(self) -> StudySanitiser:
        """Sanitiser of the events of one day, as if the study had no other."""
        return StudySanitiser(replace(self.plan, days=1, events=False, max_events=None), prf=self.prf)

    @cached_property
    def daily(self) -> DailyValues:
        return DailyValues(self.definition, self.sanitiser)

    @cached_property
    def _presence_key(self) -> bytes:
        return derive_subkey(self.master_key, purpose="presence", length=32)

    @cached_property
    def pseudonym_key(self) -> bytes:
        return derive_subkey(self.master_key, purpose="pseudonym")

    def row_coder(self, profile: Profile, *, is_blind: bool = False) -> RowCoder:
        """Read files of events; a blind reader does not know the opt-outs, which merging checks."""
        closed = VaultDay.objects.filter(study=self.row, state=VaultDay.State.CLOSED)
        return RowCoder(
            self.definition,
            self.plan,
            profile=profile,
            pseudonym_key=self.pseudonym_key,
            prf=self.prf,
            event_prf=self.event_prf if self.plan.events else None,
            closed_days=frozenset(closed.values_list("day", flat=True)),
            opted_out=self.opted_out(is_blind=is_blind),
        )

    def subscriber_coder(self, profile: Profile, *, is_blind: bool = False) -> SubscriberCoder:
        """Return the coder for files of attributes; like `row_coder`."""
        return SubscriberCoder(
            profile,
            sanitiser=self.sanitiser,
            pseudonym_key=self.pseudonym_key,
            opted_out=self.opted_out(is_blind=is_blind),
        )

    def opted_out(self, *, is_blind: bool = False) -> NDArray[np.uint64]:
        """Pseudonyms that must not be counted, sorted: shards are ranges of them. None if `is_blind`."""
        known = OptOutShard.objects.filter(study=self.row).order_by("shard")
        rows = [] if is_blind else known
        parts = [self.unseal_opt_outs(row).pseudonym for row in rows]
        return np.concatenate([np.empty(0, np.uint64), *parts])

    def seal_presence(self, presence: Presence, version: int, *, shard: int) -> bytes:
        return self._sealed(presence, "presence", shard, version)

    def unseal_presence(self, row: PresenceShard | None) -> Presence:
        if row is None:
            return Presence.empty(self.sanitiser)
        return Presence.unpack(self._opened(row, "presence"), self.sanitiser)

    def seal_day(self, sightings: DaySightings, version: int, *, day: int, shard: int) -> bytes:
        return self._sealed(sightings, f"day-{day}", shard, version)

    def unseal_day(self, row: DayState | None) -> DaySightings:
        widths = {"words": self.sanitiser.words("static"), "parts": int(self.daily.has_static_parts)}
        if row is None:
            return DaySightings.empty(**widths)
        return DaySightings.unpack(self._opened(row, f"day-{row.day}"), **widths)

    def seal_events(self, events: Presence, version: int, *, day: int, shard: int) -> bytes:
        return self._sealed(events, f"events-{day}", shard, version)

    def unseal_events(self, row: DayState) -> Presence:
        """Events of a day; `mobility.batches.publication.event_changes` explains their state."""
        return Presence.unpack(self._opened(row, f"events-{row.day}"), self.day_sanitiser)

    @property
    def kept_units(self) -> tuple[type[PresenceShard] | type[DayState], Callable[[Any], Presence]]:
        """Table with the state of subscribers, or of events, and what opens its rows."""
        return (DayState, self.unseal_events) if self.plan.events else (PresenceShard, self.unseal_presence)

    def seal_answers(self, answers: KnownAnswers, version: int, *, shard: int) -> bytes:
        return self._sealed(answers, "answers", shard, version)

    def unseal_answers(self, row: AnswerShard | None) -> KnownAnswers:
        words = self.sanitiser.words("static")
        if row is None:
            return KnownAnswers.empty(words=words)
        return KnownAnswers.unpack(self._opened(row, "answers"), words=words)

    def seal_answered_events(self, answered: AnsweredEvents, version: int, *, shard: int) -> bytes:
        return self._sealed(answered, "answered-events", shard, version)

    def unseal_answered_events(self, row: AnswerShard | None) -> AnsweredEvents:
        return (
            AnsweredEvents.empty()
            if row is None
            else AnsweredEvents.unpack(self._opened(row, "answered-events"))
        )

    def seal_opt_outs(self, people: OptOuts, version: int, *, shard: int) -> bytes:
        return self._sealed(people, "opt-outs", shard, version)

    def unseal_opt_outs(self, row: OptOutShard | None) -> OptOuts:
        return OptOuts.empty() if row is None else OptOuts.unpack(self._opened(row, "opt-outs"))

    def seal_delta(self, delta: Delta, *, batch: UUID, shard: int) -> bytes:
        """Seal what waits to be merged: of a few subscribers it would tell too much."""
        return self._sealed(delta, f"outbox-{batch}", shard, 0)

    def unseal_delta(self, row: OutboxDelta) -> Delta:
        context = self._context(f"outbox-{row.batch_id}", row.shard, 0)
        return Delta.unpack(unseal(bytes(row.delta), key=self._presence_key, context=context))

    def seal_slots(self, counts: SlotCounts, *, batch: UUID, shard: int) -> bytes:
        return self._sealed(counts, f"slots-{batch}", shard, 0)

    def unseal_slots(self, row: OutboxSlots) -> SlotCounts:
        counter = self.daily.slots
        if counter is None:
            raise SealBrokenError(f"study {self.row.slug!r} has no slots, and counts of some")
        context = self._context(f"slots-{row.batch_id}", row.shard, 0)
        packed = unseal(bytes(row.counts), key=self._presence_key, context=context)
        return SlotCounts.unpack(packed, slots=len(counter.clock), zones=counter.n_zones)

    def _sealed(self, state: Packable, what: str, shard: int, version: int) -> bytes:
        return seal(state.pack(), key=self._presence_key, context=self._context(what, shard, version))

    def _opened(self, row: Stored, what: str) -> bytes:
        context = self._context(what, row.shard, row.version)
        return unseal(bytes(row.blob), key=self._presence_key, context=context)

    def _context(self, what: str, shard: int, version: int) -> str:
        # The version is part of it: an old blob put back into a newer row does not open.
        return f"{self.row.slug}/{what}/{shard}/{version}"


def open_study(row: VaultStudy) -> OpenStudy:
    """Read the study's key; Raises: as `mobility.vault.unlocking.read_key`."""
    return OpenStudy(row=row, master_key=read_key(row))
