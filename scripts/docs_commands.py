"""Reference of the commands, from their parsers."""

import argparse
from functools import cache

from django.apps import apps
from django.core.management import BaseCommand, find_commands, load_command_class

HEAD = """\
# Commands

Written by `make docs` from the commands. Put `.venv/bin/python manage.py` before each, in containers
`python manage.py`. `STUDY` is the slug of a study, `DAY` a date such as 2017-05-31.

- Results go to **standard output**, as one JSON value unless the command names another format. Messages and
  progress go to **standard error**.
- Exit codes: 0 success; 1 refused or failed, with the reason on standard error; 2 wrong arguments.
- Without `REDIS_URL`, a command that needs workers starts Redis and a worker, and stops them at its end.
"""
# Apps whose commands exist in an operator zone only, and in both.
OPERATOR_APPS = ("mobility",)
# Options that the head of the page explains.
EXPLAINED = ("STUDY", "DAY")


def page() -> str:
    """The page, in Markdown."""
    commands = project_commands()
    lines = [HEAD, "## In every zone"]
    for name, (app, command) in commands.items():
        if app not in OPERATOR_APPS:
            lines += ["", *_section(name, command)]
    lines += ["", "## In operator zones", "", "With `MOBILITY_ZONE` `all` or `operator`."]
    for name, (app, command) in commands.items():
        if app in OPERATOR_APPS:
            lines += ["", *_section(name, command)]
    return "\n".join(lines) + "\n"


def project_commands() -> dict[str, tuple[str, BaseCommand]]:
    """The project's own commands by name: label of the app, and the command."""
    return {
        name: (config.label, load_command_class(config.name, name))
        for name, config in sorted(
            (name, config)
            for config in apps.get_app_configs()
            if config.name.split(".")[0] in ("mobility", "reports")
            for name in find_commands(f"{config.path}/management")
        )
    }


def _section(name: str, command: BaseCommand) -> list[str]:
    parser = command.create_parser("manage.py", name)
    own = [action for action in parser._actions if not _is_djangos(action)]
    words = " ".join(filter(None, (_usage(action) for action in own)))
    told = [action for action in own if action.help and _metavar(action) not in EXPLAINED]
    items = [
        f"- `{_name(action)}`: {_text(action.help or '').removesuffix('.')}{_default(action)}"
        for action in told
    ]
    usage = f"`{name} {words}".rstrip() + "`"
    return [f"### {name}", "", _text(command.help), "", usage, *([""] if items else []), *items]


def _is_djangos(action: argparse.Action) -> bool:
    """Return whether every command of Django has this option."""
    return action.dest in _base_options()


@cache
def _base_options() -> set[str]:
    class Bare(BaseCommand):
        """A command without separate options."""

    return {action.dest for action in Bare().create_parser("manage.py", "bare")._actions}


def _metavar(action: argparse.Action) -> str:
    if action.metavar:
        return str(action.metavar) if isinstance(action.metavar, str) else " ".join(action.metavar)
    if action.choices is not None:
        return "|".join(str(choice) for choice in action.choices)
    return action.dest.upper()


def _usage(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else _metavar(action)
    if not action.option_strings:
        many = action.nargs in ("*", "+")
        return f"[{value} ...]" if action.nargs in ("?", "*") else f"{value}{' ...' if many else ''}"
    words = f"{action.option_strings[-1]} {value}".strip()
    return words if action.required else f"[{words}]"


def _name(action: argparse.Action) -> str:
    return action.option_strings[-1] if action.option_strings else _metavar(action)


def _default(action: argparse.Action) -> str:
    if action.required or action.nargs == 0 or action.default in (None, "", [], argparse.SUPPRESS):
        return ""
    return f" (default `{action.default}`)"


def _text(text: str) -> str:
    """A help text as a sentence of Markdown."""
    words = " ".join(text.replace("%(default)s", "default").split()).replace("%%", "%").replace("<", "&lt;")
    return words if words.endswith(".") or not words else f"{words}."
