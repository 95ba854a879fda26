"""Commands of a zone that this installation does not have: absent, and refused in words."""

from pkgutil import iter_modules
from typing import Final

from django.conf import settings

# Of the analyst zone; all its others only read what an operator zone has, too.
OF_ANALYSTS: Final = frozenset({"adopt_studies", "register_sender", "revoke_sender"})


def refusal(argv: list[str]) -> str:
    """Return why the command in `argv` does not exist in this zone; empty if it does."""
    command = argv[1] if len(argv) > 1 else ""
    zone = settings.MOBILITY_ZONE
    if not settings.HAS_VAULT and command in _of_operators():
        return (
            f"{command} is a command of the operator zone, but this is an analyst zone "
            f"(MOBILITY_ZONE={zone}), which has no vault and no keys. Run it on the operator server"
        )
    if not settings.HAS_REPORTS and command in OF_ANALYSTS:
        return (
            f"{command} is a command of the analyst zone, but this is an operator zone "
            f"(MOBILITY_ZONE={zone}): run it on the analyst server"
        )
    return ""


def counts(argv: list[str]) -> bool:
    """Return whether the command in `argv` works on studies of a vault."""
    return bool(set(argv[1:2]) & _of_operators() - {"make_extract", "sender_key"})


def _of_operators() -> frozenset[str]:
    folder = settings.BASE_DIR / "mobility" / "management" / "commands"
    return frozenset(module.name for module in iter_modules([str(folder)]))
