"""Record of processing activities: article 30 (1) GDPR, letters a to g."""

from django.conf import settings
from django.contrib.auth.models import User
from django.utils.translation import gettext, ngettext

from reports.accounts.access_models import ShareLink
from reports.accounts.texts import ROLE_WORDS
from reports.base import formats
from reports.dpia.parts import Section, Table
from reports.privacy.retention import retention
from reports.studies import texts as studies_texts
from reports.studies.models import Area, Indicator, Study
from reports.studies.policies import Role, is_open_to, roles_of


def record(study: Study) -> tuple[Section, ...]:
    """Sections of the record, in the order of the article."""
    return (
        _controller(study),
        _purposes(study),
        _categories(study),
        _recipients(study),
        _transfers(),
        _time_limits(study),
    )


def _controller(study: Study) -> Section:
    return Section(
        title=gettext("Controller"),
        article="30 (1) a",
        paragraphs=(
            gettext("Processing: mobility reports for the study %(study)s (%(slug)s).")
            % {"study": study.shown_name, "slug": study.slug},
        ),
        to_fill=(
            gettext("Name and contact details of the controller and of any joint controllers"),
            gettext("Contact details of the data protection officer"),
        ),
    )


def _purposes(study: Study) -> Section:
    window = formats.window_title(study.first_day, study.last_day)
    return Section(
        title=gettext("Purposes"),
        article="30 (1) b",
        paragraphs=(
            gettext(
                "Statistics on presence in an area: estimated shares of visitors by indicator, per day "
                "and per range of consecutive days, each with its margin of error. Days of the study: "
                "%(days)s."
            )
            % {"days": window},
            studies_texts.visitor_rule(study),
        ),
        points=tuple(
            gettext("%(name)s: %(n)d categories") % {"name": each.shown_name, "n": len(each.categories)}
            for each in study.indicators.all()
        ),
        to_fill=(
            gettext("Users of the statistics, and decisions based on the statistics"),
            gettext("Legal basis (Article 6), and national rules for telecommunications location data"),
        ),
    )


def _categories(study: Study) -> Section:
    area = Area.objects.filter(study=study).first()
    where = (
        gettext("all cells in the network extract")
        if area is None
        else ngettext("%(n)s cell in the area", "%(n)s cells in the area", area.n_cells)
        % {"n": formats.number(area.n_cells)}
    )
    never = gettext("in the encrypted file, which is destroyed after processing; never in a database")
    events = gettext(
        "in the encrypted file, which is destroyed after processing; each day's stays, first event "
        "and last event are kept in encrypted form until that day is closed"
    )
    kept = gettext("as an encrypted code for the randomised answer, with a keyed pseudonym")
    rows = [
        (gettext("Subscriber identifier"), gettext("operator zone"), never),
        (gettext("Time and cell of events (%(where)s)") % {"where": where}, gettext("operator zone"), events),
        *((indicator.shown_name, gettext("operator zone"), kept) for indicator in study.indicators.all()),
        (gettext("Days of presence"), gettext("operator zone"), gettext("encrypted, with a keyed pseudonym")),
        (
            gettext("Counts of randomised answers"),
            gettext("operator zone, analyst zone"),
            gettext("as totals, with no records of individuals"),
        ),
    ]
    if study.classes:
        public = gettext("encrypted, with a keyed pseudonym, and without noise, because it is public")
        rows.insert(-1, (gettext("Class of the subscriber"), gettext("operator zone"), public))
    if hasattr(study, "slots"):
        kept_until = gettext(
            "for each person and day, the last cell in each quarter-hour and the time slots already "
            "counted; kept encrypted until that day is closed"
        )
        rows.insert(-1, (gettext("Presence by time slot"), gettext("operator zone"), kept_until))
        crosses = gettext("as totals by slot and zone, with no records of individuals")
        rows.append((gettext("Counts by time slot and zone"), rows[-1][1], crosses))
    if area is not None and area.grid is not None:
        place = gettext("Main place on each day, with noise")
        rows.insert(-1, (place, gettext("operator zone"), gettext("as an encrypted grid square")))
    return Section(
        title=gettext("Data subjects and data"),
        article="30 (1) c",
        paragraphs=(
            gettext(
                "Data subjects: the operator's subscribers whose devices generated an event in the area "
                "on any day of the study, and who have not opted out."
            ),
            _opt_outs(study),
        ),
        table=Table(head=(gettext("Data"), gettext("Location"), gettext("Form")), rows=tuple(rows)),
        to_fill=(gettext("Information given to subscribers, and contact for objections (opt-out list)"),),
    )


def _opt_outs(study: Study) -> str:
    if study.presence is not None:
        return gettext(
            "When subscribers opt out, their presence records and answers are deleted immediately. The "
            "totals for days already closed still include them."
        )
    text = gettext(
        "When subscribers opt out, their presence and answers are deleted immediately. The totals still "
        "include these subscribers until the next publication, which covers at least %(n)d subscribers. "
        "Even so, the change that this publication makes to a figure for a single date range or "
        "indicator can come from just one person. If no publication follows, the subscribers who opted "
        "out remain in the totals, and the erasure certificate states how many there are."
    )
    return text % {"n": study.min_publication}


def _recipients(study: Study) -> Section:
    people = User.objects.filter(is_active=True).prefetch_related("groups", "study_grants")
    by_role = dict.fromkeys(Role, 0)
    for person in people:
        if is_open_to(person, study.pk):
            for role in roles_of(person):
                by_role[Role(role)] += 1
    links = [
        link
        for link in ShareLink.objects.filter(indicator__in=Indicator.objects.filter(study=study))
        if link.is_valid
    ]
    return Section(
        title=gettext("Recipients"),
        article="30 (1) d",
        paragraphs=(
            gettext(
                "Accounts that currently have access to the study, by role; the access matrix names "
                "each of them."
            ),
            gettext(
                "Active share links: %(n)d. Anyone who has a link, and its password if one is set, can "
                "see the report that it leads to."
            )
            % {"n": len(links)},
        ),
        table=Table(
            head=(gettext("Role"), gettext("Accounts")),
            rows=tuple((str(ROLE_WORDS[role]), str(n)) for role, n in by_role.items()),
        ),
        to_fill=(gettext("Recipients of reports outside this system"),),
    )


def _transfers() -> Section:
    return Section(
        title=gettext("Transfers to third countries"),
        article="30 (1) e",
        paragraphs=(
            gettext(
                "On its own, the software sends nothing to other hosts: no telemetry, no fonts, no "
                "map tiles. Configured hosts: databases, message broker and staging storage. Hosts "
                "used only if set up: analyst server, identity provider and recipients of alerts."
            ),
        ),
        to_fill=(gettext("Where these hosts are located, and who operates them (processors, Article 28)"),),
    )


def _time_limits(study: Study) -> Section:
    rows = tuple((row["text"], row["until"]) for row in retention(study))
    hours = -(-settings.MOBILITY_UPLOAD_EXPIRES_S // 3600)  # rounded up: no promise that is not kept
    staged = ngettext(
        "A paused upload and its key are deleted after an hour.",
        "A paused upload and its key are deleted after %(hours)d hours.",
        hours,
    ) % {"hours": hours}
    ended = study.closed_at is None and study.key_until is None
    return Section(
        title=gettext("Time limits for erasure"),
        article="30 (1) f",
        paragraphs=(staged,),
        table=Table(head=(gettext("Data"), gettext("Kept until")), rows=rows),
        to_fill=(gettext("The date on which the study will be closed and its key destroyed"),)
        if ended
        else (),
    )
