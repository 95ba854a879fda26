"""Sealed state in the vault: replaced as a whole, and only by anyone who has read what it replaces."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mobility.base.errors import SupersededError
from mobility.vault.models.subscribers import AnswerShard, DayState, OptOutShard, PresenceShard

Stored = PresenceShard | DayState | AnswerShard | OptOutShard


@dataclass(frozen=True, slots=True)
class Successor:
    """A state that is ready to be written, and the row that it replaces, if there is one."""

    fresh: Stored
    before: Stored | None

    def store(self) -> None:
        """Write it.

        Raises
        ------
        SupersededError : someone else has written meanwhile
        """
        if self.before is None:
            self.fresh.save(force_insert=True)
            return
        row = type(self.before)._default_manager.filter(pk=self.before.pk, version=self.before.version)
        if not row.update(version=self.fresh.version, blob=self.fresh.blob):
            raise SupersededError(f"{self.before} was changed by another worker")


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
