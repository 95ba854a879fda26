"""An operator zone that runs apart: does the analyst server answer, and is its clock ours."""

import time
from contextlib import suppress
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from typing import Final
from urllib.error import HTTPError
from urllib.request import Request

from django.conf import settings

from mobility.batches.publication.analyst_server import opener
from mobility.operations.doctor.clocks import compared
from mobility.operations.doctor.diagnosis import Diagnoses, error, fine

TIMEOUT_S: Final = 10


def analyst_server() -> Diagnoses:
    """Any answer of it will do, a refusal too: whether our key is known, handing over tells."""
    request = Request(f"{settings.MOBILITY_ANALYST_URL}/api/v1/intake/", method="GET")  # noqa: S310 - checked
    before = time.time()
    try:
        with opener().open(request, timeout=TIMEOUT_S) as answer:
            date = answer.headers.get("Date", "")
    except HTTPError as refusal:
        date = refusal.headers.get("Date", "")
    except (OSError, HTTPException, ValueError) as failure:
        reason = type(getattr(failure, "reason", failure)).__name__
        todo = "check its address, its certificate (MOBILITY_ANALYST_CA_FILE) and the firewall; totals "
        todo += "wait in the vault, and no data is lost"
        what = f"the server at MOBILITY_ANALYST_URL is not responding ({reason})"
        yield error("analyst_unreachable", what, todo)
        return
    yield fine("analyst_unreachable")
    after = time.time()
    with suppress(ValueError, OverflowError):  # an invalid date says nothing of the clock
        theirs = parsedate_to_datetime(date).timestamp()
        yield compared("analyst server", theirs=theirs, before=before, after=after, whole_s=True)
