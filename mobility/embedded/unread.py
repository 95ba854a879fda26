"""Settings that a command did not get: it would make another installation in the folder of the code."""

import os
from typing import Final

SETTINGS: Final = "/etc/mobility-reports/settings"  # where docker/manage.sh looks, too
ANY_OF: Final = frozenset({"MOBILITY_ZONE", "MOBILITY_DATA_DIR", "DATABASE_URL", "DATABASE_URL_FILE"})


def refusal(argv: list[str]) -> str:
    """Return why the command in `argv` must not run with these settings; empty if it may."""
    command = argv[1] if len(argv) > 1 else "help"
    file = os.environ.get("MOBILITY_SETTINGS", SETTINGS)
    if command in ("help", "version") or command.startswith("-") or ANY_OF & os.environ.keys():
        return ""
    if not os.access(file, os.F_OK):
        return ""
    return (
        f"{file} contains the settings of this machine's installation, but this command was started "
        f"without them: run docker/manage.sh {command}, or set MOBILITY_DATA_DIR to use a separate "
        "installation"
    )
