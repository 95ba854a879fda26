"""Text of study files: one head for all tests, and a line or two for each indicator."""

VISITORS = """[study.visitor]
min_minutes = 60
from = "06:00"
to = "23:59"
"""
AREA = '[area]\ncells = "cells.csv"\n'


def study_text(
    *indicators,
    slug,
    name,
    first_day,
    days=3,
    study="",
    extract="",
    mechanism="smp-grr",
    epsilon="1.0",
    area="",
):
    """A whole study file; `study` and `extract` are lines that those sections have as well."""
    head = (
        f'\n[study]\nslug = "{slug}"\nname = "{name}"\ntimezone = "Europe/Paris"\n'
        f"first_day = {first_day}\ndays = {days}\n{study}"
    )
    plan = f'mechanism = "{mechanism}"\nunit = "profile"\nepsilon = {epsilon}\n'
    return "".join([head, VISITORS, f"[extract]\n{extract}", f"[plan]\n{plan}", *indicators, area])


def columns(subscriber="msisdn", timestamp="time", cell="", more=""):
    named = {"subscriber": subscriber, "timestamp": timestamp, "cell": cell}
    return "".join(f'{key} = "{value}"\n' for key, value in named.items() if value) + more


def static(slug, *categories, column=""):
    listed = ", ".join(f'"{each}"' for each in categories)
    head = f'[[indicator]]\nslug = "{slug}"\nkind = "static"\ncolumn = "{column or slug}"\n'
    return f"{head}categories = [{listed}]\n"


def origin(slug, *, column, home, countries, operator_column="mcc"):
    head = f'[[indicator]]\nslug = "{slug}"\nkind = "static"\nderive = "visitor_category"\n'
    columns = f'column = "{column}"\noperator_column = "{operator_column}"\n'
    listed = (", ".join(f'"{each}"' for each in texts) for texts in (home, countries))
    return head + columns + "home = [{}]\ncountries = [{}]\n".format(*listed)


def joint(slug, *parts, more=""):
    listed = ", ".join(f'"{each}"' for each in parts)
    return f'[[indicator]]\nslug = "{slug}"\nkind = "static"\nparts = [{listed}]\n{more}'


def daily(slug, *, derive="", more=""):
    return f'[[indicator]]\nslug = "{slug}"\nkind = "daily"\nderive = "{derive or slug}"\n{more}'
