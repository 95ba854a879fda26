"""Reference of the findings: the names that status page, alerts, metrics and doctor share."""

HEAD = """\
# Findings

Written by `make docs` from `mobility/operations/findings.py`. Status page, health checks, metrics, alerts and
`manage.py doctor` use these names. `ERROR`: act now. `WARNING`: act within a day. `NOTE`: for information.
`OK`: nothing to do. Each code leads to its page of the runbook.

| code | subject |
|---|---|
"""


def page() -> str:
    """The page, in Markdown."""
    from mobility.operations.findings import CODES, Finding, Level
    from mobility.operations.texts import component

    rows = []
    for code in CODES:
        looked_at = component(Finding(code=code, level=Level.OK, subject="…")).removesuffix("…")
        rows.append(f"| [`{code}`](../runbook/{code.replace('_', '-')}.md) | {looked_at.strip(' :')} |")
    return HEAD + "\n".join(rows) + "\n"
