"""Parts of a document of the pack, in any format."""

from dataclasses import dataclass, field

from django.utils.translation import gettext

from reports.base.version import software
from reports.studies.models import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """`head` names the columns; cells are plain texts."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading and the parts below it, in this order.

    article : of the GDPR that asks for it
    to_fill : what the controller has to write, since no configuration knows it
    """

    title: str
    article: str
    paragraphs: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    table: Table | None = None
    to_fill: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Pack:
    """Both documents of one study."""

    study: Study
    sections: tuple[Section, ...] = field(default=())

    @property
    def title(self) -> str:
        return gettext("Data protection pack: %(study)s") % {"study": self.study.shown_name}

    @property
    def introduction(self) -> str:
        """Return the purpose and limits of the pack."""
        text = gettext(
            "Record of processing activities (Article 30 GDPR) and impact assessment (Article 35), "
            "prefilled by %(software)s from the configuration in force. This document is a draft, "
            "not legal advice. The controller must complete the marked points, check the rest and "
            "take responsibility for the document."
        )
        return text % {"software": f"{software()['name']} {software()['version']}"}

    @property
    def n_open(self) -> int:
        """Points that the controller has to fill in."""
        return sum(len(section.to_fill) for section in self.sections)
