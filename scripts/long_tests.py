"""Choose the long tests that guard what has changed: tests/long_tests.toml says which folders each guards."""

import subprocess
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
TABLE: Final = ROOT / "tests" / "long_tests.toml"


def guarding(revision: str) -> list[str]:
    """Return the modules whose long tests must run after the changes since `revision`: "tests" means all."""
    listed = subprocess.run(
        ["git", "diff", "--name-only", revision, "HEAD", "--"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    return choose(listed.stdout.splitlines(), tomllib.loads(TABLE.read_text(encoding="utf-8")))


def choose(changed: Iterable[str], table: dict[str, dict[str, list[str]]]) -> list[str]:
    """Return the modules whose guarded folders, or which themselves, hold a changed file.

    A file of no known folder may change anything: then it is all of them. Fast tests run anyway.
    """
    modules, ignored = table["guards"], table["unguarded"]["paths"]
    chosen: set[str] = set()
    for path in changed:
        guards = {module for module, folders in modules.items() if _is_in(path, [module, *folders])}
        if not guards and not _is_in(path, ignored) and not path.rpartition("/")[2].startswith("test_"):
            return ["tests"]
        chosen |= guards
    return sorted(chosen)


def _is_in(path: str, folders: Iterable[str]) -> bool:
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)
