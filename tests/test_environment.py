"""`.env.example` explains exactly the variables that the settings read."""

import ast
import re

from django.conf import settings

SETTINGS_FILE = settings.BASE_DIR / "mobility" / "settings.py"
EXAMPLE_FILE = settings.BASE_DIR / ".env.example"


def variables_read() -> set[str]:
    """First argument of every call of `env.something(...)` and `_database(...)`."""
    names = set()
    for call in ast.walk(ast.parse(SETTINGS_FILE.read_text())):
        if isinstance(call, ast.Call) and call.args and isinstance(call.args[0], ast.Constant):
            function = ast.unparse(call.func)
            if function.startswith("env.") or function == "_database":
                names.add(str(call.args[0].value))
    return names


def test_example_lists_every_variable_and_no_other() -> None:
    listed = re.findall(r"^([A-Z][A-Z0-9_]*)=", EXAMPLE_FILE.read_text(), flags=re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert set(listed) == variables_read()


def test_variables_are_found_in_the_settings() -> None:
    assert {"SECRET_KEY", "DATABASE_URL", "VAULT_DATABASE_URL", "REDIS_URL"} <= variables_read()
