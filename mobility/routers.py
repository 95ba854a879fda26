"""Database of each model: the vault for the operator zone, the main one for everything else."""

from typing import Any

VAULT_APP = "mobility"


class ZoneRouter:
    """Models of `mobility` live in the vault and nowhere else."""

    def db_for_read(self, model: type, **_: Any) -> str:
        return "vault" if model._meta.app_label == VAULT_APP else "default"  # type: ignore[attr-defined]

    def db_for_write(self, model: type, **_: Any) -> str:
        return self.db_for_read(model)

    def allow_relation(self, one: Any, other: Any, **_: Any) -> bool:
        # Not type(): the account of a request is a proxy, whose class only __class__ shows.
        return self.db_for_read(one.__class__) == self.db_for_read(other.__class__)

    def allow_migrate(self, db: str, app_label: str, **_: Any) -> bool:
        return (db == "vault") == (app_label == VAULT_APP)
