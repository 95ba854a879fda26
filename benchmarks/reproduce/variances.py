"""Tables 6.1 and 6.2: each printed variance and that of the channel that `ldp` makes."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import ldp
from benchmarks.reproduce import published
from benchmarks.reproduce.exact import budgets

_LARGEST: Final = 1e-11  # relative; what is printed to twelve digits was computed with about sixteen


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedCell:
    """One number of a table.

    Parameters
    ----------
    row : tuple of str; alpha and epsilon_inf, or epsilon
    column : str; protocol, and of L-GRR and GRR the domain size
    printed : str; its digits
    ours : float
    """

    row: tuple[str, ...]
    column: str
    printed: str
    ours: float

    @property
    def agrees(self) -> bool:
        """Return whether our variance rounds to the printed digits; to six first, as they were made."""
        digits = len(self.printed.partition(".")[2])
        slack = 0.5 * 10.0**-digits + (0.5e-6 if digits < 6 else 0)
        return abs(self.ours - float(self.printed)) <= slack + _LARGEST * self.ours


def two_rounds() -> list[PrintedCell]:
    """All of table 6.1."""
    return [
        _cell((alpha, lasting), column, printed, _two_rounds(column, alpha=alpha, epsilon_inf=lasting))
        for alpha, lasting, *numbers in _rows(published.TABLE)
        for column, printed in zip(published.TABLE_COLUMNS, numbers, strict=True)
    ]


def one_round() -> list[PrintedCell]:
    """All of table 6.2."""
    return [
        _cell((epsilon,), column, printed, _one_round(column, epsilon=Fraction(epsilon)))
        for epsilon, *numbers in _rows(published.ONE_ROUND)
        for column, printed in zip(published.ONE_ROUND_COLUMNS, numbers, strict=True)
    ]


def _two_rounds(column: str, *, alpha: str, epsilon_inf: str) -> ldp.TwoRoundGrr | ldp.TwoRoundUnary:
    nominal = budgets(epsilon_inf, alpha=alpha)
    match column.split():
        case ["L-GRR", k]:
            return ldp.lgrr_channel(**nominal, domain_size=int(k), tuning="paper")
        case ["L-SUE"]:
            return ldp.lue_channel("l-sue", **nominal, domain_size=2)
        case ["L-OUE"]:
            return ldp.lue_channel("l-oue", **nominal, domain_size=2)
        case ["L-SOUE"]:
            return ldp.lue_channel("l-soue", **nominal, domain_size=2)
    return ldp.lue_channel("l-osue", **nominal, domain_size=2)


def _one_round(column: str, *, epsilon: Fraction) -> ldp.GrrChannel | ldp.UnaryChannel:
    protocol, *sizes = column.split()
    if protocol == "GRR":
        return ldp.grr_channel(epsilon=epsilon, domain_size=int(sizes[0]))
    return {"OUE": ldp.oue_channel, "SUE": ldp.sue_channel}[protocol](epsilon=epsilon, domain_size=2)


def _cell(row: tuple[str, ...], column: str, printed: str, channel: ldp.PureChannel) -> PrintedCell:
    ours = float(ldp.noise_at_zero(channel) / published.TABLE_USERS)
    return PrintedCell(row=row, column=column, printed=printed, ours=ours)


def _rows(table: str) -> Sequence[list[str]]:
    return [line.split() for line in table.strip().splitlines()]
