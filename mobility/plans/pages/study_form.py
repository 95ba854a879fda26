"""The files that an administrator sends to create a study: definitions, small, held in memory only."""

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
class StudyForm:
    """Submitted form; `text` is the study file, chosen as a file or corrected in the page.

    `confirmed` names the plan whose noise was shown before.
    """

    filename: str = STUDY_FILE
    text: bytes = b""
    files: dict[str, bytes] = field(default_factory=dict)
    confirmed: str = ""

    @classmethod
    def of(cls, request: HttpRequest) -> Self:
        """Take the form from a request; a chosen file wins over the text in the page."""
        chosen = request.FILES.get("study_file")
        named = [file for field in NAMED_FILES for file in request.FILES.getlist(field)]
        return cls(
            filename=(chosen.name if chosen else request.POST.get("filename")) or STUDY_FILE,
            text=chosen.read() if chosen else request.POST.get("text", "").encode(),
            files={str(file.name): file.read() for file in named},
            confirmed=request.POST.get("confirmed", ""),
        )

    @property
    def shown_text(self) -> str:
        """The study file for the page, where it can be corrected; empty when it is not text."""
        try:
            return self.text.decode()
        except UnicodeDecodeError:
            return ""

    def read(self, name: str) -> bytes:
        """Return the content of a file that the study file names."""
        try:
            return self.files[name]
        except KeyError:
            raise FileNotFoundError(name) from None


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


def check_given(form: StudyForm) -> None:
    """Raise StudyFormError if there is no study file at all."""
    if not form.text.strip():
        raise StudyFormError(gettext("Choose a study file and all files that it refers to."))
