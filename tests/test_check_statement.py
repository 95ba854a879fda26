"""The independent script agrees with each statement that we write, and finds each number that was changed."""

import ast
import copy
import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
from django.db import transaction
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from ldp import LdpError
from ldp.geo import location, planar_laplace
from ldp.geo.grid import Grid
from ldp.privacy.plans import Mechanism
from ldp.protocols.channels import Unit
from reports.models import Plan, Study
from reports.privacy.statement.document import privacy_statement
from reports.studies.studyfile.definition import LocationDefinition, PlanDefinition
from reports.studies.studyfile.lookups import Lookup
from scripts import check_statement
from scripts.check_statement import Bounds, check, exp_bounds, log_bounds, rounded_up
from tests.reports import report_factory as factory
from tests.reports import slot_factory

pytestmark = pytest.mark.django_db
SCRIPT = Path(check_statement.__file__)
MECHANISMS, UNITS = get_args(Mechanism), get_args(Unit)
FINE = Context(prec=120)
MANY = factory.indicator("region", *(f"r{i}" for i in range(30)))
GRID = Grid(x0_m=0, y0_m=0, step_m=100, n_x=20, n_y=10)
PLACES = LocationDefinition(level=Decimal("1.38629436"), radius_m=400, max_values=3, grid=GRID, places=())
SLOTS = replace(slot_factory.DEFINITION, levels=())
NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?|[0-9]+/[0-9]+|[0-9a-f]{64}|[0-9]{4}-[0-9]{2}-[0-9]{2}")
# Typed values without a promise, and statements of the software about itself: no claim follows from them.
TYPED = {"market_share", "min_publication", "small_cell", "visitor", "area", "software", "name", "categories"}
GRID_KEYS = {"x0_m", "y0_m", "step_m", "n_x", "n_y"}
# Asked for again and again with the same numbers: a forged statement differs in one.
NAMES = ("exp_bounds", "log_bounds", "codes", "hashes", "rounded_up", "worst_ratio")
KEPT = {name: cache(getattr(check_statement, name)) for name in NAMES}


@pytest.fixture(autouse=True)
def _bounds_are_kept(monkeypatch):
    for name, function in KEPT.items():
        monkeypatch.setattr(check_statement, name, function)


def written(study):
    return json.loads(json.dumps(privacy_statement(study, with_names=True)))


def texts(*statements):
    return check(*statements).texts


def planned(mechanism, **changes):
    values = {"unit": "profile", "epsilon": Decimal(1), "epsilon_profile": None} | changes
    return PlanDefinition(mechanism=mechanism, **values)


def test_it_stands_alone(tmp_path):
    nodes = list(ast.walk(ast.parse(SCRIPT.read_text())))
    imported = {each.name for node in nodes if isinstance(node, ast.Import) for each in node.names}
    imported |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in imported} <= sys.stdlib_module_names
    shutil.copy(SCRIPT, tmp_path / "check.py")
    (tmp_path / "statement.json").write_text(json.dumps(written(factory.create())))
    command = [sys.executable, "-I", "-S", "check.py", "statement.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^\d\d+ claims checked, 0 differ; of 0 other studies", done.stdout)


@pytest.mark.parametrize("x", ["1/1000000", "1/10", "1", "7/2", "20", "64", "128"])
def test_bounds_enclose(x):
    value = Fraction(x)
    e = FINE.exp(FINE.divide(Decimal(value.numerator), Decimal(value.denominator)))
    low, high = exp_bounds(value)
    assert low <= Fraction(e) * (1 + Fraction(1, 10**80))
    assert high >= Fraction(e) * (1 - Fraction(1, 10**80))
    assert 0 < high - low < low / 10**80
    for ratio in (Fraction(e).limit_denominator(10**40), Fraction(10**30 + 1, 10**30), 1 + value):
        log = Fraction(FINE.ln(FINE.divide(Decimal(ratio.numerator), Decimal(ratio.denominator))))
        low, high = log_bounds(ratio)
        assert 0 < high - low < Fraction(1, 10**80)
        assert low - Fraction(1, 10**80) <= log <= high + Fraction(1, 10**80)


def test_bounds_of_nothing_and_rounding():
    assert log_bounds(Fraction(1)) == Bounds(Fraction(0), Fraction(0))
    assert exp_bounds(Fraction(0)).low == 1
    assert rounded_up(Fraction(2, 3)) == Fraction("0.666666666666666666666666666667")
    assert rounded_up(Fraction(10**40 + 1)) == 10**40 + 10**11
    assert rounded_up(Fraction(0)) == 0


@pytest.mark.parametrize(("epsilon", "protocol"), [("0.7", "projective"), ("4", "grr")])
def test_it_agrees_with_joint_indicators(epsilon, protocol):
    both = replace(factory.BOTH, epsilon=Decimal(epsilon))
    factory.create(factory.GENDER, factory.AGE, both, epsilon="0.5", unit="attribute")
    statement = written(Study.objects.get())
    assert texts(statement) == []
    _, age, joint = statement["indicators"]
    assert (age["protocol"], joint["protocol"]) == ("grr", protocol)
    age["epsilon_attribute"] = age["epsilon"]
    assert [text.split(":")[0] for text in texts(statement)] == ["indicator age, epsilon_attribute"]
    for parts in (["age"], ["age", "age"], ["age", "both"], ["age", "other"]):
        statement["plan"]["spec"]["indicators"][2]["parts"] = parts
        assert any(text.startswith("plan.spec, parts") for text in texts(statement)), parts


def test_it_agrees_with_the_hash_of_a_lookup_file():
    looked_up = replace(factory.AGE, lookup=Lookup(file="life.csv", sha256="0a" * 32))
    statement = written(factory.create(looked_up, factory.STAY))
    assert texts(statement) == []
    asked, stay = statement["plan"]["spec"]["indicators"]
    assert asked["lookup"] == "0a" * 32
    for row, lookup in ((asked, "0a" * 31), (asked, "life.csv"), (stay, "0a" * 32)):
        before = dict(row)
        row["lookup"] = lookup
        assert any(text.startswith("plan.spec, lookup") for text in texts(statement)), lookup
        row.clear()
        row.update(before)
    del asked["lookup"]
    assert [text.split(":")[0] for text in texts(statement)] == ["plan.spec_sha256"]


def test_it_agrees_with_permanent_questions():
    """Also on combinations; a third answer, a question among fewer and unknown losses are noticed."""
    both = factory.joint("both", MANY, factory.STAY, kind="daily")
    plan = planned("smp-question", unit="attribute", epsilon=Decimal("0.5"))
    study = factory.create(MANY, factory.STAY, both, plan=plan)
    statement = written(study)
    assert texts(statement) == []
    many, stay, joint = statement["indicators"]
    assert [each["protocol"] for each in (many, stay, joint)] == ["projective", "question", "question"]
    assert [each.get("codes") for each in (stay, joint)] == [2, 254]
    assert Decimal("0.99") < Decimal(many["epsilon_attribute"]) <= 1  # on all four days, two answers
    assert [each["values_per_person"] for each in (many, stay, joint)] == [1, 2, 2]
    assert set(believed(statement)) - {"first_day", "spec_sha256"} == {"voided_days"}


@pytest.mark.parametrize("fresh", [{}, {"epsilon_first": Decimal("1.25"), "hash_cells": "optimal"}])
def test_it_agrees_with_hashed_values(fresh):
    """Also on combinations; other numbers of sets, of a round or of reports, and losses are noticed."""
    both = factory.joint("both", MANY, factory.STAY, kind="daily")
    plan = planned("smp-loloha", unit="attribute", epsilon=Decimal(2), **fresh)
    study = factory.create(MANY, factory.STAY, both, plan=plan)
    statement = written(study)
    assert texts(statement) == []
    many, stay, joint = statement["indicators"]
    assert [each["protocol"] for each in (many, stay, joint)] == ["projective", "loloha", "loloha"]
    assert (joint["prime"], joint["values_per_person"]) == ((5, 4) if fresh else (2, 2))
    assert [each.get("nominal_first") for each in (many, stay)] == [None, "5/4" if fresh else "1/1"]
    assert Decimal(joint["epsilon"]) < Decimal(joint["epsilon_attribute"]) < 2
    # The value that lasts is in the combinations of all days.
    assert Decimal(many["epsilon_attribute"]) > Decimal(joint["epsilon_attribute"])
    assert set(believed(statement)) - {"first_day", "spec_sha256"} == {"voided_days"}
    for change in ({"cells": "three"}, {"epsilon": "2/1"}, {"epsilon": "0/1"}):
        forged = copy.deepcopy(statement)
        forged["plan"]["spec"]["first"] |= change
        assert any(text.startswith("plan.spec, first") for text in texts(forged)), change
    del forged["plan"]["spec"]["first"]
    assert any(text.startswith("plan.spec, first") for text in texts(forged))


@pytest.mark.parametrize("fresh", [{}, {"epsilon_first": Decimal("1.25"), "hash_cells": "optimal"}])
def test_it_agrees_with_renewed_reports(fresh):
    """Codes, bits and combinations; other numbers of a round, of reports or of sets are noticed."""
    both = factory.joint("both", factory.GENDER, MANY)
    plan = planned("smp-allomfree", unit="attribute", epsilon=Decimal(2), **fresh)
    statement = written(factory.create(factory.GENDER, MANY, factory.STAY, both, plan=plan, days=5))
    assert texts(statement) == []
    found = {each["slug"]: each for each in statement["indicators"]}
    protocols = {slug: each["protocol"] for slug, each in found.items()}
    assert protocols == {"gender": "l-grr", "region": "l-osue", "stay": "loloha", "both": "loloha"}
    assert (found["stay"]["prime"], found["both"]["prime"]) == ((2, 5) if fresh else (2, 3))
    for slug in ("gender", "region", "both"):
        each = found[slug]
        assert (each["values_per_person"], each["nominal_first"]) == (1, "5/4" if fresh else "1/1")
        assert Decimal(each["epsilon"]) < Decimal(each["epsilon_attribute"]) < 2
    assert statement["guarantee"]["nominal_attribute"] == "2/1"
    assert set(believed(statement)) - {"first_day", "spec_sha256"} == {"voided_days"}
    for change in ({"location": {}}, {"presence": {}}):
        forged = copy.deepcopy(statement)
        forged["plan"]["spec"] |= change
        assert not check_statement.Plan(forged).has_no_links(), change
    statement["plan"]["spec"]["indicators"][0]["scale"] = {}
    assert not check_statement.Plan(statement).has_no_links()


@pytest.mark.parametrize("window", [None, 3, 1])
def test_it_agrees_with_streams(window):
    """Also on combinations; other windows, numbers of answers and losses are noticed, and kept answers."""
    both = factory.joint("both", MANY, factory.STAY, kind="daily")
    plan = planned("smp-stream", unit="attribute", epsilon=Decimal(2), window_days=window)
    statement = written(factory.create(MANY, factory.STAY, both, plan=plan, days=8))
    assert texts(statement) == []
    most = {None: 2, 3: 3, 1: 8}[window]
    assert [each["values_per_person"] for each in statement["indicators"]] == [1, most, most]
    assert [each["unions_of_days"] for each in statement["indicators"]] == [True, window == 1, window == 1]
    found = statement["guarantee"]["window"]
    assert (found["days"], found["nominal"]) == (window or 7, "2/1")
    assert Decimal("1.99") < Decimal(found["epsilon"]) <= 2
    # The value that lasts is in all combinations of a person.
    assert Decimal(statement["indicators"][0]["epsilon_attribute"]) > Decimal("1.99") * most
    assert set(believed(statement)) - {"first_day", "spec_sha256"} == {"voided_days"}
    stay = statement["plan"]["spec"]["indicators"][1]
    for change in ({"max_values": most + 1}, {"scale": {}}, {"moves": {}}):
        before = dict(stay)
        stay |= change
        assert not check_statement.Plan(statement).has_valid_window(), change
        stay.clear()
        stay |= before
    assert check_statement.Plan(statement).has_valid_window()
    for change in ({"window_days": None}, {"window_days": 9}, {"window_days": 0}):
        forged = copy.deepcopy(statement)
        forged["plan"]["spec"] |= change
        assert any(text.startswith("plan.spec, window_days") for text in texts(forged)), change
    forged = copy.deepcopy(statement)
    forged["plan"]["spec"]["location"] = {}
    assert not check_statement.Plan(forged).has_valid_window()
    del statement["guarantee"]["window"]
    assert [text.split(":")[0] for text in texts(statement)] == ["guarantee.window"]


def test_a_plan_without_streams_has_no_window():
    statement = written(factory.create(factory.GENDER, factory.STAY))
    assert "window" not in statement["guarantee"]
    statement["guarantee"]["window"] = {"days": 7, "epsilon": "1", "nominal": "1/1"}
    assert [text.split(":")[0] for text in texts(statement)] == ["guarantee.window"]
    statement["plan"]["spec"]["window_days"] = 7
    assert any(text.startswith("plan.spec, window_days") for text in texts(statement))


def test_keys_of_hashed_values_leave_other_plans_and_statements_as_they_were():
    """The hash of a plan is that of these keys, whose values have not changed."""
    statement = written(factory.create(factory.GENDER, factory.STAY))
    assert set(statement["plan"]["spec"]) == {"mechanism", "unit", "version", "days", "indicators"}
    for entry in statement["plan"]["spec"]["indicators"]:
        assert set(entry) == {"slug", "kind", "domain_size", "epsilon", "max_values"}
    for entry in statement["indicators"]:
        assert {"threshold"} == {name for name in entry if "threshold" in name or "nominal" in name} - {
            "threshold_out_of", "nominal_epsilon",
        }  # fmt: skip


def test_it_agrees_with_daily_joint_indicators():
    both = factory.joint("both", factory.AGE, factory.STAY, kind="daily", max_values=3)
    factory.create(factory.AGE, factory.STAY, both, epsilon="0.5", unit="attribute")
    statement = written(Study.objects.get())
    assert texts(statement) == []
    age, stay, joint = statement["indicators"]
    losses = [Decimal(each["epsilon_attribute"]) for each in (age, stay, joint)]
    assert losses[0] > Decimal("1.49") and max(losses[1:]) <= Decimal("0.5")
    age["epsilon_attribute"] = joint["epsilon_attribute"]
    assert [text.split(":")[0] for text in texts(statement)] == ["indicator age, epsilon_attribute"]
    asked = statement["plan"]["spec"]["indicators"]
    for change in ([*asked[:2], asked[2] | {"kind": "static"}], [*asked, asked[2] | {"slug": "again"}]):
        statement["plan"]["spec"]["indicators"] = change
        assert any(text.startswith("plan.spec, parts") for text in texts(statement))


def leaves(value, path=()):
    if isinstance(value, dict):
        for key, below in value.items():
            if key not in TYPED or path[:2] == ("plan", "spec"):
                yield from leaves(below, (*path, key))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from leaves(below, (*path, index))
    elif isinstance(value, bool | int | float) or (isinstance(value, str) and NUMBER.fullmatch(value)):
        yield path


def changed(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return round(value + 0.1, 1)
    last = value[-1]
    return value[:-1] + ("8" if last == "9" else chr(ord(last) + 1))


def halved(value):
    if isinstance(value, bool) or (isinstance(value, str) and ("-" in value or len(value) == 64)):
        return changed(value)
    if isinstance(value, int | float):
        return value // 2 if isinstance(value, int) else round(value / 2, 1)
    if "/" in value:
        half = Fraction(value) / 2
        return f"{half.numerator}/{half.denominator}"
    return str(int(value) // 2) if value.isdigit() else f"{FINE.divide(Decimal(value), 2):f}"


def tampered(statement, path, by=changed):
    found = copy.deepcopy(statement)
    parent = found
    for key in path[:-1]:
        parent = parent[key]
    parent[path[-1]] = by(parent[path[-1]] if isinstance(parent, list) else parent.get(path[-1]))
    return found


def believed(statement, *others, part=None):
    """Names of numbers that nothing is said about when they are changed or halved, but for the plan itself.

    Values that are only used to compute others could be forged together with all that follows from them.
    """
    for path in (path for path in leaves(statement) if part in (None, path[0])):
        key = next(key for key in reversed(path) if isinstance(key, str) and key not in GRID_KEYS)
        for forged in (tampered(statement, path, by) for by in (changed, halved)):
            places = [text.split(": ")[0] for text in texts(forged, *others)]
            is_said = places if path[:2] == ("plan", "spec") else any(key in each for each in places)
            if forged != statement and not is_said:
                yield key


@pytest.mark.parametrize("mechanism", ["smp-grr", "smp-question"])
def test_each_number_of_moves_is_derived_and_other_plans_of_them_are_refused(mechanism):
    trips = factory.moves("trips", "a", "b", "c", max_values=3)
    statement = written(factory.create(factory.GENDER, trips, epsilon="0.7", mechanism=mechanism))
    assert texts(statement) == []
    assert statement["indicators"][1]["moves"] == {"places": 3, "per_day": 6}
    assert not statement["indicators"][1]["unions_of_days"]
    assert set(believed(statement)) == {"voided_days"}
    for change in (
        {"moves": {"places": 4, "per_day": 6}},
        {"moves": {"places": 3, "per_day": 0}},
        {"kind": "static", "max_values": None},
    ):
        forged = copy.deepcopy(statement)
        forged["plan"]["spec"]["indicators"][1] |= change
        assert any(text.startswith("plan.spec, moves") for text in texts(forged)), change


@pytest.mark.parametrize(("items", "size"), [("places", 4), ("pairs", 4)])
def test_each_number_of_visits_is_derived_and_other_plans_of_them_are_refused(items, size):
    statement = written(
        factory.create(factory.GENDER, factory.visits("seen", items, "a", "b", "c", per_day=2))
    )
    assert texts(statement) == []
    asked = {"places": 3, "per_day": 2, "items": items}
    assert statement["indicators"][1]["moves"] == asked
    assert len(statement["indicators"][1]["categories"]) == size
    for change in ({"places": 5}, {"items": "moves"}, {"items": "trips"}):
        forged = copy.deepcopy(statement)
        forged["plan"]["spec"]["indicators"][1]["moves"] |= change
        assert any(text.startswith("plan.spec, moves") for text in texts(forged)), change
    del statement["indicators"][1]["moves"]["items"]
    assert any("indicator seen, moves.items" in text for text in texts(statement))


@pytest.mark.parametrize("mechanism", ["smp-grr", "spl-grr"])
def test_each_number_of_presence_is_derived(mechanism):
    plan = planned(mechanism, presence_epsilon=Decimal(1), presence_days=2)
    statement = written(factory.create(factory.GENDER, factory.STAY, plan=plan))
    assert texts(statement) == []
    # How far days were closed is no claim; the size of the noise is, to its last digit.
    assert set(believed(statement)) == {"noisy_through", "voided_days"}


@pytest.mark.parametrize("hidden", [{}, {"presence_epsilon": Decimal(1), "presence_days": 2}])
def test_each_number_of_slots_is_derived(hidden):
    plan = planned("smp-grr", **hidden)
    statement = written(factory.create(factory.GENDER, plan=plan, slots=SLOTS, days=8))
    exact = replace(SLOTS, epsilon_day=None, delta=None)
    other = written(factory.create(factory.GENDER, slug="other", slots=exact, days=8))
    assert texts(statement) == texts(other, statement) == []
    day = next(row for row in statement["slots"]["losses"] if row["unit"] == "day")
    assert Decimal(day["absent"]["epsilon"]) <= SLOTS.epsilon_day
    assert other["slots"] | {"losses": [], "mechanism": "none", "with_presence": None} == other["slots"]
    # How far people are held is no claim.
    expected = {"hold_minutes"} | ({"noisy_through"} if hidden else set())
    assert set(believed(statement)) == expected


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_each_number_of_sums_is_derived_and_said_of_one_day_only(mechanism):
    statement = written(factory.published(factory.GENDER, factory.AGE, mechanism=mechanism, days=1, n=9000))
    assert texts(statement) == []
    assert set(believed(statement, part="sums")) == set()  # the rest: test_each_number_is_derived
    longer = written(factory.published(factory.GENDER, slug="longer", n=9000))
    forged = longer | {"sums": statement["sums"] | {"indicators": statement["sums"]["indicators"][:1]}}
    assert "sums: there is no such bound for this study" in texts(forged)


# They have separate tests, with combinations.
OF_OTHER_TESTS = {"smp-question", "smp-loloha", "smp-allomfree", "smp-stream"}


@pytest.mark.parametrize("mechanism", sorted({*MECHANISMS} - OF_OTHER_TESTS))
def test_each_number_is_derived(mechanism):
    plan = planned(mechanism, epsilon_profile=Decimal("2.5"))
    study = factory.create(factory.GENDER, replace(factory.STAY, max_values=2), plan=plan)
    located = factory.create(factory.AGE, slug="places", location=PLACES)
    first, second = written(study), written(located)
    assert texts(first, second) == texts(second, first) == []
    # Day and plan tell which row is the other study's: changed, "it is not among them".
    row = {"first_day", "spec_sha256"}
    assert set(believed(first, second)) - row == {"epsilon_profile_cap", "voided_days"}
    if mechanism == "smp-grr":  # places have none: once is enough
        assert set(believed(second, first)) - row == {"voided_days"}


@pytest.mark.parametrize("name", ["sampled_epsilon", "angle_step"])
def test_software_that_draws_other_places_is_found_though_all_its_figures_fit(monkeypatch, name):
    honest = getattr(planar_laplace, name)
    for module in (planar_laplace, location):
        forged = lambda *given, **grid: honest(*given, **grid) * Decimal("0.995")  # noqa: E731
        monkeypatch.setattr(module, name, forged, raising=False)
    places = replace(PLACES, radius_m=200 + len(name))  # distinct: the drawn noise is cached
    found = texts(written(factory.create(factory.GENDER, location=places)))
    assert next(text for text in found if name in text).startswith(f"location.{name}")


@settings(max_examples=30)
@given(
    level=st.fractions("1/10", 8, max_denominator=10**6), radius_m=st.integers(20, 5000),
    step_m=st.integers(10, 2000), range_m=st.integers(2000, 200_000),
)  # fmt: skip
def test_what_is_drawn_of_places_follows_from_level_radius_and_grid(level, radius_m, step_m, range_m):
    epsilon = level / radius_m
    try:
        drawn = planar_laplace.precision_of(epsilon, step_m=step_m, range_m=range_m).sampled
        step = Fraction(planar_laplace.angle_step(epsilon, step_m=step_m, range_m=range_m))
    except LdpError:
        drawn = step = None
    found = check_statement.angle_step(epsilon, side=step_m, range_m=range_m)
    q = Fraction(0) if found is None else step_m / (range_m * found)
    assert check_statement.sampled_epsilon(epsilon, side=step_m, q=q) == drawn
    assert step in (None, found)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("guarantee", "voided_days"), -2), (("plan", "spec", "indicators", 1, "max_values"), -3),
        (("plan", "spec", "indicators", 0, "max_values"), 1), (("plan", "spec", "days"), 63),
        (("plan", "spec", "mechanism"), "smp-sue"), (("plan", "spec", "epsilon"), "1/1"),
        (("plan", "spec", "shares"), [str(2**62), str(2**63)]),
        (("plan", "spec", "indicators", 0, "epsilon"), "-1"),
        (("composition", "studies", 1, "epsilon_profile"), "-1"),
    ],
)  # fmt: skip
def test_a_plan_that_no_mechanism_can_keep_is_found(path, value):
    study = factory.create(factory.GENDER, factory.STAY)
    factory.create(factory.GENDER, slug="other")
    forged = tampered(written(study), path, lambda _: value)
    rules = ("is not of a plan that can be kept", "is not a number of days", "is below the loss of one value")
    assert any(text.endswith(rules) for text in texts(forged))


def test_a_cap_that_is_not_kept_a_limit_and_a_study_that_are_left_out_are_found():
    study, other = factory.create(), factory.create(factory.GENDER, slug="other")
    mine, its = written(study), written(other)
    its["plan"]["epsilon_profile_cap"] = "0.9"
    assert texts(its) == ["plan.epsilon_profile_cap: is 0.9, below the certified loss per profile"]
    mine["not_protected"] = [row for row in mine["not_protected"] if row["name"] != "changes"]
    assert texts(mine) == ["not_protected, changes: says False, it is True"]
    mine = written(study)
    mine["retention"].insert(0, mine["retention"][0] | {"name": "key", "date": "2024-06-03"})
    assert len(texts(mine)) == 1  # one name, two dates
    mine, its = written(study), written(other)
    rows = mine["composition"]["studies"]
    mine["composition"] |= {"studies": [row for row in rows if row["is_this"]]}
    for name in ("epsilon_profile", "epsilon_attribute"):
        mine["composition"][name] = mine["guarantee"][name]
    assert texts(mine) == []  # alone it cannot be known
    assert texts(mine, its) == ["composition.studies: other of the other file is not among them"]


def test_command_names_differences_and_what_it_cannot_read(tmp_path, capsys):
    statement = written(factory.create())
    file = tmp_path / "statement.json"
    file.write_text(json.dumps(tampered(statement, ("guarantee", "epsilon"))))
    assert check_statement.main([str(file)]) == 1
    said = capsys.readouterr().out
    assert (said.startswith("guarantee.epsilon: says 3.99"), "1 differ" in said) == (True, True)
    honest = json.dumps(statement)
    twice = honest.replace('"epsilon_profile"', '"epsilon_profile": "0.001", "epsilon_profile"')
    for text in ("{}", "[]", "not JSON", '{"plan": {"spec": 1}}', twice):
        file.write_text(text)
        assert check_statement.main([str(file)]) == 2
    assert check_statement.main([str(tmp_path / "none.json")]) == 2
    assert "not a statement that can be checked" in capsys.readouterr().err


def asked(index, kind, k, most):
    of_kind = {"column": None, "derive": "visit_duration", "max_values": most} if kind == "daily" else {}
    return factory.indicator(f"i{index}", *(f"c{code}" for code in range(k)), kind=kind, **of_kind)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(
    kinds=[("daily", 2, None)], mechanism="smp-loloha", unit="profile", epsilon=Decimal("8.051"), days=33,
    voided_days=3, presence=None,
)  # fmt: skip
@given(
    kinds=st.lists(
        st.tuples(st.sampled_from(["static", "daily"]), st.integers(2, 60), st.none() | st.integers(1, 5)),
        min_size=1, max_size=6,
    ),
    mechanism=st.sampled_from(MECHANISMS), unit=st.sampled_from(UNITS),
    epsilon=st.decimals("0.01", "12", places=3), days=st.integers(5, 62), voided_days=st.integers(0, 3),
    presence=st.none() | st.tuples(st.decimals("0.01", "4", places=2), st.integers(1, 5)),
)  # fmt: skip
def test_random_plans_certify_at_most_the_nominal_and_the_script_agrees(
    db, kinds, mechanism, unit, epsilon, days, voided_days, presence
):
    # Refused with others: their reports change more counts than one a day.
    hidden, present = (mechanism in ("smp-grr", "spl-grr") and presence) or (None, None)
    plan = planned(mechanism, unit=unit, epsilon=epsilon, presence_epsilon=hidden, presence_days=present)
    if mechanism == "smp-stream":  # the days of answers follow from its window
        kinds = [(kind, k, None) for kind, k, _ in kinds]
    with transaction.atomic():
        try:
            study = factory.create(*(asked(i, *each) for i, each in enumerate(kinds)), plan=plan, days=days)
        except LdpError:
            assert mechanism.startswith("rsfd")  # daily values are no secret there if one value is promised
            assert unit == "attribute"
            return
        if any(kind == "daily" for kind, _, _ in kinds):
            Plan.objects.update(voided_days=voided_days)
        statement = written(study)
        transaction.set_rollback(True)
    guarantee = statement["guarantee"]
    assert Fraction(guarantee["epsilon"]) <= Fraction(guarantee[f"nominal_{unit}"])
    for entry in statement["indicators"]:
        assert Fraction(entry["epsilon"]) <= Fraction(entry["nominal_epsilon"])
    if hidden is not None:
        lost = statement["presence"]
        assert Fraction(lost["epsilon"]) <= Fraction(lost["nominal_epsilon"]) == 2 * Fraction(hidden)
        assert statement["composition"]["epsilon_presence"] == lost["epsilon"]
    assert texts(statement) == []
