"""Result of a batch for one shard: computed from the vault, and written by `merging`."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from django.db.models import QuerySet
from numpy.typing import NDArray

from ldp.estimation.series.counts import SlotCounts
from mobility.batches import staging
from mobility.batches.publication import event_changes, presence_noise
from mobility.batches.publication.day_transitions import DayMoves
from mobility.batches.states import show_life
from mobility.extracts.rows.events import NO_VALUE, Events, concatenate
from mobility.vault.blobs import Successor, successor
from mobility.vault.models.batch import Batch
from mobility.vault.models.subscribers import AnswerShard, DayState, OptOutShard, PresenceShard
from mobility.vault.optouts import OptOuts
from mobility.vault.state import changes
from mobility.vault.state.answered import AnsweredEvents
from mobility.vault.state.answers import KnownAnswers, differing_reports
from mobility.vault.state.daily import Part
from mobility.vault.state.days import DaySightings, day_states, merge_sightings
from mobility.vault.state.positions import shared_rows
from mobility.vault.state.presence import Presence, final_answers
from mobility.vault.state.stays import merge_whereabouts
from mobility.vault.state.subscribers import SubscriberRows, join_rows
from mobility.vault.state.visits import GroupedEvents, group_events, join_groups
from mobility.vault.studies import OpenStudy

Days = dict[int, DaySightings]
Held = TypeVar("Held", PresenceShard, AnswerShard, OptOutShard, DayState)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """State to write for a shard, and counts: duplicates, conflicting_value, subscribers, ..."""

    change: changes.Change
    successors: list[Successor]
    counts: dict[str, Any]
    slots: SlotCounts | None = None  # those that are closed


class ShardState:
    """State of one shard of a study in the vault, opened on request.

    Parameters
    ----------
    is_empty : as if it held no one: a check counts what is in its file alone
    """

    def __init__(self, study: OpenStudy, shard: int, *, is_empty: bool = False) -> None:
        self.study = study
        self.shard = shard
        self.is_empty = is_empty
        self.place = {"study": study.row, "shard": shard}
        self.presence_row = self._held(PresenceShard).first()
        self.answers_row = self._held(AnswerShard).first()
        self.opt_outs_row = self._held(OptOutShard).first()
        self._day_rows: dict[int, DayState] = {}

    @cached_property
    def presence(self) -> Presence:
        return self.study.unseal_presence(self.presence_row)

    @cached_property
    def answers(self) -> KnownAnswers:
        return self.study.unseal_answers(self.answers_row)

    @cached_property
    def answered_events(self) -> AnsweredEvents:
        return self.study.unseal_answered_events(self.answers_row)

    @cached_property
    def opt_outs(self) -> OptOuts:
        return self.study.unseal_opt_outs(self.opt_outs_row)

    @property
    def number(self) -> int:
        """Number of the publication that will carry a change."""
        return self.study.row.publication_number

    def days(self, only: set[int] | None = None) -> dict[int, DaySightings]:
        """Day state of `only`, or of all days that have any."""
        rows = self._held(DayState)
        rows = rows if only is None else rows.filter(day__in=only)
        self._day_rows = {row.day: row for row in rows}
        return {day: self.study.unseal_day(row) for day, row in self._day_rows.items()}

    def _held(self, table: type[Held]) -> QuerySet[Held]:
        rows = table._default_manager.filter(**self.place)
        return rows.none() if self.is_empty else rows

    def event_days(self, only: set[int]) -> event_changes.Days:
        """Events of some days."""
        self._day_rows = {row.day: row for row in self._held(DayState).filter(day__in=only)}
        return {day: self.study.unseal_events(row) for day, row in self._day_rows.items()}

    def next_event_days(self, days: event_changes.Days) -> list[Successor]:
        """Events of days as they will be; those that were read before."""
        return [
            successor(
                DayState,
                self._day_rows.get(day),
                seal=partial(self.study.seal_events, events, day=day, shard=self.shard),
                day=day,
                **self.place,
            )
            for day, events in days.items()
        ]

    def next_days(self, days: dict[int, DaySightings]) -> list[Successor]:
        """Day states as they will be; those that were read before."""
        return [
            successor(
                DayState,
                self._day_rows.get(day),
                seal=partial(self.study.seal_day, seen, day=day, shard=self.shard),
                day=day,
                **self.place,
            )
            for day, seen in days.items()
        ]

    def next_presence(self, change: changes.Change) -> list[Successor]:
        """Presence as it will be; nothing if it does not change."""
        if not change.places:
            return []
        seal = partial(self.study.seal_presence, change.presence, shard=self.shard)
        return [successor(PresenceShard, self.presence_row, seal=seal, **self.place)]

    def next_answered_events(self, answered: AnsweredEvents) -> list[Successor]:
        """Answered events as they will be; nothing if no new one is."""
        if len(answered) == len(self.answered_events):
            return []
        seal = partial(self.study.seal_answered_events, answered, shard=self.shard)
        return [successor(AnswerShard, self.answers_row, seal=seal, **self.place)]

    def next_answers(self, answers: KnownAnswers) -> list[Successor]:
        seal = partial(self.study.seal_answers, answers, shard=self.shard)
        return [successor(AnswerShard, self.answers_row, seal=seal, **self.place)]


def outcome_of(batch: Batch, study: OpenStudy, shard: int, moves: DayMoves) -> Outcome:
    """Compute what the batch makes of the shard; nothing is written."""
    outcome = _outcome(batch, study, shard, moves)
    if study.plan.presence is None:
        return outcome
    return replace(outcome, change=presence_noise.held_back(outcome.change, study, days=moves.crossing))


def _outcome(batch: Batch, study: OpenStudy, shard: int, moves: DayMoves) -> Outcome:
    state = ShardState(study, shard, is_empty=batch.validate_only)
    if study.plan.events:
        return _of_event_rows(batch, state, moves)
    match batch.kind:
        case Batch.Kind.SUBSCRIBERS:
            return _of_subscribers(batch, state)
        case Batch.Kind.OPT_OUT:
            return _of_opt_outs(batch, state)
        case Batch.Kind.VOID_DAY:
            return _of_undone(state, moves.undo or 0)
        case Batch.Kind.CLOSE_SLOTS:
            counted, days = _close_slots(state, moves, state.days(set(moves.slot_days)))
            change = changes.nothing(study.sanitiser)
            return Outcome(change=change, successors=state.next_days(days), counts={}, slots=counted)
        case _:
            return _of_events(batch, state, moves)


def _of_event_rows(batch: Batch, state: ShardState, moves: DayMoves) -> Outcome:
    """Outcome of a batch of a study of events; a day that is closed loses its state, and no count changes."""
    study, number, answered = state.study, state.number, list[Successor]()
    if batch.kind == Batch.Kind.VOID_DAY:
        change = event_changes.remove_events(study, state.event_days({moves.undo or 0}), number=number)
    else:
        pieces = _Pieces(batch, state.shard)
        slots = study.plan.d
        of_pieces = (
            concatenate([*map(Events.unpack, pieces.plain(piece))], slots=slots)
            for piece in range(batch.pieces)
        )
        rows = event_changes.event_rows(study, of_pieces).of_days(closed=moves.closed)
        if study.plan.max_events is not None:
            rows, known = rows.within(state.answered_events, most=study.plan.max_events)
            answered = state.next_answered_events(known)
        before = state.event_days(set(np.unique(rows.day).tolist()))
        change = event_changes.add_events(study, rows, before, number=number)
    return Outcome(
        change=change.change,
        successors=[*state.next_event_days(change.days), *answered],
        counts={
            "duplicates": change.duplicates,
            "subscribers": sum(change.by_day.values()),
            "day_subscribers": {str(day): n for day, n in change.by_day.items()},
        },
    )


def _of_events(batch: Batch, state: ShardState, moves: DayMoves) -> Outcome:
    """Visits go into the day state, and visitors of the days that are published into presence."""
    study = state.study
    # Readers leave them out; those of a list that has arrived since then are left out here.
    in_file, n_late = _grouped(batch, state)
    grouped = in_file.without(state.opt_outs.pseudonym)
    final, conflicting = _final_answers(state, grouped)
    states = day_states(grouped, final, study.daily.static_parts(grouped.values))
    later = {day: seen for day, seen in states.items() if day not in moves.closed}
    nobody = study.unseal_day(None)
    earlier = state.days(set(later) | moves.publish_all | moves.end_night | moves.slot_days)
    merged = {
        day: merge_sightings(earlier.get(day, nobody), later.get(day, nobody))
        for day in sorted({*earlier, *later})
    }
    answers = [_answers_of(merged[day]) for day in sorted(moves.published & merged.keys())]
    arrivals = list(_arriving(state, moves, merged, later))
    change = changes.add_days(
        state.presence, arrivals, number=state.number, sanitiser=study.sanitiser, answers=answers
    )
    slots, changed = _close_slots(state, moves, merged)
    kept = {day: merged[day] for day in set(later) - moves.forget} | changed
    return Outcome(
        change=change,
        slots=slots,
        successors=[*state.next_presence(change), *state.next_days(kept)],
        counts={
            "duplicates": grouped.duplicates,
            "conflicting_value": grouped.values.conflicting + conflicting,
            "subscribers": len(in_file.values.pseudonym),
            "day_subscribers": {str(day): len(seen) for day, seen in later.items()},
            "slot_closed": n_late,
        },
    )


def _of_undone(state: ShardState, day: int) -> Outcome:
    """No one was there on the day; of closed slots it stays known in how many each person was counted."""
    study = state.study
    change = changes.remove_day(state.presence, day=day, number=state.number, sanitiser=study.sanitiser)
    counter, left = study.daily.slots, dict[int, DaySightings]()
    if counter is not None:
        left = {
            of: replace(
                study.unseal_day(None),
                slots=counter.carried_into(seen.slots, day=of),
                slots_used=seen.slots_used,
            )
            for of, seen in state.days({day}).items()
        }
    successors = [*state.next_presence(change), *state.next_days(left)]
    return Outcome(change=change, successors=successors, counts={})


def _close_slots(state: ShardState, moves: DayMoves, days: Days) -> tuple[SlotCounts | None, Days]:
    """Counts of the slots that are closed, and the days whose state changes with that."""
    counter, nobody = state.study.daily.slots, state.study.unseal_day(None)
    if counter is None:
        return None, {}
    seen = {day: each.slots for day, each in days.items()}
    counts, changed = None, dict[int, DaySightings]()
    if moves.slots is not None:
        first, through = moves.slots
        known = {day: each.slots_used for day, each in days.items()}
        counts, used = counter.counts(seen, known, first=first, through=through)
        changed = {
            day: replace(days.get(day, nobody), slots_used=of_day)
            for day, of_day in used.items()
            if len(of_day) and day not in moves.forget
        }
    if moves.carry_to is not None and len(carried := counter.carried(seen, to=moves.carry_to)):
        before = changed.get(moves.carry_to, days.get(moves.carry_to, nobody))
        changed[moves.carry_to] = replace(before, slots=merge_whereabouts(before.slots, carried))
    return counts, changed


def _final_answers(state: ShardState, grouped: GroupedEvents) -> tuple[NDArray[np.uint16], int]:
    """Static reports of the batch's subscribers, and how many would differ from one that is final already."""
    sanitiser, values = state.study.sanitiser, grouped.values
    known = final_answers(state.presence, state.answers, values.pseudonym)
    classes = None
    if sanitiser.has_classes:
        # It decides how answers are sanitised: the first one counts, also of a day that is not published.
        if (known[:, -1] == NO_VALUE).any():
            for seen in state.days().values():
                known = _answers_of(seen).fill(values.pseudonym, known)
        classes = known[:, -1]
    fresh = sanitiser.static_answers(values.pseudonym, values.codes, known_classes=classes)
    conflicting = differing_reports(known, fresh, starts=sanitiser.starts("static"))
    static = np.where(known == NO_VALUE, fresh, known)
    starts = sanitiser.answer_starts("static")
    if starts and (static[:, starts] == NO_VALUE).all(axis=1).any():
        # They may have answered on a day on which they did not stay long enough to be visitors.
        for seen in state.days().values():
            static = _answers_of(seen).fill(values.pseudonym, static)
    return static, conflicting


def _answers_of(seen: DaySightings) -> KnownAnswers:
    return KnownAnswers(pseudonym=seen.pseudonym, static=seen.static)


def _arriving(state: ShardState, moves: DayMoves, merged: Days, later: Days) -> Iterator[changes.DayArrivals]:
    """Visitors of the days that are published; where others have arrived before, those the batch has seen.

    After them the same visitors, with the answers of nights that are over; no one is a visitor by a night.
    """
    nobody = state.study.unseal_day(None)
    for day in sorted(moves.published & merged.keys()):
        only = None if day in moves.publish_all else later.get(day, nobody).pseudonym
        yield _arrivals(state, day, merged[day], only=only, part="visit")
    for day in sorted(moves.nights & merged.keys()):
        only = None
        if day not in moves.end_night:
            seen = later.get(day, nobody)
            only = np.union1d(seen.pseudonym, seen.nights.pseudonym)
        yield _arrivals(state, day, merged[day], only=only, part="night")


def _arrivals(
    state: ShardState, day: int, seen: DaySightings, *, only: NDArray[np.uint64] | None, part: Part
) -> changes.DayArrivals:
    """Return the visitors of the day, with their answers on one part of it."""
    study = state.study
    rows = np.flatnonzero(seen.last - seen.first >= study.definition.visitor.min_minutes * 60)
    if only is not None:
        rows = rows[shared_rows(seen.pseudonym[rows], only)[0]]
    pseudonym = seen.pseudonym[rows]
    codes = study.daily.codes(seen, rows, day=day, part=part)
    # A subscriber extract may have come since the day state was written.
    static = state.answers.fill(pseudonym, seen.static[rows])
    grid_codes = study.daily.grid_codes(seen, rows, part=part)
    return changes.DayArrivals(
        day=day,
        pseudonym=pseudonym,
        static=static,
        daily=study.sanitiser.daily_answers(
            pseudonym,
            codes,
            day=day,
            grid_codes=grid_codes,
            classes=static[:, -1] if study.sanitiser.has_classes else None,
        ),
    )


def _of_subscribers(batch: Batch, state: ShardState) -> Outcome:
    """Answers are known from now on, and given to those who are present without one."""
    sanitiser = state.study.sanitiser
    starts = sanitiser.starts("static")
    packed = _Pieces(batch, state.shard).plain(0)
    rows = join_rows([SubscriberRows.unpack(part) for part in packed], words=sanitiser.words("static"))
    fresh, repeated, conflicting = rows.first_answers(starts=starts)
    n_in_file, fresh = len(fresh), fresh.without(state.opt_outs.pseudonym)
    final = final_answers(state.presence, state.answers, fresh.pseudonym)
    known = state.answers.merge(fresh)
    change = changes.add_answers(state.presence, known, number=state.number, sanitiser=sanitiser)
    return Outcome(
        change=change,
        successors=[*state.next_presence(change), *state.next_answers(known)],
        counts={
            "duplicates": repeated,
            "conflicting_value": differing_reports(final, fresh.static, starts=starts) + conflicting,
            "subscribers": n_in_file,
        },
    )


def _of_opt_outs(batch: Batch, state: ShardState) -> Outcome:
    """Remove people on the list from presence, day state and answers, and ignore them from now on."""
    before = state.opt_outs
    parts = [OptOuts.unpack(part).pseudonym for part in _Pieces(batch, state.shard).plain(0)]
    people = before.union(OptOuts.of(np.concatenate(parts)))
    change = changes.forget_subscribers(
        state.presence, people.pseudonym, number=state.number, sanitiser=state.study.sanitiser
    )
    days = {day: seen.without(people.pseudonym) for day, seen in state.days().items()}
    seal = partial(state.study.seal_opt_outs, people, shard=state.shard)
    return Outcome(
        change=change,
        successors=[
            successor(OptOutShard, state.opt_outs_row, seal=seal, **state.place),
            *state.next_presence(change),
            *state.next_answers(state.answers.without(people.pseudonym)),
            *state.next_days(days),
        ],
        counts={"subscribers": len(people) - len(before)},
    )


def _grouped(batch: Batch, state: ShardState) -> tuple[GroupedEvents, int]:
    """The batch's events of the shard, a piece in memory at a time; and those of slots that are closed."""
    slots, rules = state.study.sanitiser.slots("static"), state.study.daily.rules
    counter = state.study.daily.slots
    closed_until = 0 if counter is None else counter.ended_at(state.study.row.slots_closed)
    n_late = 0
    pieces, groups = _Pieces(batch, state.shard), []
    for piece in range(batch.pieces):
        if piece:
            show_life(batch, state=Batch.State.MERGING)
        events = concatenate([*map(Events.unpack, pieces.plain(piece))], slots=slots)
        groups.append(group_events(events, rules=rules))
        if closed_until:
            n_late += int(np.count_nonzero(events.second < closed_until))
    return join_groups(groups), n_late


class _Pieces:
    """Where the pieces of one shard lie in the staged objects, in the file's order."""

    def __init__(self, batch: Batch, shard: int) -> None:
        self._batch = batch
        self._key = staging.chunk_key(batch) if batch.kind in Batch.FILES else b""
        # Of all shards' places only these are kept in memory.
        self._places: list[tuple[str, list[list[int]]]] = []
        chunks = batch.chunks.values_list("staged", "segments").order_by("index")
        for staged, segments in chunks.iterator(chunk_size=16):
            for number, places in enumerate(segments):
                if str(shard) in places:
                    self._places.append((f"{staged}-{number}", places[str(shard)]))

    def plain(self, piece: int) -> Iterator[bytes]:
        """Plain bytes of one piece."""
        for name, places in self._places:
            yield from staging.read_segments(self._batch, name, [places[piece]], key=self._key)
