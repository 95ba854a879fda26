"""Reasons for refusing a profile."""

from collections.abc import Collection

from mobility.base.errors import MobilityError
from reports.studies.studyfile import Problem


class ProfileMissingError(MobilityError):
    """The study has no profile of that name."""


class ProfileExistsError(MobilityError):
    """The name is taken: earlier batches must stay explainable, so no profile is ever changed."""


class ProfileUsedError(MobilityError):
    """Batches were read with the profile."""


class PreviewError(MobilityError):
    """The beginning of a file tells nothing that could be shown."""


class ProfileFileError(MobilityError):
    """A profile breaks rules; all of them are listed."""

    def __init__(self, problems: Collection[Problem]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))
