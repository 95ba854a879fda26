"""A limit of a zone alerts once when it may be exceeded, again when it is, and when that is over."""

from datetime import timedelta

import numpy as np
import pytest
from django.core import mail
from django.utils import timezone

from mobility.operations.alerts import rules
from mobility.operations.models import Alert
from mobility.operations.probes import crowds
from reports.forecasts.crowds import judge, set_limit
from reports.slots.queries import presence
from tests.reports import slot_factory

pytestmark = [pytest.mark.django_db(databases=["default", "vault"]), pytest.mark.usefixtures("data_dir")]


def test_a_fixed_series_alerts_once_a_level_and_says_when_it_is_over(settings) -> None:
    settings.MOBILITY_ALERT_EMAIL_TO = ["desk@example.org"]
    study = slot_factory.create()
    now, told = timezone.now(), []
    set_limit(study, zone=presence(study).zones[0], ahead=0, capacity=1000, by="adam")
    # Noise of one slot: 41 people, so intervals reach 81 people to either side.
    for people in (900, 960, 970, 930, 1120, 1050, 980, 960, 850, 700):
        slot_factory.publish(study, np.array([[people, 0, 0, 0, people, 0]]))
        judge(study)
        for _ in range(12):  # minutes
            now += timedelta(minutes=1)
            rules.check(list(crowds.full()), now=now)
        told.append([mail.subject.removeprefix("[Mobility reports] ") for mail in mail.outbox])
        mail.outbox.clear()
    may = "warning: North west in fair-2024 may have more people than the zone's limit allows"
    assert told == [
        [], [f"opened: {may}"], [], [],
        ["worse: error: North west in fair-2024 has more people than its limit allows"], [], [], [],
        [f"ended: {may}"], [],
    ]  # fmt: skip
    alert = Alert.objects.get()
    assert (alert.facts["capacity"], alert.facts["time"]) == (1000, "2024-05-30 03:30")
