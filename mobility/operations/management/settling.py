"""Common parts of `restore` and `restore_keys`: an external ledger, and the final report."""

import argparse
from pathlib import Path
from typing import Any

from mobility.base.messages import say
from mobility.operations.backup.closings import NONE, Closings, closed_in, known_keys


def add_ledger(parser: argparse.ArgumentParser) -> None:
    """Options that name a ledger which knows more than the databases."""
    parser.add_argument(
        "--ledger",
        type=Path,
        metavar="LEDGER.jsonl",
        help="newer ledger export that lists closed studies, for example from the analyst server",
    )
    parser.add_argument(
        "--ledger-key",
        type=Path,
        metavar="FILE.pem",
        help="public key of that ledger, if another installation signed it",
    )


def closings(options: dict[str, Any], *, head: Any = None) -> Closings:
    """Return the closed studies in the ledger of these options.

    Parameters
    ----------
    head : the signed head in the manifest of a backup

    Raises
    ------
    OperationsError : it cannot be read, or is not believed
    """
    if options["ledger"] is None:
        return NONE
    return closed_in(options["ledger"], known=known_keys(head=head, pem=options["ledger_key"]))


def say_settled(told: dict[str, Any]) -> None:
    """Report what was settled, and what was not."""
    if told.get("studies_closed_again"):
        say(f"Studies closed before the restore and closed again: {', '.join(told['studies_closed_again'])}.")
    for slug, n in told.get("batches_ended", {}).items():
        say(f"{slug}: {n} batches were unfinished. Send their files again.")
    for slug, why in {**told.get("studies_stopped", {}), **told.get("not_handed_over", {})}.items():
        say(f"{slug}: {why}")
    if told.get("keys_missing"):
        say(f"Keys of open studies are missing ({', '.join(told['keys_missing'])}). Run restore_keys.")
