"""Classes of subscribers: [[class]] and `plan.class_column` of a study file."""

from decimal import Decimal

from django.utils.translation import gettext_noop as _

from ldp.privacy.classes import MAX_CLASSES, MIN_CLASSES, OF_CLASSES
from reports.base.reasons import Reason
from reports.studies.studyfile.class_definition import ClassDefinition
from reports.studies.studyfile.definition import StudyDefinition
from reports.studies.studyfile.problems import Problems
from reports.studies.studyfile.sections import EPSILON
from reports.studies.studyfile.table import Table

KEY = "class"
COLUMN = "class_column"


def read_classes(root: Table) -> tuple[ClassDefinition, ...]:
    """Read [[class]]; rules of the plan are not looked at."""
    rows = root.raw(KEY, required=False)
    if rows is None:
        return ()
    if not isinstance(rows, list) or not all(isinstance(each, dict) for each in rows):
        root.add(KEY, _("must be tables [[class]]"), rows)
        return ()
    found = []
    for place, row in enumerate(rows, start=1):
        table = Table(row, f"{KEY}[{row.get('slug') or place}]", root.problems)
        slug = table.slug("slug", reserved=frozenset()) or ""
        found.append(
            ClassDefinition(
                slug=slug,
                name=table.text("name"),
                name_fr=table.text("name_fr", default="") or None,
                value=table.text("value", default=slug),
                epsilon=table.decimal("epsilon", EPSILON) or Decimal(1),
            )
        )
        table.finish()
    _check_once(root.problems, found)
    return tuple(found)


def _check_once(problems: Problems, classes: list[ClassDefinition]) -> None:
    for name in ("slug", "value"):
        seen = set[str]()
        for each in classes:
            text = getattr(each, name)
            if text and text in seen:
                problems.add(f"{KEY}[{each.slug}].{name}", _("must be unique among the classes"), text)
            seen.add(text)


def class_problems(definition: StudyDefinition, problems: Problems) -> None:
    """Note what a study with classes does not have yet, and what it needs."""
    plan, classes = definition.plan, definition.classes
    if classes and plan.class_column is None:
        problems.add(f"plan.{COLUMN}", _("is missing: with classes, a column must say the class of each row"))
    if len(classes) < MIN_CLASSES and (classes or plan.class_column is not None):
        problems.add(KEY, Reason(_("is missing: with classes, a study has at least %(n)s"), n=MIN_CLASSES))
    if not classes:
        return
    if len(classes) > MAX_CLASSES:
        problems.add(KEY, Reason(_("must be at most %(n)s classes"), n=MAX_CLASSES), len(classes))
    if plan.mechanism not in OF_CLASSES:
        rule = _("must be one of %(names)s in a study with classes")
        problems.add("plan.mechanism", Reason(rule, names=", ".join(OF_CLASSES)), plan.mechanism)
    largest = max(each.epsilon for each in classes)
    if plan.epsilon != largest:
        rule = _("must be the largest epsilon of the classes, %(largest)s")
        problems.add("plan.epsilon", Reason(rule, largest=f"{largest.normalize():f}"), plan.epsilon)
    if definition.extract.attributes != "inline":
        problems.add("extract.attributes", _('must be "inline" with classes: each row says the class'))
    absent = _("must be absent in a study with classes")
    kept: dict[str, object] = {
        "study.small_category": definition.small_category,
        "study.category_shares": definition.category_shares or None,
        "plan.presence_epsilon": plan.presence_epsilon,
        "slots": definition.slots,
        "location": definition.location,
        "study.kind": definition.units,
    }
    for each in definition.indicators:
        kept |= {
            f"indicator[{each.slug}].epsilon": each.epsilon,
            f"indicator[{each.slug}].parts": each.parts or None,
            f"indicator[{each.slug}].groups": each.groups or None,
            f"indicator[{each.slug}].cuts": each.scale,
            f"indicator[{each.slug}].derive": each.moves,
        }
    for key, value in kept.items():
        if value is not None:
            problems.add(key, absent)
