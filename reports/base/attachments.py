"""Answers that a browser saves as a file."""

from collections.abc import Iterable
from typing import Final

from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

_BEFORE: Final = 'attachment; filename="'


def attachment(content: str | bytes, *, content_type: str, name: str) -> HttpResponse:
    """A file that is there as a whole."""
    return HttpResponse(content, content_type=content_type, headers=_headers(name))


def streamed(
    pieces: Iterable[str | bytes], *, content_type: str, name: str, size: int | None = None
) -> StreamingHttpResponse:
    """A file in pieces, each sent as soon as it is made; size : in bytes, where it is known."""
    length = {} if size is None else {"Content-Length": str(size)}
    return StreamingHttpResponse(pieces, content_type=content_type, headers=_headers(name) | length)


def name_of(response: HttpResponseBase) -> str:
    """Name of the file in an answer that one of these functions made."""
    return response["Content-Disposition"].removeprefix(_BEFORE).removesuffix('"')


def _headers(name: str) -> dict[str, str]:
    return {"Content-Disposition": f'{_BEFORE}{name}"'}
