"""Remove what runs have written, as if nothing had ever run: databases, keys, demo, logs."""

import argparse
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mobility.settings")

# By name: a data folder that someone chose may hold other things.
WRITTEN = (
    "main.sqlite3*", "vault.sqlite3*", "secret_key", "keystore", "staging", "logs", "static", "static.stamp",
    "run", "demo", "demo-accounts.json", "ledger_key.pem", "sender_key.pem",
)  # fmt: skip


def main() -> None:
    from django.conf import settings

    from mobility.embedded.shared import in_use

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    folder: Path = settings.MOBILITY_DATA_DIR
    if in_use():
        sys.exit(f"{folder} is in use by a running command: stop it first (Ctrl-C where it runs)")
    if not parser.parse_args().yes and not is_wanted(folder):
        sys.exit("nothing was deleted; to delete without confirmation, run make clean YES=1")
    for pattern in WRITTEN:
        for path in folder.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    with suppress(OSError):  # other things are in it
        folder.rmdir()


def is_wanted(folder: Path) -> bool:
    sys.stderr.write(f"Delete all studies, reports and keys in {folder}? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.isatty() and sys.stdin.readline().strip().lower() in ("y", "yes")


if __name__ == "__main__":
    main()
