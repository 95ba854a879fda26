"""`manage.py make_extract`."""

import json
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django.fixtures import Settings


def run(*arguments: str) -> dict[str, object]:
    out = StringIO()
    call_command("make_extract", *arguments, stdout=out)
    printed: dict[str, object] = json.loads(out.getvalue())
    return printed


def test_prints_one_json_value_about_the_files(tmp_path: Path) -> None:
    printed = run("--out", str(tmp_path / "new" / "folder"), "--seed", "5", "--subscribers", "40")
    assert set(printed) == {"directory", "files", "rows", "seed", "subscribers", "subscriber_days"}
    assert (printed["seed"], printed["subscribers"]) == (5, 40)
    assert printed["directory"] == str(tmp_path / "new" / "folder")
    written = [tmp_path / "new" / "folder" / name for name in printed["files"]]
    lines = [len(path.read_text(encoding="utf-8").splitlines()) for path in written]
    assert sum(lines) - len(written) == printed["rows"]


def test_writes_to_the_data_folder_even_where_there_is_none(tmp_path: Path, settings: Settings) -> None:
    settings.MOBILITY_DATA_DIR = tmp_path / "var"
    printed = run("--subscribers", "10", "--gzip")
    folder = tmp_path / "var" / "demo" / "extract"
    assert printed["directory"] == str(folder)
    assert sorted(path.name for path in folder.iterdir()) == printed["files"]
    assert all(name.endswith(".csv.gz") for name in printed["files"])


def test_refuses_more_subscribers_than_there_are(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=r"n_subscribers must be in \[1, 88935\], got 90000"):
        run("--out", str(tmp_path), "--subscribers", "90000")
    assert list(tmp_path.iterdir()) == []
