"""What a text means, looked up in the compiled table and worked out slowly from the rule."""
# ruff: noqa: E501  (a table reads best with one rule a line)

from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mobility.profiles import NO_ANSWER
from mobility.profiles.ages import BIRTH_YEAR, BirthRule
from mobility.profiles.rules import ValueRule, case_problem
from tests.mobility.profiles.test_ages import age_on

CATEGORIES = ("F", "M", "été", "<18", "18+")
TEXTS = (
    "H",
    "h",
    "F",
    "f",
    "m",
    "25",
    "2500",
    "25000",
    "ÉTÉ",
    "Été",
    "été",
    "x",
    "",
    " H ",
    "été\t",
    "ß",
    "SS",
)
BANDS = {"<18": (0, 17), "18+": (18, None)}
REFERENCE = date(2020, 2, 29)

values = st.dictionaries(
    st.sampled_from(["H", "25", "Été", "m", "ß", "2019"]), st.sampled_from([*CATEGORIES, ""]), max_size=4
)
otherwise = st.sampled_from([None, "", "M"])


def meaning(text: str, rule: ValueRule) -> str | None:
    """Category, "" for no answer, None for a rejected row: by the words of the rule, one text at a time."""
    text = text.strip()
    if not text:
        return ""
    if rule.prefix:
        text = text[: rule.prefix]
    for key, category in rule.values.items():
        if same(text, key, rule):
            return category
    if rule.birth is not None:
        band = band_of(text, rule.birth)
        return band or rule.otherwise
    if not rule.prefix:
        for category in CATEGORIES:
            if same(text, category, rule):
                return category
    return rule.otherwise


def same(text: str, key: str, rule: ValueRule) -> bool:
    if not rule.ignore_case or text == key:
        return text == key
    return len(text) == len(key) and all(
        a in (b, b.lower(), b.upper()) for a, b in zip(text, key, strict=True)
    )


def band_of(text: str, birth: BirthRule) -> str | None:
    try:
        born = datetime.strptime(text, birth.pattern).date()
    except ValueError:
        return None
    if born.strftime(birth.pattern) != text or born.year < 1880 or born > birth.reference:
        return None
    by_year = birth.pattern == BIRTH_YEAR
    age = birth.reference.year - born.year if by_year else age_on(born, birth.reference)
    return "<18" if age < 18 else "18+"


def looked_up(text: str, rule: ValueRule) -> str | None:
    code = rule.compiled(CATEGORIES).code_of(text.encode())
    return None if code is None else "" if code == NO_ANSWER else CATEGORIES[code]


@given(values, st.booleans(), otherwise, st.sampled_from(TEXTS))
def test_texts(values: dict[str, str], ignore_case: bool, otherwise: str | None, text: str) -> None:
    rule = ValueRule(values=values, ignore_case=ignore_case, otherwise=otherwise)
    if case_problem(rule, CATEGORIES) is None:
        assert looked_up(text, rule) == meaning(text, rule)


@given(
    st.dictionaries(st.sampled_from(["25", "H1", "h2", "75"]), st.sampled_from([*CATEGORIES, ""])),
    st.booleans(),
    otherwise,
    st.sampled_from(["25000", "25", "2", "H1x", "h1", "H2", "éé", "2é5", "", " 25 1"]),
)
def test_prefixes(values: dict[str, str], ignore_case: bool, otherwise: str | None, text: str) -> None:
    rule = ValueRule(values=values, ignore_case=ignore_case, otherwise=otherwise, prefix=2)
    assert looked_up(text, rule) == meaning(text, rule)


@pytest.mark.parametrize("pattern", [BIRTH_YEAR, "%d/%m/%Y", "%Y%m%d"])
def test_births(pattern: str) -> None:
    rule = ValueRule(
        birth=BirthRule(reference=REFERENCE, bands=BANDS, pattern=pattern), values={"2019": ""}, otherwise="M"
    )
    table = rule.compiled(CATEGORIES)
    days = [date(year, month, day) for year in (1879, 1880, 2001, 2002, 2003, 2020, 2021)
            for month, day in ((1, 1), (2, 28), (3, 1), (12, 31))]  # fmt: skip
    for text in [
        *(day.strftime(pattern) for day in days),
        "29/02/2004",
        "29/02/2003",
        "1/6/1990",
        "2019",
        "x",
    ]:
        code = table.code_of(text.encode())
        assert code is not None
        assert ("" if code == NO_ANSWER else CATEGORIES[code]) == meaning(text, rule), text


def test_values_win_over_categories_of_the_same_text() -> None:
    assert looked_up("M", ValueRule(values={"M": "F"})) == "F"
    assert looked_up("m", ValueRule(values={"M": "F"}, ignore_case=True)) == "F"


@pytest.mark.parametrize(
    ("rule", "categories", "problem"),
    [
        (ValueRule(ignore_case=True), ["F", "M"], None),
        (ValueRule(ignore_case=True), ["twelveletter"], None),
        (ValueRule(ignore_case=True), ["thirteenletter"], 'must be false: "thirteenletter" has more than 12 letters; list under values how it is written'),
        (ValueRule(ignore_case=True, prefix=2, values={"25": "thirteenletter"}), ["thirteenletter"], None),
        (ValueRule(ignore_case=True, values={"h": "M", "H": "F"}), ["F", "M"], 'must be false: "h" and "H" differ in nothing else'),
        (ValueRule(ignore_case=True), ["f", "F"], 'must be false: "f" and "F" differ in nothing else'),
        (ValueRule(), ["f", "F", "thirteenletter"], None),
        (ValueRule(ignore_case=True), [f"{i}twelveletter" for i in range(50)], "must be false: there are more than 200,000 ways of writing the texts"),
    ],
)  # fmt: skip
def test_case_can_be_ignored_where_it_is_exact(
    rule: ValueRule, categories: list[str], problem: str | None
) -> None:
    assert case_problem(rule, categories) == problem
