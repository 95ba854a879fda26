"""Health for load balancers and supervisors: no sign-in, no database session, no secrets.

/healthz/live   this process answers; nothing else is touched
/healthz/ready  databases answer and every migration has run, or else 503; and whether the broker answers
/healthz        both

Without the broker pages and uploads are served, and batches wait: "degraded", which is no reason to send
people elsewhere.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponseNotAllowed, JsonResponse
from django.http.response import HttpResponseBase

from mobility.base.middleware import Middleware
from mobility.operations.alerts.rules import offer_to_stand_in
from mobility.operations.findings import Level
from mobility.operations.probes import broker, databases

PREFIX: Final = "/healthz"
OK, DEGRADED, FAILED = "ok", "degraded", "failed"
BROKER: Final = "broker"
KEPT_S: Final = 2.0  # anyone who asks more often gets the same answer


class HealthMiddleware(Middleware):
    """Answers before everything else: a balancer asks by any host name, and without TLS."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        asked = request.path_info.rstrip("/")
        if not asked.startswith(PREFIX) or asked not in ANSWERS:
            return self.get_response(request)
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        components = ANSWERS[asked]()
        status = _status(components)
        return JsonResponse(
            {"status": status, "components": components},
            status=503 if status == FAILED else 200,
            headers={"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"},
        )


def _status(components: Mapping[str, str]) -> str:
    failed = {name for name, word in components.items() if word != OK}
    return FAILED if failed - {BROKER} else DEGRADED if failed else OK


def live() -> dict[str, str]:
    """This process answers."""
    return {"web": OK}


def ready() -> dict[str, str]:
    """State of serving, by component: "ok" or "failed"."""
    return _kept.get()


def both() -> dict[str, str]:
    return live() | ready()


def look() -> dict[str, str]:
    """Return `ready`, now."""
    offer_to_stand_in()
    found = {_name(alias): databases.answer(alias).level for alias in settings.DATABASES}
    well = {name: level == Level.OK for name, level in found.items()}
    well["migrations"] = all(well.values()) and _is_migrated()
    well[BROKER] = broker.answer().level == Level.OK
    return {name: OK if is_well else FAILED for name, is_well in well.items()}


class _Kept:
    """The last answer; while one thread asks for a new one, others get the old one unless it is very old."""

    STALE_S: Final = 10.0

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at = float("-inf")
        self._answer: dict[str, str] = {}

    def get(self) -> dict[str, str]:
        if self._age_s() < KEPT_S:
            return self._answer
        if not self._lock.acquire(blocking=self._age_s() > self.STALE_S):
            return self._answer
        try:
            if self._age_s() >= KEPT_S:  # it may have come while this thread waited
                self._answer, self._at = look(), time.monotonic()
            return self._answer
        finally:
            self._lock.release()

    def _age_s(self) -> float:
        return time.monotonic() - self._at


def _name(alias: str) -> str:
    return "database" if alias == "default" else alias


def _is_migrated() -> bool:
    try:
        return not any(databases.pending(alias) for alias in settings.DATABASES)
    except databases.ERRORS:
        return False


_kept = _Kept()
ANSWERS: Final[dict[str, Callable[[], dict[str, str]]]] = {
    PREFIX: both,
    f"{PREFIX}/live": live,
    f"{PREFIX}/ready": ready,
}
