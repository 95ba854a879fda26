"""What every worker asks for again and again; the tasks run in this process, as in a worker of its own."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from kombu.exceptions import OperationalError as BrokerError
from pytest_django.fixtures import Settings

from mobility import tasks
from reports.models import LedgerHead, LedgerKind, ShareView, Study
from reports.selectors import Window
from reports.services import access
from reports.services.ledger import record
from tests.reports import report_factory as factory

MODULES = {"sweep": "sweeping", "catch_up": "publishing"}
pytestmark = pytest.mark.django_db(databases=["default", "vault"])


class Timer:
    """The timer of a worker: keeps what is to be called, and how often."""

    def __init__(self) -> None:
        self.every_s: dict[Callable[[], object], float] = {}

    def call_repeatedly(self, seconds: float, function: Callable[[], object]) -> None:
        self.every_s[function] = seconds

    def call_all(self) -> None:
        for function in self.every_s:
            function()


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks run where they are asked for: there is no broker here, not even a connection to one."""
    for task in (
        tasks.sweep,
        tasks.catch_up,
        tasks.forget_old_views,
        tasks.look_after_ledger,
        tasks.look_for_alerts,
    ):
        monkeypatch.setattr(task, "delay", task.run)
        monkeypatch.setattr(task, "apply_async", lambda run=task.run, **_: run())


@pytest.fixture
def study(db: None) -> Study:
    return factory.create()


def test_a_worker_forgets_old_openings_at_its_start_and_every_hour(
    data_dir: Path, study: Study, analyst: User, in_this_process: None
) -> None:
    given = {"query": "", "days": 30, "note": "", "password": "", "by": analyst}
    link, _ = access.create_link(study.indicators.get(slug="gender"), Window(1, 2), **given)

    def age(days: int) -> None:
        ShareView.objects.all().delete()
        access.note_view(link)
        ShareView.objects.update(at=timezone.now() - timedelta(days=days))

    timer = Timer()
    age(401)
    tasks.sweep_from_now_on(sender=SimpleNamespace(timer=timer))
    assert not ShareView.objects.exists()
    age(401)
    timer.call_all()
    assert not ShareView.objects.exists()
    age(399)
    timer.call_all()
    assert ShareView.objects.count() == 1
    assert sorted(timer.every_s.values()) == [15, 60, 3600, 3600]


def test_a_worker_of_the_analyst_zone_asks_for_nothing_of_the_vault(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, in_this_process: None
) -> None:
    """It is there for maps; the models that a sweep needs are not installed."""
    settings.HAS_VAULT = False
    asked: list[str] = []
    for name in ("sweep", "catch_up"):
        monkeypatch.setattr(f"mobility.services.{MODULES[name]}.{name}", lambda name=name: asked.append(name))
    timer = Timer()
    tasks.sweep_from_now_on(sender=SimpleNamespace(timer=timer))
    timer.call_all()
    assert asked == []
    assert list(timer.every_s.values()) == [3600, 3600, 60]


def test_a_worker_looks_after_the_ledger_at_its_start(
    data_dir: Path, study: Study, analyst: User, in_this_process: None
) -> None:
    record(LedgerKind.SIGNED_OUT, actor="anna")
    tasks.sweep_from_now_on(sender=SimpleNamespace(timer=Timer()))
    head = LedgerHead.objects.get()
    assert head.checked_at is not None
    assert (head.checked_number, head.problem) == (1, None)


@pytest.mark.parametrize("first", ["forget_old_views", "look_after_ledger", "look_for_alerts", "sweep"])
def test_a_worker_that_cannot_ask_at_its_start_asks_later(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch, in_this_process: None, first: str
) -> None:
    def away(**_: object) -> None:
        raise BrokerError

    with monkeypatch.context() as patch:
        patch.setattr(getattr(tasks, first), "delay", away)
        patch.setattr(getattr(tasks, first), "apply_async", away)
        timer = Timer()
        with pytest.raises(BrokerError):
            tasks.sweep_from_now_on(sender=SimpleNamespace(timer=timer))
    assert sorted(timer.every_s.values()) == [15, 60, 3600, 3600]
