"""A backup as a folder: its parts, and a manifest that is written last and says what each part must be."""

import hashlib
import json
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from mobility.base.errors import OperationsError
from mobility.base.runtime import private_folder, sync

FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
PREFIX: Final = "backup-"
PART: Final = ".part"
STALE: Final = timedelta(days=1)
SAFE: Final = 7
READ_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The dump of one database.

    alias : default or vault
    vendor : sqlite or postgresql
    rows : {table: rows} at the moment of the dump
    migrations : [app, name] of those that were applied
    """

    alias: str
    vendor: str
    file: str
    bytes: int
    sha256: str
    rows: Mapping[str, int]
    migrations: list[list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Contents of a backup. `keys`: ids of the keys that open studies in it need; they are not in it.

    installation : code of the one that made it; empty: made before there were such codes
    ledger_head : the signed head of the ledger at that moment, for `verify_ledger --head`; None: it was empty
    """

    software: Mapping[str, str]
    zone: str
    made_at: datetime
    parts: list[Part]
    keys: list[str]
    ledger_head: Mapping[str, Any] | None
    installation: str = ""

    @property
    def size(self) -> int:
        return sum(part.bytes for part in self.parts)

    def to_bytes(self) -> bytes:
        told = {"format": FORMAT, **asdict(self), "made_at": self.made_at.isoformat()}
        return (json.dumps(told, ensure_ascii=False, indent=1, sort_keys=True) + "\n").encode()

    @classmethod
    def from_bytes(cls, text: bytes) -> "Manifest":
        """Read a manifest.

        Raises
        ------
        OperationsError : it is none, or of a later version
        """
        try:
            told = json.loads(text)
            if told.pop("format") != FORMAT:
                raise OperationsError(
                    f"the backup has another format than {FORMAT}: use a newer version of the software"
                )
            parts = [Part(**part) for part in told.pop("parts")]
            made_at = datetime.fromisoformat(told.pop("made_at"))
            return cls(parts=parts, made_at=made_at, **told)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise OperationsError(f"the manifest cannot be read ({type(error).__name__})") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """Owner of backups: one zone of one installation, among others in the same folder.

    code : of the installation
    noted : digests of backups that it made, some before there were codes
    """

    zone: str
    code: str
    noted: Collection[str] = ()

    @property
    def suffix(self) -> str:
        """Return the ending of names of its folders: two installations may make one in the same second."""
        return f"-{self.code[:8]}"

    def made(self, folder: Path, manifest: Manifest) -> bool:
        if manifest.zone != self.zone:
            return False
        if manifest.installation:
            return manifest.installation == self.code
        return digest_of(folder) in self.noted


@contextmanager
def new_folder(parent: Path, name: str) -> Iterator[Path]:
    """A folder that appears under its name when all of it is on the disk, or not at all.

    Raises
    ------
    OperationsError : there is one of that name
    """
    private_folder(parent)
    fresh, final = parent / f"{name}{PART}", parent / name
    if final.exists() or fresh.exists():
        raise OperationsError(f"{name} already exists: try again in a second")
    fresh.mkdir(mode=0o700)
    try:
        yield fresh
        for path in fresh.iterdir():
            path.chmod(0o600)
            sync(path)
        sync(fresh)
        fresh.rename(final)
        sync(parent)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise


def stamp(at: datetime) -> str:
    """A time as names of folders have it, in UTC."""
    return f"{at.astimezone(UTC):%Y%m%dT%H%M%SZ}"


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of(folder: Path) -> str:
    """SHA-256 of the manifest: the name of a backup in the ledger."""
    return sha256_of(folder / MANIFEST)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a backup.

    Raises
    ------
    OperationsError : there is none, or it cannot be read
    """
    try:
        text = (folder / MANIFEST).read_bytes()
    except OSError as error:
        raise OperationsError(
            f"no backup in this folder ({error.strerror}: {MANIFEST}): name the folder that the "
            "backup command printed"
        ) from None
    return Manifest.from_bytes(text)


def check_parts(folder: Path, manifest: Manifest) -> None:
    """Raise OperationsError unless every part is there, byte for byte."""
    for part in manifest.parts:
        path = folder / part.file
        if path.parent != folder or not path.is_file():
            raise OperationsError(f"{part.file} is missing, so the backup is incomplete")
        if path.stat().st_size != part.bytes or sha256_of(path) != part.sha256:
            raise OperationsError(
                f"{part.file} was changed or truncated: its SHA-256 does not match the manifest"
            )


def prune(parent: Path, *, owner: Owner, keep: int | None, keep_days: int, now: datetime) -> list[str]:
    """Remove old backups of this owner, never the one of now; names of those that went.

    Parameters
    ----------
    keep : number that stay; None: only their age counts
    keep_days : older ones go, but for the newest SAFE, as a clock that is wrong makes all others old; 0: age
        does not count
    now : when the backup was made that has just been made
    """
    for left in parent.glob(f"{PREFIX}*{owner.suffix}{PART}"):  # of a backup that died
        if datetime.fromtimestamp(left.stat().st_mtime, UTC) < now - STALE:
            shutil.rmtree(left)
    # Where clocks differed, others may be of later: that of now comes first all the same.
    made = sorted(_backups(parent, owner), key=lambda each: (each[0] == now, *each), reverse=True)
    gone = []
    for position, (made_at, folder) in enumerate(made):
        is_old = position >= SAFE and keep_days > 0 and made_at < now - timedelta(days=keep_days)
        is_beyond = keep is not None and position >= keep
        if position > 0 and (is_old or is_beyond):
            shutil.rmtree(folder)
            gone.append(folder.name)
    return gone


def _backups(parent: Path, owner: Owner) -> Iterator[tuple[datetime, Path]]:
    for folder in parent.glob(f"{PREFIX}*"):
        if folder.suffix == PART or not folder.is_dir():
            continue
        with suppress(OperationsError):  # no backup: left alone
            manifest = read_manifest(folder)
            if owner.made(folder, manifest):
                yield manifest.made_at, folder
