"""Options that commands about grants have in common."""

from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from django.core.management.base import CommandError

from reports.management.arguments import day_of
from reports.studies.models import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Options for studies and the last day; None among the studies = all of them."""

    studies: tuple[Study | None, ...]
    until: date | None

    @property
    def is_given(self) -> bool:
        return bool(self.studies)

    def as_json(self) -> dict[str, object]:
        """Return the budget for the answer of a command."""
        names = ["all" if study is None else study.slug for study in self.studies]
        return {"studies": names, "until": None if self.until is None else self.until.isoformat()}


def add_grant_arguments(parser: ArgumentParser) -> None:
    """--study, --all-studies and --until."""
    parser.add_argument(
        "--study",
        action="append",
        default=[],
        metavar="SLUG",
        help="study to give access to; repeatable",
    )
    parser.add_argument("--all-studies", action="store_true", help="all studies, including future ones")
    parser.add_argument(
        "--until",
        type=day_of,
        metavar="DATE",
        help=("last day of access (UTC), such as 2024-12-31; default: no end date"),
    )


def asked_of(options: Mapping[str, Any]) -> Asked:
    """Return what these options name; CommandError if there is no such study, or they contradict."""
    slugs, is_all, until = list(dict.fromkeys(options["study"])), options["all_studies"], options["until"]
    if is_all and slugs:
        raise CommandError("give either --study or --all-studies, not both")
    if until is not None and not (is_all or slugs):
        raise CommandError("--until says when a grant ends: give --study or --all-studies, too")
    if is_all:
        return Asked(studies=(None,), until=until)
    found = {study.slug: study for study in Study.objects.filter(slug__in=slugs)}
    missing = [slug for slug in slugs if slug not in found]
    if missing:
        known = ", ".join(Study.objects.order_by("slug").values_list("slug", flat=True)) or "none"
        raise CommandError(f"there is no study {missing[0]!r}; studies: {known}")
    return Asked(studies=tuple(found[slug] for slug in slugs), until=until)
