"""A small study whose daily indicators come from places."""

from reports.studies.studyfile import parse_study
from tests.study_text import AREA, columns, daily, static, study_text

# No zone; the codes run against the order of the names.
CELLS = (
    "cell_id,lon,lat,zone\n"
    "cell-9,6.8,47.6,South\ncell-8,6.9,47.6,North\ncell-7,6.9,47.7,South\ncell-6,6.9,47.8,\n"
)


def night_study(
    *,
    first_day,
    days,
    night_from="22:00",
    night_to="06:00",
    mechanism="smp-grr",
    epsilon=20.0,
    cells=CELLS,
    more="",
):
    night = f'night_from = "{night_from}"\nnight_to = "{night_to}"\n'
    slept_in = [daily("slept_in", derive="night_zone", more=night)] if night_from else []
    text = study_text(
        static("gender", "F", "M"), daily("stayed_in", derive="main_zone"), *slept_in,
        daily("duration", derive="visit_duration"), more,
        slug="nights", name="Nights", first_day=first_day, days=days, study="min_publication = 1\n",
        extract=columns("who", "when", "where"), mechanism=mechanism, epsilon=epsilon, area=AREA,
    )  # fmt: skip
    return parse_study(text.encode(), filename="study.toml", read=lambda _: cells.encode())
