"""Backups of a small study that are restored in this process."""

import json
from pathlib import Path
from typing import Any

from mobility.operations.backup import make_backup
from mobility.operations.restore import restore

SCHEMA = json.loads((Path(__file__).parents[4] / "docs/certificate.schema.json").read_text())
SMALL = {"expected_subscribers": 100, "min_publication": 10}


def tenth_of_the_people(extract: list[Path], folder: Path) -> list[Path]:
    """Three days, as files in `folder`."""
    files = []
    for path in extract[:3]:
        header, *rows = path.read_text().splitlines(keepends=True)
        file = folder / path.name
        file.write_text(header + "".join(row for row in rows if row.split(",")[0].endswith("3")))
        files.append(file)
    return files


def back_up(tmp_path: Path) -> Path:
    return make_backup(tmp_path / "backups", by="test").folder


def put_back(folder: Path, **options: Any) -> dict[str, Any]:
    return restore(folder, by="test", replaces=True, **options)
