"""Numbers of a new study for the simulator, and the values that the simulator brings to its form."""

from django.http import QueryDict

from ldp.privacy.plans import MAX_DAYS
from mobility.plans.class_shares import CLASSES, EPSILON, named_classes
from mobility.plans.new_study.text import FIELDS
from mobility.plans.pages.draft_typed import CLASS, ORIGIN, kind_of_table, rows_of
from mobility.plans.pages.simulator_source import ASKED, asked_query
from reports.studies.studyfile.redraft import Tables


def used_values(query: QueryDict) -> dict[str, str]:
    """Values of the simulator, by the names of fields."""
    names = {f"{section}.{key}" for section, keys in FIELDS.items() for key in keys}
    return {name: value for name, value in query.items() if name in names and isinstance(value, str)}


def cap_of(text: str) -> str:
    """Maximum answers per person that the simulator brought; empty if it brought none."""
    return text if text.isascii() and text.isdecimal() and 1 <= int(text[:4]) <= MAX_DAYS else ""


def simulator_query(tables: Tables) -> str:
    """Numbers of this study for the simulator, which has no draft to look at yet."""
    query = QueryDict(mutable=True)
    plan, study = (tables[key] if isinstance(tables.get(key), dict) else {} for key in ("plan", "study"))
    rows = [each for each in tables.get("indicator", []) if isinstance(each, dict)]
    sizes = {
        each.get("slug"): len(each["categories"])
        for each in rows
        if isinstance(each.get("categories"), list) and len(each["categories"]) > 1
    }
    derived = [each for each in rows if "derive" in each and kind_of_table(each) != ORIGIN]
    found = {
        "days": study.get("days"),
        "indicators": len(rows) or None,
        "daily": len(derived),
        "categories": max(sizes.values(), default=0) or None,
        **{
            key: plan.get(key)
            for key in ("mechanism", "unit", "epsilon", "epsilon_first", "window_days", "presence_epsilon")
        },
    }
    plain = [each for each in rows if isinstance(each.get("slug"), str) and each["slug"] in sizes]
    if rows and len(plain) == len(rows):  # of others, the study file alone does not tell the size
        found[ASKED] = asked_query(
            (
                str(each.get("name") or each["slug"]),
                "daily" if each in derived else "static",
                sizes[each["slug"]],
            )
            for each in rows
        )
    epsilons = {str(each.get("slug")): each.get("epsilon") for each in rows_of(tables, CLASS)}
    if names := named_classes(" ".join(epsilons)):
        found[CLASSES] = " ".join(slug for slug, _ in names)
        found |= {f"{EPSILON}{slug}": epsilons[slug] for slug, _ in names}
    query.update({key: str(value) for key, value in found.items() if value is not None})
    return query.urlencode()
