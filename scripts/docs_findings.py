"""Reference of the findings: what the status page, alerts, metrics and the doctor speak of."""

from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
HEAD = """\
# Findings

Written by `make docs` from the list of what can be wrong (`mobility/operations/findings.py`); do not edit.
The status page, health checks, metrics, alerts and `manage.py doctor` say the same, under these names.

| level | what to do |
|---|---|
| `OK` | nothing |
| `NOTE` | know it |
| `WARNING` | act within a day |
| `ERROR` | act now |

| code | what is looked at | what to do about it |
|---|---|---|
"""


def page() -> str:
    """The page, in Markdown."""
    from mobility.operations.findings import CODES, Finding, Level
    from mobility.operations.wording import component

    rows = []
    for code in CODES:
        looked_at = component(Finding(code=code, level=Level.OK, subject="…")).removesuffix("…")
        rows.append(f"| `{code}` | {looked_at.strip(' :')} | {_runbook(code)} |")
    return HEAD + "\n".join(rows) + "\n"


def _runbook(code: str) -> str:
    """Link to the page of the runbook, under its own title."""
    name = code.replace("_", "-")
    file = DOCS / "runbook" / f"{name}.md"
    title = file.read_text().splitlines()[0].removeprefix("# ") if file.is_file() else ""
    return f"[{title}](../runbook/{name}.md)" if title else ""
