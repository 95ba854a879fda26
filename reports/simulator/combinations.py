"""A combination of indicators that a plan does not have: what it shows, and what it costs the others."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ldp.privacy.joint import joint_size
from reports.simulator.model import Question, Row, Setting, Simulation, simulate


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """An indicator with and without the combination, which takes answers from it."""

    without: Row
    together: Row


def with_combination(setting: Setting, parts: Sequence[str]) -> Setting:
    """The setting with one more question: the combination of the indicators with these slugs."""
    asked = {each.slug: each for each in setting.questions}
    question = Question(
        slug="+".join(parts),  # a study has no such slug
        name=" / ".join(asked[part].name for part in parts),
        kind="daily" if any(asked[part].kind == "daily" for part in parts) else "static",
        domain_size=joint_size([asked[part].part_size for part in parts]),
        parts=tuple(parts),
    )
    return replace(setting, questions=(*setting.questions, question))


def costs(simulation: Simulation) -> tuple[Cost, ...]:
    """Return the errors of all indicators but the last, without that one and with it."""
    setting = simulation.setting
    alone = simulate(replace(setting, questions=setting.questions[:-1]))
    pairs = zip(alone.rows, simulation.rows[:-1], strict=True)
    return tuple(Cost(without=without, together=together) for without, together in pairs)
