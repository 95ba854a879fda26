"""A study with a readable key: enough to accept files, without the tools that process its subscribers."""

from dataclasses import dataclass
from functools import cached_property

from ldp import PlanSpec
from ldp.kernels.streams import derive_subkey
from mobility.base.errors import KeyAwayError, KeyDestroyedError, KeyMissingError, StudyStoppedError
from mobility.vault import consistency
from mobility.vault.keystore import keystore
from mobility.vault.models.subscribers import VaultStudy
from mobility.vault.queries import closed_error
from reports.studies.studyfile import StudyDefinition


@dataclass(frozen=True)
class UnlockedStudy:
    """A study with its key read from the keystore."""

    row: VaultStudy
    master_key: bytes

    @cached_property
    def definition(self) -> StudyDefinition:
        return StudyDefinition.from_json(self.row.definition)

    @cached_property
    def plan(self) -> PlanSpec:
        return PlanSpec.from_json(self.row.plan)

    @cached_property
    def content_key(self) -> bytes:
        """Files are recognised by a keyed hash: without the key it tells nothing of them."""
        return derive_subkey(self.master_key, purpose="content", length=32)

    @cached_property
    def frame_key(self) -> bytes:
        """Key of the tags of frames, which only `content_key` turns into a hash that is stored."""
        return derive_subkey(self.master_key, purpose="content/frame", length=32)


def unlock(row: VaultStudy) -> UnlockedStudy:
    """Read the study's key; Raises: as `read_key`."""
    return UnlockedStudy(row=row, master_key=read_key(row))


def read_key(row: VaultStudy) -> bytes:
    """Key of a study.

    Raises
    ------
    StudyClosedError : the study was closed
    StudyStoppedError : after a restore it does not fit what analysts have
    KeyDestroyedError : its key was destroyed
    KeyAwayError : no keystore is mounted, or another one, or the key was lost or damaged
    """
    if row.closed_at is None:
        if row.stopped:
            raise StudyStoppedError(consistency.why(row.stopped))
        try:
            return keystore().read(row.key_id)
        except KeyMissingError as error:
            row.refresh_from_db(fields=["closed_at"])  # it may have been closed since the row was read
            if row.closed_at is None:
                if isinstance(error, KeyDestroyedError):
                    raise
                raise KeyAwayError(error) from None
    raise closed_error(row.closed_at)
