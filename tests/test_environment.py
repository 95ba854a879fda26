"""`.env.example` explains exactly the variables that the settings read."""

import ast
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from mobility.environment import Env

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


def compose_defaults() -> dict[str, str]:
    """Variables that compose files read, with their defaults."""
    text = "".join(file.read_text() for file in (settings.BASE_DIR / "docker").glob("*.yaml"))
    return dict(re.findall(r"\$\{(\w+):-([^}]*)\}", text))


def test_example_lists_every_variable_and_no_other() -> None:
    listed = re.findall(r"^([A-Z][A-Z0-9_]*)=(.*)$", EXAMPLE_FILE.read_text(), flags=re.MULTILINE)
    assert len(listed) == len(dict(listed))
    assert set(dict(listed)) == variables_read() | set(compose_defaults())
    own = {name: value for name, value in compose_defaults().items() if name not in variables_read()}
    assert own.items() <= dict(listed).items()
    assert "WORKER_MEMORY" in own


def test_variables_are_found_in_the_settings() -> None:
    assert {"SECRET_KEY", "DATABASE_URL", "VAULT_DATABASE_URL", "REDIS_URL"} <= variables_read()


class TestValues:
    """What means nothing, or switches off what nobody wants to be without, is refused with its name."""

    @pytest.mark.parametrize(
        ("text", "said"),
        [("0", "must be at least 1, got 0"), ("-5", "must be at least 1, got -5"),
         ("1.5", "must be a whole number, got '1.5'"), ("", "must be a whole number, got ''")],
    )  # fmt: skip
    def test_whole_numbers(self, monkeypatch: pytest.MonkeyPatch, text: str, said: str) -> None:
        assert Env().whole("N", default=3, least=1) == 3
        monkeypatch.setenv("N", "1")
        assert Env().whole("N", default=3, least=1) == 1
        monkeypatch.setenv("N", text)
        with pytest.raises(ImproperlyConfigured, match=f"^N {re.escape(said)}$"):
            Env().whole("N", default=3, least=1)

    @pytest.mark.parametrize(
        ("text", "said"),
        [("-0.5", "must be at least 0.0, got -0.5"), ("nan", "must be at least 0.0, got nan"),
         ("inf", "must be at least 0.0, got inf"), ("5s", "must be a number, got '5s'")],
    )  # fmt: skip
    def test_numbers(self, monkeypatch: pytest.MonkeyPatch, text: str, said: str) -> None:
        monkeypatch.setenv("X", "0.5")
        assert Env().number("X", default=5.0, least=0.0) == 0.5
        monkeypatch.setenv("X", text)
        with pytest.raises(ImproperlyConfigured, match=f"^X {re.escape(said)}$"):
            Env().number("X", default=5.0, least=0.0)

    def test_choices(self, monkeypatch: pytest.MonkeyPatch) -> None:
        assert Env().choice("C", default="a", among=("a", "b", "c")) == "a"
        monkeypatch.setenv("C", "B")
        with pytest.raises(ImproperlyConfigured, match=r"^C must be a, b or c, got 'B'$"):
            Env().choice("C", default="a", among=("a", "b", "c"))

    @pytest.mark.parametrize(
        ("content", "said"), [(None, "No such file or directory"), (b"\xff\xfe", "it is not text in UTF-8")]
    )
    def test_a_secret_in_a_file_that_cannot_be_read(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: bytes | None, said: str
    ) -> None:
        file = tmp_path / "secret"
        if content is not None:
            file.write_bytes(content)
        monkeypatch.setenv("S_FILE", str(file))
        with pytest.raises(ImproperlyConfigured, match=f"^S_FILE names {file}, which cannot be read: {said}"):
            Env().str("S")

    def test_every_number_of_the_settings_has_a_least_value(self) -> None:
        read = re.findall(r"env\.(int|float)\b", SETTINGS_FILE.read_text())
        assert read == []
