"""Extract profiles: how the files of one source are read."""

from mobility.extracts.profiles.definition import (
    DEFAULT,
    NO_ANSWER,
    OPT_OUT,
    SUBSCRIBERS,
    Profile,
    ProfileKind,
    ValueTable,
    default_profile,
)

__all__ = [
    "DEFAULT",
    "NO_ANSWER",
    "OPT_OUT",
    "SUBSCRIBERS",
    "Profile",
    "ProfileKind",
    "ValueTable",
    "default_profile",
]
