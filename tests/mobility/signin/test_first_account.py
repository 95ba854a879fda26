"""A site without any account says how to make the first one, and nothing of it afterwards."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

COMMAND = "manage.py create_account NAME --role administrator"


@pytest.mark.django_db
def test_a_new_site_says_how_its_first_account_is_made(client: Client) -> None:
    assert COMMAND in client.get("/sign-in/").content.decode()
    User.objects.create_user("ada")
    page = client.get("/sign-in/").content.decode()
    assert "create_account" not in page
    assert "The administrator of this site can help" in page
