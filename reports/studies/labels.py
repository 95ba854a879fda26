"""Labels of studies in lists: two studies can have the same name."""

from collections import Counter
from typing import Any, Protocol

from reports.studies.names import in_language
from reports.studies.policies import Somebody, studies_for


class _Named(Protocol):
    @property
    def slug(self) -> str: ...

    @property
    def shown_name(self) -> str: ...


def label_of(study: _Named, reader: Somebody) -> str:
    """Name of a study, with its short name where several studies open to `reader` have the same name."""
    return name_with_slug(study) if study.shown_name in _shared_names(reader) else study.shown_name


def name_with_slug(study: _Named) -> str:
    """Name of a study with its short name, which no other study has."""
    return f"{study.shown_name} ({study.slug})"


def _shared_names(reader: Any) -> frozenset[str]:
    """Names that several studies share; read once for each reader."""
    if getattr(reader, "shared_study_names", None) is None:
        names = Counter(in_language(*row) for row in studies_for(reader).values_list("name", "name_fr"))
        reader.shared_study_names = frozenset(name for name, n in names.items() if n > 1)
    found: frozenset[str] = reader.shared_study_names
    return found
