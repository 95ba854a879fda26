"""What is foretold of a setting, how it is judged, and what it says in words."""

import re
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from django.utils import translation

from ldp import LdpError, PlanSpec
from ldp.simulation import Crowd
from reports import simulator_words as words
from reports.models import Plan
from reports.simulator import (
    Question,
    Reading,
    Setting,
    categories_possible,
    crowd_so_far,
    epsilon_wanted,
    questions_of_definition,
    questions_of_study,
    simulate,
    visitors_needed,
)
from reports.simulator_advice import advice
from reports.simulator_example import (
    MOST_BARS,
    MOST_PEOPLE,
    draw_example,
    example_figure,
    example_report,
    example_shares,
)
from reports.status import WIDEST_INTERVAL, Status
from tests.reports import report_factory as factory


def question(slug: str, size: int, **changes: object) -> Question:
    return Question(slug=slug, name=slug.title(), kind="static", domain_size=size, **changes)  # type: ignore[arg-type]


def make(*sizes: int, visitors: float = 10_000, **changes: object) -> Setting:
    setting = Setting(
        mechanism="smp-grr",
        unit="profile",
        epsilon=Decimal(1),
        days=7,
        crowd=Crowd(visitors=visitors, days_present=2),
        questions=tuple(question(f"i{number}", size) for number, size in enumerate(sizes, start=1)),
    )
    return replace(setting, **changes)  # type: ignore[arg-type]


def plain(text: str) -> str:
    return text.replace("\u202f", " ")


class TestReading:
    def test_noise_is_what_pages_do_not_show(self) -> None:
        """It says so where the estimator really gives intervals that are too wide, and not before."""
        found = simulate(make(7, visitors=1000))
        limit = visitors_needed(found.rows[0], half_width=WIDEST_INTERVAL / 2)
        for factor, expected in ((0.85, Reading.NOISE), (1.15, Reading.IMPRECISE)):
            simulation = simulate(make(7, visitors=limit * factor))
            assert simulation.rows[0].day_reading == expected
            example = draw_example(simulation.plan, 0, n_visitors=round(limit * factor))
            assert example is not None
            status = example_report(example, question="").status
            assert (status == Status.NOT_RELIABLE) == (expected == Reading.NOISE)

    @pytest.mark.parametrize(
        ("size", "visitors", "expected"),
        [
            (3, 20_000, Reading.CLEAR),
            (37, 20_000, Reading.LARGE_ONLY),
            (3, 500, Reading.IMPRECISE),
            (37, 500, Reading.NOISE),
        ],
    )
    def test_every_level(self, size: int, visitors: int, expected: Reading) -> None:
        assert simulate(make(size, visitors=visitors)).rows[0].day_reading == expected

    def test_every_level_has_a_word_and_a_meaning(self) -> None:
        assert [word for word, _ in words.reading_words()] == [words.reading_word(each) for each in Reading]


class TestWords:
    def test_of_the_plan_in_the_issue(self) -> None:
        """k with which GRR at epsilon 1 keeps 28 of 100."""
        simulation = simulate(make(8))
        assert words.truth_words(simulation.rows[0].channel) == (
            "The true answer is kept in 28 of 100 cases; each other category takes its place in 10."
        )
        (both,) = words.odds_words(simulation)
        assert "changes their odds by at most 2.72 times (epsilon 1)" in both

    def test_daily_values_add_up_for_all_values_of_a_person(self) -> None:
        daily = replace(question("visit", 5), kind="daily")
        one, every = words.odds_words(simulate(make(3, questions=(daily,))))
        assert "one value of a person changes their odds by at most 2.72 times" in one
        assert "at most 1 097 times (epsilon 7)" in plain(every)

    def test_of_marks_and_fakes(self) -> None:
        unary = simulate(make(8, mechanism="smp-oue")).rows[0].channel
        assert words.truth_words(unary) == (
            "The true category is marked in 50 of 100 cases, and each other category in 27."
        )
        faked = simulate(make(8, 8, mechanism="rsfd-grr")).rows[0].channel
        assert words.truth_words(faked).endswith("Of 100 reports, 50 are answers; the others are made up.")

    def test_hopeless_is_said_with_what_it_means(self) -> None:
        setting = make(22, 3, visitors=1000, epsilon=Decimal("0.5"))
        (warning,) = words.warnings(simulate(setting))
        assert "I1: with 1 000 visitors and 22 categories every bar of a day would be noise." in plain(
            warning
        )
        assert "is all shares that there are and more" in warning

    def test_days_below_the_small_cell_rule_are_not_shown(self) -> None:
        (warning,) = words.warnings(simulate(make(2, visitors=4000, small_cell=5000)))
        assert "no window with fewer than 5 000 visitors" in plain(warning)

    def test_exact_totals_and_noisy_ones(self) -> None:
        assert "is not protected" in words.totals_words(simulate(make(3)))
        noisy = words.totals_words(simulate(make(3, presence_epsilon=Decimal(1), presence_days=7)))
        # sd sqrt(7) x 9.89 (privacy_math.md G), its tails and whole persons; both spend epsilon 1
        found = re.search(r"± (\d+)\.", noisy)
        assert found is not None
        assert 1.96 * 7**0.5 * 9.89 < int(found[1]) < 1.96 * 7**0.5 * 9.89 + 3
        assert "(epsilon 2, for visitors and answers together)" in noisy

    @pytest.mark.parametrize(
        ("value", "text"), [(0.0241, "2.4 points"), (0.00035, "0.035 points"), (0.0, "0.0 points")]
    )
    def test_small_errors_keep_two_digits(self, value: float, text: str) -> None:
        assert words.points(value) == text

    def test_decimals_are_those_of_the_language(self) -> None:
        with translation.override("fr"):
            assert words.plus_minus(0.0241).endswith("2,4")


class TestAdvice:
    @pytest.fixture
    def setting(self) -> Setting:
        return make(12, 12, visitors=1500, epsilon=Decimal("0.6"))

    def test_each_change_does_what_it_says(self, setting: Setting) -> None:
        assert simulate(setting).rows[0].day_reading == Reading.NOISE
        tried = 0
        for each in advice(simulate(setting)):
            changed = setting
            for name, value in each.changes.items():
                if name == "visitors":
                    changed = replace(changed, crowd=Crowd(visitors=int(value), days_present=2))
                elif name.startswith("k-"):
                    slug = name.removeprefix("k-")
                    changed = replace(
                        changed,
                        questions=tuple(
                            replace(asked, domain_size=int(value)) if asked.slug == slug else asked
                            for asked in changed.questions
                        ),
                    )
                else:
                    changed = replace(changed, **{name: Decimal(value) if name == "epsilon" else value})  # type: ignore[arg-type]
            if "mechanism" not in each.changes and each.changes:
                assert min(row.day_reading != Reading.NOISE for row in simulate(changed).rows[:1])
                tried += 1
        assert tried == 3

    def test_nothing_where_nothing_is_hopeless(self) -> None:
        assert advice(simulate(make(3))) == []

    def test_most_categories_are_the_most(self, setting: Setting) -> None:
        most = categories_possible(setting, 0, half_width=0.25)
        assert most is not None
        for size, is_noise in ((most, False), (most + 1, True)):
            questions = (replace(setting.questions[0], domain_size=size), *setting.questions[1:])
            row = simulate(replace(setting, questions=questions)).rows[0]
            assert (row.day_reading == Reading.NOISE) == is_noise

    def test_not_even_two_categories(self, setting: Setting) -> None:
        assert categories_possible(setting, 0, half_width=0.001) is None


class TestRanking:
    def test_winner_is_named_with_its_reason(self) -> None:
        simulation = simulate(make(3, 37, mechanism="smp-grr"))
        reasons = " ".join(words.winner_words(simulation))
        assert "smp-adp is the most exact: each person answers one indicator" in reasons
        assert "marks (OUE) where there are many categories (I2), and GRR for the others" in reasons
        assert "The intervals of the one that is chosen here, smp-grr, are" in reasons

    def test_what_all_values_lose_is_minded(self) -> None:
        simulation = simulate(make(3, 3, 3, unit="attribute"))
        assert simulation.ranking[0].mechanism == "spl-grr"
        assert "would lose epsilon 3 with it, and 1 as" in " ".join(words.winner_words(simulation))

    def test_own_epsilons_are_left_out_where_the_mechanism_knows_none(self) -> None:
        own = (question("a", 3, epsilon=Decimal(2)), question("b", 3))
        sampled, split = make(questions=own), make(questions=own, mechanism="spl-grr")
        assert [float(each.epsilon) for each in simulate(sampled).plan.indicators] == [2, 1]
        assert [float(each.epsilon) for each in simulate(split).plan.indicators] == [0.5, 0.5]
        assert split.has_own


class TestExample:
    def test_shares_are_made_up_and_fall(self) -> None:
        assert example_shares(2) == pytest.approx((2 / 3, 1 / 3))
        assert sum(example_shares(37)) == pytest.approx(1)

    @pytest.mark.parametrize(
        "mechanism", ["smp-grr", "smp-oue", "smp-adp", "spl-grr", "rsfd-grr", "rsfd-ouez", "rsfd-adp"]
    )
    def test_noise_is_as_large_as_foretold(self, mechanism: str) -> None:
        """Over the categories of many indicators, each with answers of its own."""
        setting = make(*[12] * 12, mechanism=mechanism, visitors=30_000)
        simulation = simulate(setting)
        scores = []
        for row in simulation.rows:
            example = draw_example(simulation.plan, row.forecast.index, n_visitors=30_000)
            assert example is not None
            for share, value in zip(example.truth, example.estimates.frequency, strict=True):
                scores.append((value - share) / row.forecast.day.variance(share) ** 0.5)
        squares = np.square(scores)
        assert (
            abs(squares.mean() - 1) < 4 * (2 / squares.size) ** 0.5 * 1.2
        )  # categories go together a little

    def test_the_same_setting_shows_the_same_picture(self) -> None:
        plan = simulate(make(8)).plan
        draw_example.cache_clear()
        first = draw_example(plan, 0, n_visitors=5000)
        draw_example.cache_clear()
        second = draw_example(plan, 0, n_visitors=5000)
        assert first is not None
        assert second is not None
        assert np.array_equal(first.estimates.frequency, second.estimates.frequency)

    def test_capped_days_leave_fewer_answers(self) -> None:
        daily = replace(question("visit", 5), kind="daily", max_values=2)
        simulation = simulate(make(questions=(daily,)))
        example = draw_example(simulation.plan, 0, n_visitors=20_000)
        assert example is not None
        expected = 20_000 * 2 / 7
        assert abs(example.n_reports - expected) < 4 * (expected * 5 / 7) ** 0.5

    def test_presence_noise_is_in_it(self) -> None:
        exact, noisy = (
            simulate(make(3, presence_epsilon=epsilon, presence_days=7)).plan
            for epsilon in (None, Decimal(1))
        )
        one, other = (draw_example(plan, 0, n_visitors=10_000) for plan in (exact, noisy))
        assert one is not None
        assert other is not None
        assert np.all(other.estimates.std_error > one.estimates.std_error)

    def test_nobody_answers_of_few(self) -> None:
        plan = simulate(make(*[3] * 200, visitors=2)).plan
        assert None in {draw_example(plan, index, n_visitors=2) for index in range(5)}

    def test_not_more_people_are_drawn_than_a_page_has_time_for(self) -> None:
        example = draw_example(simulate(make(3)).plan, 0, n_visitors=10**9)
        assert example is not None
        assert example.n_visitors == MOST_PEOPLE

    def test_of_very_many_categories_the_first_are_drawn_for_fewer_people(self) -> None:
        example = draw_example(simulate(make(1000)).plan, 0, n_visitors=10**6)
        assert example is not None
        assert example.n_visitors == 20_000
        bars, _, truth = example_figure(example, question="Zone")["data"]
        assert len(bars["x"]) == len(truth["x"]) == MOST_BARS

    def test_figure_has_the_made_up_truth_beside_the_bars(self) -> None:
        example = draw_example(simulate(make(4)).plan, 0, n_visitors=10_000)
        assert example is not None
        bars, _, truth = example_figure(example, question="Age")["data"]
        assert truth["x"] == [round(100 * share, 4) for share in example.truth]
        assert len(bars["x"]) == 4


@pytest.mark.django_db(databases=["default", "vault"])
class TestStudies:
    def test_a_study_is_asked_as_its_plan_asks(self) -> None:
        own = replace(factory.AGE, epsilon=Decimal("0.5"), weight=Decimal(3))
        capped = replace(factory.STAY, max_values=2)
        study = factory.create(factory.GENDER, own, capped)
        spec = PlanSpec.from_json(Plan.objects.get(study=study).spec)
        setting = make(days=study.days, questions=questions_of_study(study), crowd=Crowd(visitors=100))
        assert replace(setting.plan_at(Decimal(1)), version=spec.version) == spec

    def test_a_draft_is_asked_as_its_definition_asks(self) -> None:
        definition = factory.definition(replace(factory.AGE, weight=Decimal(3)), factory.STAY)
        setting = make(
            days=definition.days, questions=questions_of_definition(definition), crowd=Crowd(visitors=100)
        )
        assert setting.plan_at(Decimal(1)) == definition.plan_spec()

    def test_crowd_so_far_is_what_was_counted(self) -> None:
        study = factory.create()
        people = factory.crowd(study)
        factory.publish(study, people)
        crowd = crowd_so_far(study)
        assert crowd is not None
        present = [int(people.present(day, day).sum()) for day in range(1, 5)]
        assert crowd.visitors == pytest.approx(sum(present) / 4)
        assert crowd.in_all(4) == pytest.approx(4000)

    def test_days_that_pages_hide_do_not_count(self) -> None:
        study = factory.create(small_cell=10**6)
        factory.publish(study, factory.crowd(study))
        assert crowd_so_far(study) is None


def test_wanted_error_of_one_indicator() -> None:
    setting = make(3, 37)
    one = epsilon_wanted(setting, half_width=0.05, slugs=["i1"], of_union=False)
    every = epsilon_wanted(setting, half_width=0.05, slugs=["i1", "i2"], of_union=False)
    assert one < every
    row = simulate(replace(setting, epsilon=every)).rows[1]
    assert row.day_half_width <= 0.05
    with pytest.raises(LdpError, match="half_width must be"):
        epsilon_wanted(setting, half_width=0.0001, slugs=["i1"], of_union=False)
    assert words.unreachable_words(setting, slugs=["i1"], of_union=False).startswith("No epsilon up to 20")


def test_an_unreachable_union_of_some_days_says_so() -> None:
    daily = replace(question("visit", 5), kind="daily", max_values=2)
    text = words.unreachable_words(make(questions=(daily,)), slugs=["visit"], of_union=True)
    assert "no union of days" in text
