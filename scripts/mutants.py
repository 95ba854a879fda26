"""Break rules that matter, one at a time, and check that the test of each rule notices.

    make mutants ARGS="--only certificates"

tests/mutants/*.toml lists them: the rule, the function, the expression or statement that is replaced, and the
test file that must fail. One that no longer applies is an error. Works on copies; prints a table, and exits
with 1 if a mutant survives or does not apply.
"""

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import tomllib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Final, TypeAlias

from scripts.services import postgres

ROOT: Final = Path(__file__).resolve().parents[1]
LISTS: Final = ROOT / "tests" / "mutants"
TIMEOUT_S: Final = 300
Span: TypeAlias = tuple[ast.expr | ast.stmt, ast.expr | ast.stmt]
KILLED, SURVIVED, TIMED_OUT, BROKEN = "killed", "SURVIVED", "killed (time limit)", "BROKEN"
OUTCOMES: Final = {0: SURVIVED, 1: KILLED}


class DoesNotApplyError(Exception):
    """The code that a mutant replaces does not occur, or occurs more than once."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One broken rule.

    Parameters
    ----------
    rule : the sentence that becomes false
    file : module below the root; function : its qualified name in the module, empty for the module's level
    old, new : source of an expression or of statements; `old` occurs once in the function, compared as syntax
    by : test file, or test, that must fail
    is_postgres : the test needs PostgreSQL
    """

    rule: str
    file: str
    function: str
    old: str
    new: str
    by: str
    is_postgres: bool = False

    def applied(self, source: str) -> str:
        """Return the module's source with the rule broken."""
        scope = _scope(ast.parse(source), self.function)
        wanted = _shape(ast.parse(textwrap.dedent(self.old).strip()).body)
        found = [span for span, shape in _spans(scope) if shape == wanted]
        if len(found) != 1:
            raise DoesNotApplyError(f"{self.file} {self.function}: {len(found)} times there: {self.old!r}")
        mutated = _replaced(source, *found[0], new=textwrap.dedent(self.new).strip())
        ast.parse(mutated)
        return mutated


def _scope(tree: ast.Module, function: str) -> ast.AST:
    scope: ast.AST = tree
    for name in filter(None, function.split(".")):
        named = [
            node
            for node in ast.walk(scope)
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name and node is not scope
        ]
        if len(named) != 1:
            raise DoesNotApplyError(f"{function}: {name} is defined {len(named)} times")
        scope = named[0]
    return scope


def _replaced(source: str, first: ast.expr | ast.stmt, last: ast.expr | ast.stmt, *, new: str) -> str:
    lines = source.encode().splitlines(keepends=True)
    end_line, end_column = last.end_lineno or 0, last.end_col_offset or 0
    before = b"".join(lines[: first.lineno - 1]) + lines[first.lineno - 1][: first.col_offset]
    after = lines[end_line - 1][end_column:] + b"".join(lines[end_line:])
    indented = new.replace("\n", "\n" + " " * first.col_offset)
    return (before + indented.encode() + after).decode()


def _shape(body: list[ast.stmt]) -> str:
    """Return the compared form: syntax without places; an expression alone matches anywhere."""
    if len(body) == 1 and isinstance(body[0], ast.Expr):
        return ast.dump(body[0].value)
    return "\n".join(map(ast.dump, body))


def _spans(scope: ast.AST) -> Iterator[tuple[Span, str]]:
    """Expressions and runs of statements below `scope`: first and last node, and their shape."""
    for node in ast.walk(scope):
        if isinstance(node, ast.expr):
            yield (node, node), ast.dump(node)
        for _, body in ast.iter_fields(node):
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                for i in range(len(body)):
                    for j in range(i + 1, min(i + 4, len(body)) + 1):
                        if not isinstance(body[i], ast.Expr) or j > i + 1:
                            yield (body[i], body[j - 1]), "\n".join(map(ast.dump, body[i:j]))


def read_lists(only: str = "") -> list[Mutant]:
    """Return the mutants whose list, rule, file or test contains `only`."""
    mutants = []
    for path in sorted(LISTS.glob("*.toml")):
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]:
            mutant = Mutant(**entry)
            if any(only in text for text in (path.stem, mutant.rule, mutant.file, mutant.by)):
                mutants.append(mutant)
    return mutants


def main() -> int:
    """Run the chosen mutants, two at a time."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="part of a list's name, a rule, a module or a test file")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--check", action="store_true", help="only check that each mutant applies")
    options = parser.parse_args()
    mutants = read_lists(options.only)
    broken = list(_not_applying(mutants))
    for text in broken:
        sys.stderr.write(f"mutants: {text}\n")
    if broken or options.check:
        return 1 if broken else 0
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mobility-mutants-") as folder, postgres() as url:
        outcomes = list(_run_all(mutants, Path(folder), n_jobs=options.jobs, postgres_url=url))
    n_killed = sum(outcome in (KILLED, TIMED_OUT) for outcome in outcomes)
    minutes = (time.monotonic() - started) / 60
    sys.stdout.write(f"{n_killed} of {len(mutants)} mutants killed in {minutes:.1f} min\n")
    return 0 if n_killed == len(mutants) else 1


def _not_applying(mutants: Iterable[Mutant]) -> Iterator[str]:
    for mutant in mutants:
        try:
            mutant.applied((ROOT / mutant.file).read_text(encoding="utf-8"))
            if "migrations" in Path(mutant.file).parts:
                yield f"{mutant.file} is a migration: they run once, for all mutants"
            if not (ROOT / mutant.by.partition("::")[0]).exists():
                yield f"{mutant.by} does not exist"
        except (DoesNotApplyError, OSError, SyntaxError) as error:
            yield f"{mutant.rule}: {error}"


def _run_all(mutants: list[Mutant], folder: Path, *, n_jobs: int, postgres_url: str) -> Iterator[str]:
    copies: SimpleQueue[Path] = SimpleQueue()
    for number in range(n_jobs):
        copies.put(_copy_to(folder / str(number)))

    def run(mutant: Mutant) -> str:
        copy = copies.get()
        try:
            return _outcome(mutant, copy, postgres_url=postgres_url)
        finally:
            copies.put(copy)

    with ThreadPoolExecutor(n_jobs) as pool:
        for mutant, outcome in zip(mutants, pool.map(run, mutants), strict=True):
            sys.stdout.write(f"{outcome:10} {mutant.rule} ({mutant.file}, {mutant.by})\n")
            sys.stdout.flush()
            yield outcome


def _copy_to(copy: Path) -> Path:
    """Copy what git knows, with the times of its files, and the compiled kernels, which depend on them."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    kernels = [path for path in ROOT.glob("*/**/__pycache__/*.nb?") if ".venv" not in path.parts]
    for path in filter(Path.is_file, [*files, *kernels]):
        target = copy / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    return copy


def _outcome(mutant: Mutant, copy: Path, *, postgres_url: str) -> str:
    original, target = ROOT / mutant.file, copy / mutant.file
    target.write_text(mutant.applied(original.read_text(encoding="utf-8")), encoding="utf-8")
    # All share the databases that the first one migrates: no mutant is in a migration.
    environment = os.environ | {"TEST_POSTGRES_URL": postgres_url, "MIGRATED_DIR": str(copy.parent)}
    if mutant.is_postgres:
        server = postgres_url.rpartition("/")[0]
        name = f"mutant_{copy.name}"
        environment |= {
            "DATABASE_URL": f"{server}/{name}_main",
            "VAULT_DATABASE_URL": f"{server}/{name}_vault",
        }
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", mutant.by]
    try:
        done = subprocess.run(
            command, cwd=copy, env=environment, check=False, capture_output=True, text=True, timeout=TIMEOUT_S
        )
    except subprocess.TimeoutExpired:
        return TIMED_OUT
    finally:
        shutil.copy2(original, target)
        for kernel in original.parent.glob(f"__pycache__/{original.stem}.*.nb?"):
            shutil.copy2(kernel, target.parent / "__pycache__")
    if done.returncode not in OUTCOMES:
        sys.stderr.write(done.stdout[-3000:] + done.stderr[-1000:])
    return OUTCOMES.get(done.returncode, BROKEN)


if __name__ == "__main__":
    sys.exit(main())
