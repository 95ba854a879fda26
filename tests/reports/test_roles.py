"""The three roles exist from the first migration on, and the fixtures hand them out."""

import pytest
from django.contrib.auth.models import Group, User

from reports.policies import Role, roles_of

pytestmark = pytest.mark.django_db


def test_migrations_create_the_three_roles() -> None:
    assert set(Group.objects.values_list("name", flat=True)) == {"operator", "analyst", "administrator"}


def test_person_has_the_role_of_the_group(operator: User) -> None:
    assert roles_of(operator) == {Role.OPERATOR}


def test_stranger_has_no_role(stranger: User) -> None:
    assert roles_of(stranger) == frozenset()


def test_inactive_person_has_no_role(analyst: User) -> None:
    analyst.is_active = False
    assert roles_of(analyst) == frozenset()
