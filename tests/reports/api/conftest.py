"""A program with a token, in front of the study of the other tests."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from reports.models import Study
from reports.services import access


class Program:
    """Asks the API as a program does: a token, no cookie."""

    def __init__(self, token: str) -> None:
        self.client = Client()
        self.token = token

    def get(self, path: str, query: dict[str, Any] | None = None, **headers: str) -> Any:
        return self.client.get(
            f"/api/v1/{path}", query or {}, headers={"Authorization": f"Bearer {self.token}", **headers}
        )


@pytest.fixture
def token(analyst: User) -> Callable[..., str]:
    """Text of a new token of the analyst: `token()` for all studies, `token(study)` for one."""

    def make(study: Study | None = None, *, by: User = analyst, days: int = 1) -> str:
        return access.create_token(name="nightly", days=days, study=study, by=by)[1]

    return make


@pytest.fixture
def program(token: Callable[..., str]) -> Program:
    return Program(token())
