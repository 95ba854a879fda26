"""Reference of the states of a batch, from the table that the code follows."""

import re
from collections.abc import Iterator

HEAD = """\
# Batch states

Written by `make docs` from `mobility/batches/states.py`. A batch is one change to a study: an uploaded file,
days that are closed, or a day that is undone. No other change of state exists, and each is one conditional
update: if two workers try the same one, only the first succeeds. The API, `manage.py` and metrics use these
names.

"""


def page() -> str:
    """The page, in Markdown."""
    from mobility.batches.texts import BATCH_STATES, CHECK_STATES

    shown = [
        ["state", "shown as", "shown as, if the file is only checked"],
        *([f"`{name}`", str(text), str(CHECK_STATES.get(name, text))] for name, text in BATCH_STATES.items()),
    ]
    return (
        HEAD
        + _in_markdown(shown)
        + "\n"
        + _in_markdown([[event, of.replace(" ", ", "), *rest] for event, of, *rest in table()])
    )


def _in_markdown(rows: list[list[str]]) -> str:
    first, *others = (f"| {' | '.join(row)} |\n" for row in rows)
    return "".join([first, "|" + "---|" * len(rows[0]) + "\n", *others])


def table() -> Iterator[list[str]]:
    """Rows of the table in the module's docstring, the heading first: event, from, to, by, if."""
    from mobility.batches import states

    for line in (states.__doc__ or "").splitlines():
        if line.startswith("    "):
            yield re.split(r" {2,}", line.strip())
