"""A small study, and extracts of a few lines for it."""

STUDY = """
[study]
slug = "fair"
name = "Fair & market"
timezone = "Europe/Paris"
first_day = 2024-05-01
days = 3
min_publication = 2
expected_subscribers = 10
[study.visitor]
min_minutes = 60
from = "06:00"
to = "23:59"
[extract]
subscriber = "msisdn"
timestamp = "time"
max_bad_share = 0.5
[plan]
mechanism = "smp-grr"
unit = "profile"
epsilon = 1.0
[[indicator]]
slug = "age"
kind = "static"
column = "age"
categories = ["young", "old"]
[[indicator]]
slug = "visit_duration"
kind = "daily"
derive = "visit_duration"
epsilon = 0.5
"""


def rows(*subscribers: str, day: int = 1, age: str = "old") -> str:
    """Two events, three hours apart, of each subscriber."""
    return "".join(
        f"{who},2024-05-0{day}T{hour}:00:00,{age}\n" for who in subscribers for hour in ("10", "13")
    )


def extract(*parts: str) -> bytes:
    return ("msisdn,time,age\n" + "".join(parts)).encode()
