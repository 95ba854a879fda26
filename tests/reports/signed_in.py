"""Pages as their readers see them."""

import re

from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client


def spaced(text: str) -> str:
    return " ".join(text.split())


def words(response: HttpResponse) -> str:
    return spaced(re.sub(r"<[^>]+>", " ", response.content.decode()))


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client
