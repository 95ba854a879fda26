"""Method and privacy in a PDF: the words of the pages, read from the same template and the same statement."""

from decimal import Decimal
from html.parser import HTMLParser

from django.template.loader import render_to_string
from django.utils.translation import gettext

from reports.base import formats
from reports.exports.facts import Fact, facts_of
from reports.exports.pdf.document import Document
from reports.exports.selection import Selection
from reports.privacy.retention import retention
from reports.privacy.statement.document import certified, not_protected, protections
from reports.studies import texts as studies_texts

_TEXT_ELEMENTS = ("p", "li")
_METHOD_FACTS = ("plan_version", "mechanism", "unit", "epsilon_attribute", "epsilon_profile", "timezone")


class _Texts(HTMLParser):
    """Paragraphs and items of a fragment of a page, without those that are links."""

    def __init__(self) -> None:
        super().__init__()
        self.paragraphs: list[str] = []
        self.items: list[str] = []
        self._text: list[str] = []
        self._is_link = False

    def handle_starttag(self, tag: str, _attributes: list[tuple[str, str | None]]) -> None:
        if tag in _TEXT_ELEMENTS:
            self._text, self._is_link = [], False
        self._is_link = self._is_link or tag == "a"

    def handle_data(self, data: str) -> None:
        self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in _TEXT_ELEMENTS and not self._is_link:
            target = self.paragraphs if tag == "p" else self.items
            target.append(" ".join("".join(self._text).split()))


def add_privacy(document: Document, selection: Selection) -> None:
    """Method, what is promised, what is not, what is kept."""
    plan = selection.reports[0].plan
    spec, _ = certified(plan)
    document.heading(gettext("Method"))
    indexes = {spec.index(report.indicator.slug) for report in selection.reports}
    document.paragraph(studies_texts.plan_words(spec, sorted(indexes)))
    facts = {fact.name: fact for fact in facts_of(selection)}
    rows = [[facts[name].label, _readable(facts[name])] for name in _METHOD_FACTS]
    document.grid([gettext("Setting"), gettext("Value")], rows, widths=(110, 60), texts=2)
    document.paragraph(
        f"{facts['software'].value}. {formats.labelled(*facts['plan_sha256'][1:3])}", muted=True
    )
    _add_promise(document, selection)
    document.heading(gettext("Limits of protection"))
    document.bullets([limit["text"] for limit in not_protected(plan)])
    document.heading(gettext("Data retention"))
    kept = [[row["text"], row["until"]] for row in retention(selection.study)]
    document.grid([gettext("Data"), gettext("Kept until")], kept, widths=(110, 60), texts=2)


def _readable(fact: Fact) -> str:
    """Value as pages write it; an epsilon with few decimals, rounded up."""
    is_epsilon = fact.name.startswith("epsilon")
    return formats.epsilon(Decimal(fact.value)) if is_epsilon else fact.shown


def _add_promise(document: Document, selection: Selection) -> None:
    """Add the promise: an indicator's page text, or a study's row per indicator."""
    document.heading(gettext("Privacy"))
    by_slug = protections(selection.reports[0].plan)
    if selection.indicator is not None:
        texts = _Texts()
        context = {"protection": by_slug[selection.indicator.slug], "study": selection.study}
        texts.feed(render_to_string("privacy/_protection.html", context))
        for paragraph in texts.paragraphs:
            document.paragraph(paragraph)
        document.heading(gettext("Meaning of epsilon"), level=1)
        document.bullets(texts.items)
        return
    head = [
        gettext("Indicator"),
        gettext("Method"),
        gettext("Epsilon per answer"),
        gettext("Maximum factor by which a single answer can change the odds of a correct guess"),
        gettext("Number of answers out of 100 that give the true category"),
    ]
    rows = [
        [
            indicator.shown_name,
            by_slug[indicator.slug].method,
            formats.epsilon(by_slug[indicator.slug].epsilon_answer),
            f"\u00d7 {formats.odds(by_slug[indicator.slug].epsilon_odds)}",
            formats.number(by_slug[indicator.slug].kept_of_100),
        ]
        for indicator in {report.indicator.pk: report.indicator for report in selection.reports}.values()
    ]
    document.grid(head, rows, widths=(52, 22, 32, 32, 32), texts=2)
