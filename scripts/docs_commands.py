"""Reference of the commands, from their parsers."""

import argparse
from functools import cache

from django.apps import apps
from django.core.management import BaseCommand, find_commands, load_command_class

HEAD = """\
# Commands

Written by `make docs` from the parsers of the commands; do not edit. To run one, put
`.venv/bin/python manage.py` before it; in containers `python manage.py`.

- Results are printed on **standard output**, as one JSON value where the text below does not name another
  format. Messages and progress go to **standard error**.
- The exit code is 0 only on success; 1 when something was refused or failed, with the reason on standard
  error; 2 when the words of the command are wrong.
- Commands of the *operator zone* exist where `MOBILITY_ZONE` is `all` or `operator`.
- Without `REDIS_URL` a command that needs workers starts Redis and a worker, and stops what it started.
"""
# Apps whose commands exist in an operator zone only, and in both.
OPERATOR_APPS = ("mobility",)


def page() -> str:
    """The page, in Markdown."""
    commands = project_commands()
    lines = [HEAD, "| command | what it does | zone |", "|---|---|---|"]
    for name, (app, command) in commands.items():
        lines.append(f"| [`{name}`](#{name}) | {_sentence(command)} | {_zone(app)} |")
    for name, (app, command) in commands.items():
        lines += ["", *_section(name, app, command)]
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


def _zone(app: str) -> str:
    return "operator" if app in OPERATOR_APPS else "each"


def _sentence(command: BaseCommand) -> str:
    return _cell(command.help)


def _section(name: str, app: str, command: BaseCommand) -> list[str]:
    parser = command.create_parser("manage.py", name)
    own = [action for action in parser._actions if not _is_djangos(action)]
    words = " ".join(filter(None, (_usage(action) for action in own)))
    zone = "Operator zone." if app in OPERATOR_APPS else "Each zone."
    lines = [f"## {name} {{ #{name} }}", "", f"{_text(command.help)} {zone}", "", "```text"]
    lines += [f"{name} {words}".rstrip(), "```"]
    if own:
        lines += ["", "| argument | what it is | default |", "|---|---|---|"]
        lines += [f"| {_names(action)} | {_cell(action.help or '')} | {_default(action)} |" for action in own]
    return lines


def _is_djangos(action: argparse.Action) -> bool:
    """Whether every command of Django has this option."""
    return action.dest in _base_options()


@cache
def _base_options() -> set[str]:
    class Bare(BaseCommand):
        """A command without options of its own."""

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


def _names(action: argparse.Action) -> str:
    if not action.option_strings:
        return f"`{_metavar(action)}`"
    value = "" if action.nargs == 0 else f" {_metavar(action)}".replace("|", "\\|")
    return f"`{action.option_strings[-1]}{value}`"


def _default(action: argparse.Action) -> str:
    if not action.option_strings and action.nargs not in ("?", "*"):
        return "needed"
    if action.required:
        return "needed"
    if action.default is None or action.default is False or action.default in ([], argparse.SUPPRESS):
        return ""
    return f"`{action.default}`"


def _text(text: str) -> str:
    """A help text as a sentence of Markdown."""
    words = " ".join(text.replace("%(default)s", "default").split()).replace("%%", "%").replace("<", "&lt;")
    return words if words.endswith(".") or not words else f"{words}."


def _cell(text: str) -> str:
    return _text(text).removesuffix(".").replace("|", "\\|")
