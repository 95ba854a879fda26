"""Privacy of a board in plain words."""

from collections.abc import Sequence
from typing import Any

from reports.boards.contents import Shown
from reports.privacy.statement.document import protections
from reports.privacy.total_texts import total_words
from reports.studies.plan_models import Plan


def plain_privacy(tiles: Sequence[Shown], plan: Plan) -> dict[str, Any]:
    """Context of `privacy/_plain.html`: the indicator of the tiles whose answers have the highest epsilon."""
    found, shown = protections(plan), {each.tile.of for each in tiles}
    slugs = [slug for slug in found if slug in shown] or list(found)
    slug = max(slugs, key=lambda each: found[each].epsilon_answer)
    return {
        "study": plan.study,
        "protection": found[slug],
        "protection_of": plan.study.indicators.get(slug=slug).shown_name if len(slugs) > 1 else "",
        "total_words": total_words(plan),
    }
