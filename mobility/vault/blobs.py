"""Sealed state in the vault: replaced as a whole, and only by anyone who has read what it replaces."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from mobility.base.errors import SupersededError
from mobility.vault.models.subscribers import AnswerShard, DayState, OptOutShard, PresenceShard

Stored = PresenceShard | DayState | AnswerShard | OptOutShard
ROWS_AT_ONCE = 8  # a driver may copy all of them


@dataclass(frozen=True, slots=True)
class Successor:
    """A state that is ready to be written, and the row that it replaces, if there is one."""

    fresh: Stored
    before: Stored | None


def store(successors: Iterable[Successor]) -> None:
    """Write states, new ones several in a statement.

    Raises
    ------
    SupersededError : someone else has written one meanwhile
    """
    fresh: dict[type[Stored], list[Any]] = {}
    for each in successors:
        if each.before is None:
            fresh.setdefault(type(each.fresh), []).append(each.fresh)
            continue
        row = type(each.before)._default_manager.filter(pk=each.before.pk, version=each.before.version)
        if not row.update(version=each.fresh.version, blob=each.fresh.blob):
            raise SupersededError(f"{each.before} was changed by another worker")
    for table, rows in fresh.items():
        table._default_manager.bulk_create(rows, batch_size=ROWS_AT_ONCE)


def successor(
    model: type[Stored], before: Stored | None, *, seal: Callable[[int], bytes], **place: Any
) -> Successor:
    """Seal the next version of a state.

    Parameters
    ----------
    seal : gives the blob of a version
    place : study, shard and, of day state, day
    """
    version = 1 if before is None else before.version + 1
    return Successor(model(version=version, blob=seal(version), **place), before)
