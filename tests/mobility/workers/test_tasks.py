"""Periodic tasks of every worker; the tasks run in this process, as in a real worker."""

from datetime import timedelta
from types import SimpleNamespace

import pytest
from celery.exceptions import Retry
from django.db import InterfaceError, OperationalError
from django.utils import timezone
from kombu.exceptions import OperationalError as BrokerError

from mobility import tasks
from mobility.base.errors import DiskFullError, KeyAwayError, KeyMissingError
from reports.accounts.access_models import ShareView
from reports.estimates.queries import Window
from reports.ledger.actions import record
from reports.ledger.models import LedgerHead, LedgerKind
from reports.sharing import actions as access
from tests.mobility.pipeline import raising
from tests.reports import report_factory as factory

pytestmark = pytest.mark.django_db(databases=["default", "vault"])


class Timer:
    """The timer of a worker: keeps calls, and their intervals."""

    def __init__(self) -> None:
        self.every_s = {}

    def call_repeatedly(self, seconds, function) -> None:
        self.every_s[function] = seconds

    def call_all(self) -> None:
        for function in self.every_s:
            function()


BY_TIMER = (
    "forget_old_views", "look_after_ledger", "look_for_alerts", "look_after_forecasts", "send_digests",
    "sweep",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _in_this_process(monkeypatch) -> None:
    """Tasks run where they are asked for: there is no broker here, not even a connection to one."""
    for name in (*BY_TIMER, "catch_up"):
        task = getattr(tasks, name)
        monkeypatch.setattr(task, "delay", task.run)
        monkeypatch.setattr(task, "apply_async", lambda run=task.run, **_: run())


@pytest.mark.parametrize(
    ("error", "longest_s"),
    [
        (OperationalError, 2),
        (InterfaceError, 2),
        (DiskFullError, 60),
        (KeyAwayError(KeyMissingError()), 60),
    ],
)
def test_what_meets_no_database_is_tried_again_every_two_seconds(error, longest_s) -> None:
    """Within five seconds of its return, after any outage; disks and keys take people, or hours."""
    waits: list[float] = []

    def retry(*, countdown: float) -> Retry:
        waits.append(countdown)
        return Retry()

    for retries in (0, 1, 20):
        task = SimpleNamespace(request=SimpleNamespace(retries=retries), retry=retry)
        with pytest.raises(Retry):
            tasks._until_it_passes(task, raising(error))
    assert waits == [1, 2, longest_s]


def test_totals_that_were_lost_are_handed_over_when_the_database_is_back(monkeypatch) -> None:
    """A worker asks for it once, when it starts."""
    monkeypatch.setattr("mobility.batches.publication.publishing.catch_up", raising(OperationalError))
    monkeypatch.setattr(tasks.catch_up, "retry", lambda countdown: Retry(when=countdown))
    with pytest.raises(Retry):
        tasks.catch_up.run()


def start_worker() -> Timer:
    timer = Timer()
    tasks.sweep_from_now_on(sender=SimpleNamespace(timer=timer))
    return timer


def test_a_worker_checks_the_ledger_and_forgets_old_openings_at_its_start(data_dir, analyst) -> None:
    given = {"query": "", "days": 30, "note": "", "password": "", "by": analyst}
    link, _ = access.create_link(factory.create().indicators.get(slug="gender"), Window(1, 2), **given)

    def age(days: int) -> None:
        ShareView.objects.all().delete()
        access.note_view(link)
        ShareView.objects.update(at=timezone.now() - timedelta(days=days))

    record(LedgerKind.SIGNED_OUT, actor="anna")
    age(401)
    timer = start_worker()
    head = LedgerHead.objects.get()
    assert head.checked_at is not None
    assert (head.checked_number, head.problem) == (head.number, None)
    assert not ShareView.objects.exists()
    age(401)
    timer.call_all()
    assert not ShareView.objects.exists()
    age(399)
    timer.call_all()
    assert ShareView.objects.count() == 1
    assert sorted(timer.every_s.values()) == [15, 60, 3600, 3600, 3600, 3600]


def test_a_worker_of_the_analyst_zone_asks_for_nothing_of_the_vault(settings, monkeypatch) -> None:
    """It is there for maps; the models that a sweep needs are not installed."""
    settings.HAS_VAULT = False
    asked: list[str] = []
    for name, module in (("sweep", tasks.sweeping), ("catch_up", tasks.publishing)):
        monkeypatch.setattr(module, name, lambda name=name: asked.append(name))
    timer = start_worker()
    timer.call_all()
    assert (asked, list(timer.every_s.values())) == ([], [3600, 3600, 60, 3600, 3600])


@pytest.mark.parametrize("first", BY_TIMER)
def test_a_worker_that_cannot_ask_at_its_start_asks_later(data_dir, monkeypatch, first) -> None:
    def away(**_: object) -> None:
        raise BrokerError

    timer = Timer()
    monkeypatch.setattr(getattr(tasks, first), "delay", away)
    monkeypatch.setattr(getattr(tasks, first), "apply_async", away)
    with pytest.raises(BrokerError):
        tasks.sweep_from_now_on(sender=SimpleNamespace(timer=timer))
    assert sorted(timer.every_s.values()) == [15, 60, 3600, 3600, 3600, 3600]
