"""Who has which role."""

import pytest
from django.contrib.auth.models import User

from reports.policies import Role, roles_of

pytestmark = pytest.mark.django_db


def test_person_has_the_role_of_the_group(operator: User) -> None:
    assert roles_of(operator) == {Role.OPERATOR}


def test_stranger_has_no_role(stranger: User) -> None:
    assert roles_of(stranger) == frozenset()


def test_inactive_person_has_no_role(analyst: User) -> None:
    analyst.is_active = False
    assert roles_of(analyst) == frozenset()
