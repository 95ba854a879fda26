"""Market shares by category: the part of the people of each category whom the network sees."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final, Self

from django.utils.translation import gettext_noop as _

from reports.base.reasons import Reason
from reports.studies.names import in_language
from reports.studies.studyfile.table import NumberRule, Table

KEY: Final = "category_shares"
SHARE: Final = NumberRule(_("must be a number > 0 and <= 1"), lambda x: 0 < x <= 1)
_FROM, _TO = date(1990, 1, 1), date(2299, 12, 31)
_TABLES: Final = _("must be tables, each headed [[study.category_shares]]")


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryShare:
    """Share of one category; `low` and `high` are the 95% interval of an estimated share."""

    category: str
    share: Decimal
    low: Decimal | None = None
    high: Decimal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryShares:
    """Shares of all categories of an indicator, with their name; valid on days, both included.

    valid_to : None = no end
    """

    name: str
    indicator: str
    valid_from: date
    shares: tuple[CategoryShare, ...]
    valid_to: date | None = None
    name_fr: str | None = None

    @property
    def shown_name(self) -> str:
        """Return the name in the active language."""
        return in_language(self.name, self.name_fr)

    def is_valid(self, first: date, last: date) -> bool:
        """Return whether the shares are those of all days from `first` to `last`."""
        return self.valid_from <= first and (self.valid_to is None or last <= self.valid_to)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild shares from plain values."""
        shares = tuple(
            CategoryShare(
                category=each["category"],
                share=Decimal(each["share"]),
                low=None if each["low"] is None else Decimal(each["low"]),
                high=None if each["high"] is None else Decimal(each["high"]),
            )
            for each in data["shares"]
        )
        days = {
            key: None if data[key] is None else date.fromisoformat(data[key])
            for key in ("valid_from", "valid_to")
        }
        return cls(**{**data, **days, "shares": shares})

    def to_table(self) -> dict[str, Any]:
        """Return the table of a study file; keys without a value are None."""
        shares: dict[str, Any] = {
            each.category: each.share
            if each.low is None
            else {"share": each.share, "low": each.low, "high": each.high}
            for each in self.shares
        }
        keys = ("name", "name_fr", "indicator", "valid_from", "valid_to")
        return {**{key: getattr(self, key) for key in keys}, "shares": shares}


def read_category_shares(study: Table) -> tuple[CategoryShares, ...]:
    """Read [[study.category_shares]]; indicators are not looked at."""
    rows = study.raw(KEY, required=False)
    if rows is None:
        return ()
    if not isinstance(rows, list) or not all(isinstance(each, dict) for each in rows):
        study.add(KEY, _TABLES, rows)
        return ()
    tables = [
        Table(row, f"{study.key(KEY)}[{place}]", study.problems) for place, row in enumerate(rows, start=1)
    ]
    found = [_read(each) for each in tables]
    _check_overlaps(list(zip(tables, found, strict=True)))
    return tuple(found)


def _read(table: Table) -> CategoryShares:
    valid_from = table.day("valid_from", low=_FROM, high=_TO)
    shares = table.table("shares")
    found = CategoryShares(
        name=table.text("name"),
        name_fr=table.text("name_fr", default="") or None,
        indicator=table.text("indicator"),
        valid_from=valid_from,
        valid_to=table.day("valid_to", low=valid_from, high=_TO) if table.has("valid_to") else None,
        shares=tuple(_read_share(shares, each) for each in shares.values) if shares else (),
    )
    table.finish()
    return found


def _read_share(shares: Table, category: str) -> CategoryShare:
    if not isinstance(shares.values[category], dict):
        return CategoryShare(category=category, share=shares.decimal(category, SHARE) or Decimal(1))
    table = Table(shares.values[category], shares.key(category), shares.problems)
    has_interval = table.has("low") or table.has("high")
    share, low, high = (
        table.decimal(key, SHARE, required=key == "share" or has_interval) for key in ("share", "low", "high")
    )
    table.finish()
    if None not in (share, low, high) and not low <= share <= high:  # type: ignore[operator]
        table.add(
            "share",
            Reason(_("must be from low to high, %(low)s to %(high)s"), low=str(low), high=str(high)),
            share,
        )
    return CategoryShare(category=category, share=share or Decimal(1), low=low, high=high)


def _check_overlaps(rows: list[tuple[Table, CategoryShares]]) -> None:
    """A day must have one share of each category."""
    in_order = sorted(rows, key=lambda row: (row[1].indicator, row[1].valid_from))
    for (_table, before), (table, after) in pairwise(in_order):
        if before.indicator == after.indicator and (
            before.valid_to is None or after.valid_from <= before.valid_to
        ):
            ended = _('must not overlap with "%(name)s", which is valid from %(first)s to %(until)s')
            open_end = _('must not overlap with "%(name)s", which is valid from %(first)s to an open end')
            values = {"name": before.name, "first": str(before.valid_from), "until": str(before.valid_to)}
            rule = Reason(open_end if before.valid_to is None else ended, **values)
            table.add("valid_from", rule, after.valid_from)


def missing_and_unknown(shares: CategoryShares, categories: tuple[str, ...]) -> Iterator[str]:
    """Say how shares differ from the categories of their indicator, as rules."""
    named = {each.category for each in shares.shares}
    if missing := [each for each in categories if each not in named]:
        text = _("must have a share for each category of %(indicator)s, missing: %(names)s")
        yield Reason(text, indicator=shares.indicator, names=", ".join(missing))
    if unknown := [each for each in named if each not in categories]:
        text = _("must be categories of %(indicator)s, which does not have: %(names)s")
        yield Reason(text, indicator=shares.indicator, names=", ".join(sorted(unknown)))
