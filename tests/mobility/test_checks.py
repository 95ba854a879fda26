"""System checks refuse what would leak keys or mix the zones."""

from pathlib import Path

import pytest
from django.conf import settings
from django.test import override_settings

from mobility import checks


def ids(messages: list[checks.CheckMessage]) -> list[str | None]:
    return [message.id for message in messages]


def test_embedded_default_is_fine(data_dir: Path) -> None:
    assert checks.folders() + checks.keystore() + checks.databases() == []


def test_shared_data_folder_is_a_warning(data_dir: Path) -> None:
    data_dir.chmod(0o755)
    assert ids(checks.folders()) == ["mobility.W001"]


def test_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with override_settings(MOBILITY_DATA_DIR=tmp_path / "file" / "var"):
        assert ids(checks.folders()) == ["mobility.E001"]


@pytest.mark.parametrize(
    ("folder", "expected"),
    [("keys", ["mobility.E002"]), ("var/keystore", []), ("../keys-of-mobility", [])],
)
def test_keys_must_be_outside_of_the_code(folder: str, expected: list[str]) -> None:
    with override_settings(MOBILITY_KEYSTORE_DIR=settings.BASE_DIR / folder):
        assert ids(checks.keystore()) == expected


def test_zones_must_not_share_a_database(monkeypatch: pytest.MonkeyPatch) -> None:
    for alias in ("default", "vault"):
        monkeypatch.setitem(settings.DATABASES[alias], "NAME", "mobility")
    assert ids(checks.databases()) == ["mobility.E003"]
