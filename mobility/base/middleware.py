"""The shared base of middleware."""

from collections.abc import Callable

from django.http import HttpRequest
from django.http.response import HttpResponseBase


class Middleware:
    """Passes a request on; subclasses do something before, after or instead."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)
