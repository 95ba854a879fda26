"""Where a run keeps its files, and the secrets of the embedded default."""

import errno
import hashlib
import os
import resource
import secrets
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

UNIX_SOCKET_PATH_MAX = 100  # the kernel's limit is 108 bytes with the final NUL


class RuntimePaths:
    """Everything that a run writes, below one folder (`MOBILITY_DATA_DIR`).

    Attributes
    ----------
    run : sockets and process ids; elsewhere when the folder's name is too long for a Unix socket
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.main_database = root / "main.sqlite3"
        self.vault_database = root / "vault.sqlite3"
        self.keystore = root / "keystore"
        self.staging = root / "staging"
        self.logs = root / "logs"
        self.static_root = root / "static"
        self.secret_key = root / "secret_key"
        self.sender_key = root / "sender_key.pem"
        self.backups = root / "backups"
        self.ledger_key = root / "ledger_key.pem"
        self.run = root / "run"
        if len(str(self.run / "redis.sock")) > UNIX_SOCKET_PATH_MAX:
            name = hashlib.sha256(str(root).encode()).hexdigest()[:16]
            self.run = Path(tempfile.gettempdir()) / f"mobility-{os.getuid()}-{name}"
        self.redis_socket = self.run / "redis.sock"
        self.redis_url = f"redis+socket://{self.redis_socket}"


def dump_no_core() -> None:
    """Keep raw rows and keys, which this process holds in memory, off the disk when it crashes."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def give_way(by: int) -> None:
    """Lower the priority of this process by a number of levels of niceness.

    Where the kernel shares the processor between sessions first, and then between their processes, niceness
    alone says nothing to other sessions: the one that our parent leads, as a service does, steps back whole.
    """
    os.nice(by)
    if os.getsid(0) == os.getppid():
        with suppress(OSError):  # a kernel without autogroups
            Path("/proc/self/autogroup").write_text(str(by))


def step_back(by: int = 10) -> None:
    """Let this thread alone give way: what it computes must not slow the pages of the same process."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), by)


def private_folder(path: Path) -> Path:
    """Create `path` for this user alone; one that exists keeps its mode, which the system checks judge.

    Raises
    ------
    FileNotFoundError : it was there, and is gone: a storage was unmounted meanwhile
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except FileExistsError:
        if path.exists():
            raise
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path)) from None
    return path


def write_private(path: Path, text: str) -> None:
    """Write a file of mode 0600, complete or not at all."""
    private_folder(path.parent)
    fresh = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)


def sync(path: Path) -> None:
    """Wait until a file or folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def stored_secret(path: Path) -> str:
    """The secret kept in `path`, made at first use."""
    if not path.exists():
        write_private(path, secrets.token_urlsafe(48))
    return path.read_text()
