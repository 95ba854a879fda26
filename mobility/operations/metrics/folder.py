"""Folders in which web processes that belong together count requests: one by host and master process.

prometheus_client looks for it when it is first imported, so nothing here may import it.
"""

import os
import shutil
import socket
import time
from pathlib import Path
from typing import Final

from django.conf import settings

from mobility.base.runtime import private_folder

FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
IDLE_S: Final = 24 * 3600


def prepare() -> None:
    """Before prometheus_client is first imported: where the processes of this master count.

    A folder that FOLDER names already is used as it is.
    """
    if not settings.MOBILITY_METRICS_TOKEN or os.environ.get(FOLDER):
        return
    root = settings.PATHS.run / "metrics"
    mine = private_folder(root) / f"{socket.gethostname()}-{os.getppid()}"
    _remove_those_of_the_dead(root)
    os.environ[FOLDER] = str(private_folder(mine))


def _remove_those_of_the_dead(root: Path) -> None:
    """Remove files of dead processes of this host; of replaced containers, by their last request."""
    for folder in root.iterdir():
        host, _, pid = folder.name.rpartition("-")
        if not pid.isdigit():
            continue
        is_ours = host == socket.gethostname()
        if not Path(f"/proc/{pid}").exists() if is_ours else _idle_s(folder) > IDLE_S:
            shutil.rmtree(folder, ignore_errors=True)


def _idle_s(folder: Path) -> float:
    """Since something was last counted there; a server that lives is asked for its health all the time."""
    try:
        return time.time() - max(path.stat().st_mtime for path in (folder, *folder.iterdir()))
    except FileNotFoundError:  # another server was faster
        return 0
