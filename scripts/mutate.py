"""Mutation run: change one number or operator of the library at a time, and list what no test notices.

    make mutate ARGS="ldp/protocols/channels.py ldp/protocols/unary.py"

It works on a copy, with the four files of exact tests that use the module's names most. Without arguments:
all modules with formulas, which takes hours. Mutants that survived are printed as diffs, and the exit status
is 1 if there are any.
"""

import argparse
import ast
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
COPIED: Final = (
    "manage.py",
    "pyproject.toml",
    "mobility",
    "reports",
    "ldp",
    "tests",
    "templates",
    "static",
    "docs",
)
FORMULAS: Final = (
    "ldp/protocols/channels.py",
    "ldp/privacy/accounting.py",
    "ldp/privacy/certificates.py",
    "ldp/protocols",
    "ldp/estimation/estimators.py",
)
STATISTICAL: Final = ("test_every_mechanism", "test_coverage", "test_audit")
MOST_FILES: Final = 4
TIMEOUT_S: Final = 300.0
# One replacement per operator: others of the same operator are noticed by the same tests.
REPLACED: Final = (
    "AndWithOr",
    "OrWithAnd",
    "BinaryOperator_(Add_Sub|Sub_Add|Mul_Add|Div_Mul|FloorDiv_Mul|Mod_Add|Pow_Mul)",
    "BinaryOperator_(RShift_LShift|LShift_RShift|BitOr_BitAnd|BitAnd_BitOr|BitXor_BitOr)",
    "ComparisonOperator_(Lt_LtE|LtE_Lt|Gt_GtE|GtE_Gt|Eq_NotEq|NotEq_Eq|Is_IsNot|IsNot_Is|In_NotIn|NotIn_In)",
    "UnaryOperator_(USub_UAdd|Delete_Not|Invert_UAdd)",
)


def main() -> int:
    """Mutate each module in turn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", default=FORMULAS, help="files or folders below ldp/")
    options = parser.parse_args()
    n_survivors = 0
    for module in _files(options.modules):
        with tempfile.TemporaryDirectory() as folder:
            survivors, n_mutants = mutate(module, copy=Path(folder))
        sys.stdout.write(f"{module}: {n_mutants} mutants, {len(survivors)} survived\n")
        for diff in survivors:
            sys.stdout.write(f"{diff}\n")
        sys.stdout.flush()
        n_survivors += len(survivors)
    return 1 if n_survivors else 0


def mutate(module: Path, *, copy: Path) -> tuple[list[str], int]:
    """Survivors of one module as diffs, and the number of its mutants."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / name)
    (copy / "mutate.toml").write_text(_settings(module), encoding="utf-8")
    _run("cosmic-ray", "init", "mutate.toml", "session.sqlite", folder=copy)
    _run("cr-filter-operators", "session.sqlite", "mutate.toml", folder=copy)
    _run(
        "cosmic-ray", "baseline", "mutate.toml", folder=copy
    )  # tests that fail anyway would notice everything
    _run("cosmic-ray", "exec", "mutate.toml", "session.sqlite", folder=copy)
    dump = _run("cosmic-ray", "dump", "session.sqlite", folder=copy)
    outcomes = [json.loads(line)[1] for line in dump.splitlines()]
    done = [outcome for outcome in outcomes if outcome["worker_outcome"] != "skipped"]
    return [outcome["diff"] for outcome in done if outcome["test_outcome"] == "survived"], len(done)


def tests_of(module: Path) -> list[str]:
    """Tests that use the module's names most; the statistical ones take too long for every mutant."""
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    names = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    files = sorted((ROOT / "tests" / "ldp").glob("test_*.py"))
    uses = {file: sum(file.read_text(encoding="utf-8").count(name) for name in names) for file in files}
    files.sort(key=lambda file: (file.stem != f"test_{module.stem}", -uses[file]))
    exact = [file for file in files if uses[file] and file.stem not in STATISTICAL]
    return [str(file.relative_to(ROOT)) for file in exact[:MOST_FILES]]


def _settings(module: Path) -> str:
    command = f"{sys.executable} -m pytest -x -q -p no:cacheprovider {' '.join(tests_of(module))}"
    others = f"core/(?!Replace({'|'.join(REPLACED)})$|NumberReplacer$).*"
    return (
        "[cosmic-ray]\n"
        f'module-path = "{module}"\nexcluded-modules = []\n'
        f'timeout = {TIMEOUT_S}\ntest-command = "{command}"\n'
        '[cosmic-ray.distributor]\nname = "local"\n'
        f"[cosmic-ray.filters.operators-filter]\nexclude-operators = ['{others}']\n"
    )


def _files(paths: list[str]) -> list[Path]:
    found = []
    for path in paths:
        below = sorted((ROOT / path).glob("**/*.py")) if (ROOT / path).is_dir() else [ROOT / path]
        found += [file.relative_to(ROOT) for file in below if file.stat().st_size]
    return found


def _run(tool: str, *arguments: str, folder: Path) -> str:
    command = [str(Path(sys.executable).with_name(tool)), *arguments]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)} failed:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
