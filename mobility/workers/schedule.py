"""How often workers ask for the jobs that no setting times, in seconds."""

from typing import Final

FORGET_EVERY_S: Final = 3600
LEDGER_EVERY_S: Final = 3600
CATCH_UP_EVERY_S: Final = 3600
