"""Remove the data folder, as if nothing had ever run: databases, keys, demo, logs."""

import argparse
import os
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "mobility.settings")


def main() -> None:
    from django.conf import settings

    from mobility.embedded import in_use

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--yes", action="store_true", help="do not ask")
    folder = settings.MOBILITY_DATA_DIR
    if in_use():
        sys.exit(f"{folder} is in use by a running command: stop it first (Ctrl-C where it runs)")
    if not parser.parse_args().yes and not is_wanted(folder):
        sys.exit("nothing was removed; to remove without a question: make clean YES=1")
    shutil.rmtree(folder)


def is_wanted(folder: Path) -> bool:
    sys.stderr.write(f"remove {folder} with all studies, reports and keys? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.isatty() and sys.stdin.readline().strip().lower() in ("y", "yes")


if __name__ == "__main__":
    main()
