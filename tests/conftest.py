"""Fixtures of all tests: a data folder that is thrown away, and people in their roles."""

import gc
import os
import re
import shutil
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from _pytest.runner import pytest_runtest_protocol as run_test
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.test import override_settings
from django.utils import translation
from xdist.scheduler.loadscope import LoadScopeScheduling

from mobility.base.runtime import RuntimePaths, private_folder
from reports.estimates.fingerprints import slot_of
from reports.studies.grant_models import StudyGrant
from reports.studies.policies import Role
from reports.tasks import make_export
from tests import compiled
from tests.emptying import let_tests_flush
from tests.migrated import once_a_run

# The first call of a kernel compiles it: no deadline can hold for that.
hypothesis.settings.register_profile("mobility", deadline=None, print_blob=True)
hypothesis.settings.load_profile("mobility")

TESTS = Path(__file__).parent
PASSWORD = "only-for-tests-7Qx"


def folder_settings(root: Path) -> dict[str, Any]:
    paths = RuntimePaths(root)
    paths.static_root.mkdir(parents=True)  # the middleware warns of a missing one
    own = {"MOBILITY_KEYSTORE_DIR": paths.keystore, "MOBILITY_STAGING_DIR": paths.staging}
    return own | {"MOBILITY_DATA_DIR": root, "PATHS": paths, "STATIC_ROOT": paths.static_root}


@pytest.fixture(scope="session", autouse=True)
def _apart_from_real_data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test touches the data of the person who runs it; and hashing a password need not be slow."""
    storages = settings.STORAGES | {
        # The real one refuses files that were not collected.
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"}
    }
    hashers = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    root = tmp_path_factory.mktemp("var")
    # One key for all tests: a person may sign in before a test gets its data folder.
    paths = RuntimePaths(root)
    folders = folder_settings(root) | {"MOBILITY_LEDGER_KEY_FILE": paths.ledger_key}
    folders["CELERY_BROKER_URL"] = paths.redis_url  # no one answers there
    with override_settings(**folders, STORAGES=storages, PASSWORD_HASHERS=hashers):
        yield


@pytest.fixture(scope="session")
def django_db_setup(request: pytest.FixtureRequest) -> None:
    with once_a_run():
        request.getfixturevalue("django_db_setup")  # that of pytest-django


@pytest.fixture(autouse=True)
def _language_ends_with_the_test() -> Iterator[None]:
    """The language of the last request stays active in the thread of the tests."""
    yield
    translation.deactivate()


@pytest.fixture(autouse=True)
def _nothing_is_kept_of_other_tests() -> None:
    """Databases that are rolled back have the same rows again."""
    slot_of.cache_clear()


@pytest.fixture(autouse=True)
def _files_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reports.exports.actions._send", lambda row: make_export(row.pk))
    monkeypatch.setattr("reports.exports.file_views.LOOK_S", 0.0)


@pytest.fixture(scope="session", autouse=True)
def _tests_empty_the_ledger_share_kernels_and_wait_for_no_disk() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        let_tests_flush(patch)
        compiled.once_a_run(patch)
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    root = private_folder(tmp_path / "var")
    with override_settings(**folder_settings(root)):
        yield root
    shutil.rmtree(root)


@pytest.fixture
def password() -> str:
    return PASSWORD


@pytest.fixture
def person(db: None) -> Callable[..., User]:
    """Make an account: `person("alice", Role.ANALYST)` is open for all studies, without a role for nothing.

    `person("vera", Role.VIEWER, studies=[fair], until=day)`: for these only, until the end of that day.
    """

    def make(username: str, *roles: Role, studies: Any = None, until: date | None = None) -> User:
        user = User.objects.create_user(username, password=PASSWORD)
        user.groups.set(Group.objects.filter(name__in=roles))
        for study in [None] if studies is None and roles else studies or []:
            StudyGrant.objects.create(user=user, study=study, granted_by="test", until=until)
        return user

    return make


def _person(username: str, *roles: Role) -> Any:
    return pytest.fixture(lambda person: person(username, *roles))


operator = _person("olga", Role.OPERATOR)
analyst = _person("anna", Role.ANALYST)
administrator = _person("adam", Role.ADMINISTRATOR)
privacy_officer = _person("paula", Role.PRIVACY_OFFICER)
viewer = _person("vera", Role.VIEWER)
stranger = _person("sven")  # signed in, but without a role


# Groups of long tests, those that take longest first, so that in the end no process waits for the other.
LONGEST = (
    "no_trace-postgresql", "deployment", "site", "docs_commands", "no_trace-sqlite", "zones", "zones_split",
    "restore_drill-postgresql", "upgrade-postgresql", "upgrade-sqlite", "restore_drill-sqlite", "kill_soak",
    "outage", "embedded", "demo_command", "no_trace", "sign_in",
)  # fmt: skip
ON_SITE = ("accessibility", "exports", "readers", "uploads")  # each adds to it, in this order


def group_of(test: str) -> str:
    path, _, name = test.partition("::")
    stem = Path(path).stem.removeprefix("test_")
    database = re.search(r"sqlite|postgresql", name) if "/e2e/" in path else None
    return "site" if stem in ON_SITE else f"{stem}-{database[0]}" if database else stem


class Groups(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Groups | None:
    return Groups(config, log) if config.getvalue("dist") == "loadgroup" else None


def pytest_configure(config: pytest.Config) -> None:
    """Let the second process of a run collect from the end: each uses what the other has compiled."""
    gc.disable()  # modules and tests that are collected stay
    if os.environ.get("PYTEST_XDIST_WORKER") == "gw1" and config.args == [TESTS.name]:
        config.args = sorted(map(str, TESTS.rglob("test_*.py")), reverse=True)


def _with_room(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    return run_test(item, nextitem)


# Python keeps frames in pieces of 16 KB: where calls go from one to the next, each call maps memory and each
# return unmaps it, which took a third of the time of pages' tests. After a frame this large, half of a piece
# of 1 MB is free: enough for all calls of a test.
_with_room.__code__ = _with_room.__code__.replace(co_stacksize=(512 << 10) // 8)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    return _with_room(item, nextitem)


def pytest_collection_finish() -> None:
    """Look for garbage less often, and not at all in modules: else it takes a tenth of all tests' time."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(50_000, 20, 50)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    in_browser = {item.path for item in items if item.get_closest_marker("e2e")}
    places = {group: place for place, group in enumerate(LONGEST)}

    def order(item: pytest.Item) -> tuple[bool, int, Path]:
        is_long = item.get_closest_marker("long") is not None
        place = places.get(group_of(item.nodeid), len(places)) if is_long else 0
        return item.path not in in_browser and not is_long, place, item.path

    items.sort(key=order)
