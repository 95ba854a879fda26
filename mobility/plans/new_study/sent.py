"""Text, form and files that an administrator sends to create a study: small, in memory only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext

from mobility.batches.texts import megabytes

STUDY_FILE = "study.toml"
NAMED_FILES = ("cells", "zones", "layers")  # fields of the form with files that the study file names


class StudyFormError(ValueError):
    """Nothing that could be read as a study file was sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewStudyForm:
    """Submitted form; `text` is the study file, chosen as a file or edited in the page.

    action : what the pressed button does
    fields : by name, as `QueryDict.lists` gives them
    base : the text that the fields were made from; None = there are no fields to look at
    like : slug of the study that this is a copy of
    confirmed : names the plan whose noise was shown before
    """

    filename: str = STUDY_FILE
    text: bytes = b""
    files: dict[str, bytes] = field(default_factory=dict)
    confirmed: str = ""
    action: str = ""
    fields: Mapping[str, list[str]] = field(default_factory=dict)
    base: str | None = None
    like: str = ""

    @classmethod
    def of(cls, request: HttpRequest) -> Self:
        """Take the form from a request; a chosen file wins over the text in the page."""
        chosen = request.FILES.get("study_file")
        named = [file for field in NAMED_FILES for file in request.FILES.getlist(field)]
        return cls(
            filename=(chosen.name if chosen else request.POST.get("filename")) or STUDY_FILE,
            text=chosen.read() if chosen else _lines(request.POST.get("text", "")).encode(),
            files={str(file.name): file.read() for file in named},
            confirmed=request.POST.get("confirmed", ""),
            action=request.POST.get("do", ""),
            fields=dict(request.POST.lists()),
            base=None if chosen or "base" not in request.POST else _lines(request.POST["base"]),
            like=request.POST.get("like", ""),
        )

    def first(self, name: str) -> str:
        """First value of a field; empty if it was not sent."""
        return next(iter(self.fields.get(name, [])), "")

    @property
    def shown_text(self) -> str:
        """The study file for the page, where it can be corrected; empty when it is not text."""
        try:
            return self.text.decode()
        except UnicodeDecodeError:
            return ""

    @property
    def text_is_readable(self) -> bool:
        """Return whether it is text at all."""
        return bool(self.shown_text) or not self.text

    def read(self, name: str) -> bytes:
        """Return the content of a file that the study file names."""
        try:
            return self.files[name]
        except KeyError:
            raise FileNotFoundError(name) from None


def _lines(text: str) -> str:
    """Text of a form, with the line ends of files."""
    return text.replace("\r\n", "\n")


def check_size(request: HttpRequest) -> None:
    """Raise StudyFormError if the files are too large to be held in memory.

    The upload handler has dropped them all by now: saying that one is missing would mislead.
    """
    length = int(request.headers.get("Content-Length") or 0)
    limit = settings.FILE_UPLOAD_MAX_MEMORY_SIZE
    if length > limit:
        raise StudyFormError(
            gettext(
                "The files total %(size)s MB, but the limit is %(limit)s MB. To create a larger "
                "study, run manage.py create_study FILE.toml on the server."
            )
            % {"limit": megabytes(limit), "size": megabytes(length)}
        )


def check_given(form: NewStudyForm) -> None:
    """Raise StudyFormError if there is no study file at all."""
    if not form.text.strip():
        raise StudyFormError(gettext("Choose a study file and all files that it refers to."))
