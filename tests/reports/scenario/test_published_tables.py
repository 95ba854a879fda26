"""Tables of other providers: every problem with its place, bounds that hold, contradictions by name."""

import html
import json
import re
from datetime import date, timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command

from ldp.errors import LdpError
from reports.pages import tables as page
from reports.scenario import table_answers
from reports.scenario.published_tables import TableError, days_of, read_table

FIRST = date(2017, 5, 31)
NUMBER = "must be a whole number of at most 9 digits, or #"
# People by the days on which they came; 3 days, two categories.
PEOPLE = {
    "Resident": {(1,): 100, (1, 2): 50, (1, 2, 3): 30, (3,): 40},
    "Tourist": {(2,): 60, (1, 3): 25, (2, 3): 15},
}


def day(number: int) -> str:
    return (FIRST + timedelta(days=number - 1)).isoformat()


def volumes(people: dict[tuple[int, ...], int]) -> dict[tuple[int, int], int]:
    windows = [(a, b) for a in (1, 2, 3) for b in range(a, 4)]
    return {
        (a, b): sum(n for days, n in people.items() if any(a <= each <= b for each in days))
        for a, b in windows
    }


def rows(category: str, numbers: dict[tuple[int, int], object]) -> list[str]:
    return [f"{day(a)},{day(b)},{category},{number}" for (a, b), number in numbers.items()]


def everyone() -> dict[tuple[int, int], int]:
    of_each = [volumes(people) for people in PEOPLE.values()]
    return {window: sum(each[window] for each in of_each) for window in of_each[0]}


def file(path, lines: list[str], *, header: str = "first,last,category,volume"):
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def answer(capsys, *words: object, code: int = 0):
    if code:
        with pytest.raises(SystemExit) as ended:
            call_command("scenario_of_table", *map(str, words))
        assert ended.value.code == code
    else:
        call_command("scenario_of_table", *map(str, words))
    return json.loads(capsys.readouterr().out)


def test_bounds_of_all_and_of_each_category_hold_the_truth(tmp_path, capsys) -> None:
    lines = [line for name, people in PEOPLE.items() for line in rows(name, volumes(people))]
    table = file(tmp_path / "table.csv", lines)
    questions = {
        ("--present", f"{day(1)},{day(3)}"): lambda days: {1, 3} <= set(days),
        ("--present", day(1), "--absent", day(2)): lambda days: 1 in days and 2 not in days,
        ("--exactly", "2"): lambda days: len(days) == 2,
        ("--in-a-row", "2"): lambda days: {1, 2} <= set(days) or {2, 3} <= set(days),
    }
    for words, counts in questions.items():
        found = answer(capsys, table, *words)
        assert (found["first_day"], found["days"]) == ("2017-05-31", 3)
        assert (found["all"]["consistent"], found["all"]["slack"], found["all"]["conflicts"]) == (True, 0, [])
        parts = {name: sum(n for days, n in of.items() if counts(days)) for name, of in PEOPLE.items()}
        of_parts = [found["categories"][str(table)][name]["people"] for name in parts]
        for number, people in zip(parts.values(), of_parts, strict=True):
            assert people["least"] <= number <= people["most"]
        people = found["all"]["people"]
        assert people["least"] <= sum(parts.values()) <= people["most"] < sum(everyone().values())
        assert people["least"] >= sum(each["least"] for each in of_parts)
        assert people["most"] <= sum(each["most"] for each in of_parts)
        assert people["least"] <= people["estimate"] <= people["most"]
    assert "people" not in answer(capsys, table)["all"]


def test_hidden_number_is_an_interval(tmp_path, capsys) -> None:
    known = everyone() | {(2, 2): "#"}
    table = file(tmp_path / "hidden.csv", rows("", known))
    words = (table, "--present", day(2))
    assert answer(capsys, *words, code=1)["all"]["slack"] > 0  # there are far more than 19
    people = answer(capsys, *words, "--hidden-below", "1000")["all"]["people"]
    assert people["least"] <= everyone()[2, 2] <= people["most"]
    assert people["least"] < people["most"]
    assert read_table(table.read_bytes(), name="hidden.csv").n_hidden == 1


def test_files_that_differ_are_named_and_not_averaged(tmp_path, capsys) -> None:
    one = file(tmp_path / "one.csv", rows("", everyone() | {(1, 3): "#"}))
    other = file(tmp_path / "other.csv", rows("", everyone() | {(1, 1): 999}))
    found = answer(capsys, one, other, "--exactly", "1", code=1)["all"]
    assert found["sources"] == [str(one), str(other)]
    conflict = {"first": day(1), "last": day(1), "people": {str(one): [205, 205], str(other): [999, 999]}}
    assert conflict in found["conflicts"]
    assert "people" not in found
    lines = [line for name, people in PEOPLE.items() for line in rows(name, volumes(people))]
    both = file(tmp_path / "both.csv", [*rows("", everyone() | {(3, 3): 5}), *lines])
    (conflict,) = answer(capsys, both, code=1)["all"]["conflicts"]
    assert conflict["people"] == {str(both): [5, 5], f"{both}, sum of categories": [110, 110]}


def test_numbers_that_no_people_have_are_named_with_what_is_missing(tmp_path, capsys) -> None:
    table = file(tmp_path / "wrong.csv", rows("", everyone() | {(1, 3): everyone()[1, 2] - 10}))
    found = answer(capsys, table, "--exactly", "1", code=1)["all"]
    assert (found["consistent"], found["slack"]) == (False, 10)
    assert found["moved"]
    assert all(day(1) <= each["first"] <= each["last"] <= day(3) for each in found["moved"])
    assert sum(abs(each["by"]) for each in found["moved"]) == 10


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("2017-05-31,2017-06-01,a", "line 3: a row must have 4 columns, but this one has 3"),
        ("31/05/2017,2017-06-01,a,5", "line 3, column first: must be a date such as 2017-05-31"),
        ("2017-05-31,,a,5", "line 3, column last: must be a date such as 2017-05-31"),
        ("2017-06-01,2017-05-31,a,5", "line 3, column last: must not be before “first” (2017-06-01), but is"),
        ("2017-05-31,2017-06-01,a,-5", f"line 3, column volume: {NUMBER}"),
        ("2017-05-31,2017-06-01,a,5.5", f"line 3, column volume: {NUMBER}"),
        ("2017-05-31,2017-06-01,a,", f"line 3, column volume: {NUMBER}"),
        ("2017-05-31,2017-05-31,a,7", "line 3: the same date range and category already appear on line 2"),
    ],
)  # fmt: skip
def test_each_problem_has_its_file_line_and_column(line, problem, tmp_path) -> None:
    table = file(tmp_path / "t.csv", ["2017-05-31,2017-05-31,a,5", line])
    with pytest.raises(TableError) as refused:
        read_table(table.read_bytes(), name="t.csv")
    assert str(refused.value).startswith(f"t.csv, {problem}")


def test_all_problems_are_told_at_once_and_no_value_of_a_row(tmp_path) -> None:
    table = file(tmp_path / "t.csv", ["x,y,secret,z", *["2017-05-31,2017-05-31,a,?"] * 30])
    with pytest.raises(TableError) as refused:
        read_table(table.read_bytes(), name="t.csv")
    lines = str(refused.value).splitlines()
    places = [line.partition(":")[0].removeprefix("t.csv, line ") for line in lines[:4]]
    assert places == ["2, column first", "2, column last", "2, column volume", "3, column volume"]
    assert (len(lines), lines[-1]) == (21, "t.csv: further problems: 13")
    assert "secret" not in str(refused.value)


def test_files_as_spreadsheets_write_them_are_read() -> None:
    rows_ = ["\ufeffLast;Volume;First", "2017-06-01;1500;2017-05-31", ";;", "2017-05-31;#;2017-05-31", ""]
    content = "\r\n".join(rows_).encode()
    for end in (b"\r\n", b"\n", b"\r"):
        table = read_table(content.replace(b"\r\n", end), name="t.csv")
        assert table.cells[-1].line == 4
    assert [(cell.first, cell.limits) for cell in table.cells] == [(FIRST, (1500, 1500)), (FIRST, (1, 19))]
    assert days_of([table]) == (FIRST, 2)


def test_what_is_no_such_table_is_refused(tmp_path) -> None:
    for content, problem in {
        b"first,last,volume\n2017-05-31,2017-05-31,\xff\n": "t.csv, line 2: text must be UTF-8; save",
        b'first,last,volume\n"' + b"x" * 200_000: "t.csv, line 2: a field is too long; a quotation",
        b"first,volume\n": "column last: this column is missing from the header; columns found: 2",
        b"first,last,volume,Volume\n": "column volume: this column must appear exactly once in the header",
        b"first,last,volume\n": "t.csv: the table has a header but no rows; add at least one row",
        b"x" * 5_000_001: "the table is too large: it has 5,000,001 bytes, and the limit is 5,000,000",
    }.items():
        with pytest.raises(TableError) as refused:
            read_table(content, name="t.csv")
        assert problem in str(refused.value)
    table = file(tmp_path / "t.csv", rows("a", {(1, 1): 5, (1, 3): 9}) + rows("b", {(1, 3): 9}))
    far = file(tmp_path / "far.csv", [*rows("", {(1, 1): 5}), "2019-01-01,2019-01-01,,5"])
    for words, problem in {
        (table,): "t.csv, line 2, column category: a date range must have all 2 categories",
        (far,): "date ranges can span at most 62 days, but they span 581",
        (tmp_path / "nope.csv",): "FILE must be a file that can be read",
        (table, table): "each FILE must be named once",
        (table, "--hidden-below", "1"): "must be at least 2, not 1",
        (far.parent / "t.csv", "--exactly", "1", "--in-a-row", "1"): "ask one question",
        (table, "--present", "soon"): "--present must be dates such as 2017-05-31, got soon",
        (table, "--absent", "2018-01-01"): "--absent must be days from 2017-05-31 to 2017-06-02, got 2018-",
        (table, "--absent", ""): "present or absent must name a day",
        (table, "--exactly", "9"): r"k must be in \[1, 3\]",
    }.items():
        with pytest.raises(CommandError, match=problem):
            call_command("scenario_of_table", *map(str, words))


def asked(reader, *tables: list[str], status: int = 200, language: str = "en", **posted: str) -> str:
    files = [
        SimpleUploadedFile(f"{number}.csv", "\n".join(["first,last,category,volume", *lines]).encode())
        for number, lines in enumerate(tables)
    ]
    sent = {"hidden_below": "20", **({"tables": files} if files else {}), **posted}
    response = reader.post("/tables/", sent, headers={"accept-language": language})
    assert response.status_code == status
    return response.content.decode()


def said(body: str) -> str:
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", body)).split())


@pytest.mark.django_db
def test_page_answers_each_question_from_the_tables_it_carries_along(reader, tmp_path, capsys, monkeypatch):
    lines = [line for name, people in PEOPLE.items() for line in rows(f'"{name}s"', volumes(people))]
    table, body = file(tmp_path / "t.csv", lines), asked(reader, lines)
    monkeypatch.setattr(page, "MAX_PAGE_BYTES", table.stat().st_size)
    assert "people visited on all 3 days." in said(body)
    for words, posted in {
        ("--present", f"{day(1)},{day(3)}"): {"kind": "days", **{f"day-{day(n)}": "present" for n in (1, 3)}},
        ("--exactly", "2"): {"kind": "exactly", "k": "2"},
        ("--in-a-row", "2"): {"kind": "nights", "k": "1"},
    }.items():
        kept = dict(re.findall('type="hidden" name="(name|content)" value="([^"]*)"', body))
        kept["content"] = kept["content"].replace("\n", "\r\n")  # as browsers send it
        body = asked(reader, **{name: html.unescape(value) for name, value in kept.items()}, **posted)
        found = answer(capsys, table, *words)
        people = found["all"]["people"]
        least, most = people["least"], people["most"]
        assert (f"{most} people " if least == most else f"Between {least} and {most} people ") in said(body)
        assert "The numbers are consistent" in said(body)
        for name, each in found["categories"][str(table)].items():
            assert re.search(rf"{name} {each['people']['least']}( to {each['people']['most']})? ", said(body))
    assert "0.csv (12 nombres, masqués : 0)" in said(asked(reader, lines, language="fr"))


@pytest.mark.django_db
def test_page_names_what_contradicts_and_answers_nothing_from_it(reader) -> None:
    text = said(asked(reader, rows("", everyone()), rows("", everyone() | {(1, 1): 999})))
    assert "Wed 31 May 2017 0.csv: 205 1.csv: 999" in text
    text += said(asked(reader, rows("", everyone() | {(1, 3): everyone()[1, 2] - 10})))
    assert "only if they changed by at least 10 in total." in text and "Tue" not in text
    without = said(asked(reader, rows("", {(1, 1): 5, (3, 3): 9})))
    assert "2017-06-01 is not in any date range with a known number of visitors" in without
    assert "Between" not in text and "The best estimate" not in text


@pytest.mark.django_db
def test_page_says_what_is_wrong_with_tables_and_questions(reader, monkeypatch) -> None:
    good = rows("", everyone())
    for tables, posted, problem in (
        ([["31/05/2017,2017-06-01,,5"]], {}, "0.csv, line 2, column first: must be a date such as 2017-"),
        ([], {}, "Choose a file first."),
        ([], {"name": "t.csv"}, "Choose a file first."),
        ([rows("", {(1, 1): 5})], {}, "at least two days"),
        ([good], {"hidden_below": "x"}, "must be a whole number"),
        ([good] * 11, {}, "at most 10 files"),
        ([["x" * 1_500_000]], {}, "The files must not exceed 1,500,000 bytes in total"),
        ([["x" * 3_000_000]], {}, "The files must not exceed 1,500,000 bytes in total"),
    ):
        text = said(asked(reader, *tables, status=400, **posted))
        assert problem in text and "Tables (CSV)" in text
    wrong = said(asked(reader, good, status=400, kind="exactly", k="9"))
    assert "from 1 to 3" in wrong and "people visited on all 3 days." in wrong
    monkeypatch.setattr(page, "MOST_S", 0.02)
    slow = asked(reader, good, status=400, kind="exactly", k="2")
    assert "takes too long to answer on this page" in slow and 'name="content"' in slow
    monkeypatch.setattr(page, "MOST_S", 0)
    assert "takes too long to answer on this page" in said(asked(reader, good, status=400))
    assert "Tables (CSV)" in said(reader.get("/tables/").content.decode())
    assert 'href="/tables/"' in reader.get("/studies/").content.decode()


@pytest.mark.django_db
def test_a_solver_that_gives_up_is_told_in_the_language_of_the_page(reader, monkeypatch) -> None:
    def give_up(*_) -> None:
        raise LdpError("got: HiGHS Status 4")

    unsolved = "Le calcul pour cette question (un programme linéaire) a échoué."
    for name, status in (("table_people", 200), ("fit_unions", 400)):
        monkeypatch.setattr(table_answers, name, give_up)
        text = said(asked(reader, rows("", everyone()), language="fr", status=status))
        assert unsolved in text and "HiGHS" not in text


@pytest.mark.django_db
def test_an_account_has_one_answer_at_a_time_and_so_many_in_a_minute(reader, boss, settings, monkeypatch):
    good, real, bodies = rows("", everyone()), page._answered, []

    def answered(*arguments):
        monkeypatch.setattr(page, "_answered", real)
        bodies.extend([asked(reader, good, status=429), asked(boss, good)])
        return real(*arguments)

    limits = settings.ACCOUNT_RATE_LIMITS
    assert limits["tables"] == "20/m/user"
    settings.ACCOUNT_RATE_LIMITS = limits | {"tables": "3/m/user"}
    monkeypatch.setattr(page, "_answered", answered)
    for body in (asked(reader, good), asked(reader, good)):
        assert "people visited on all 3 days." in said(body)
    waiting, of_other = bodies
    assert "people visited on all 3 days." in said(of_other)
    assert "Your previous question is still being answered." in said(waiting)
    assert "people visited on all" not in said(waiting) and 'name="content"' in waiting
    assert "Too many requests from your account." in said(asked(reader, good, status=429))
    assert reader.get("/tables/").status_code == 200
    asked(boss, good)
