"""Measure how the code is laid out: `make map`. Its output for one commit compares with another's."""

import ast
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import grimp
import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGES: Final = ("ldp", "reports", "mobility")
LARGEST: Final = 15  # modules of a folder


def main() -> None:
    modules = [
        path for path in _tracked("*.py") if path.parts[0] in PACKAGES and "migrations" not in path.parts
    ]
    _folders(modules)
    print(f"late imports of own modules: {sum(1 for path in modules for _ in late_imports(path))}")  # noqa: T201
    for circle in circles():
        print(f"circle of {len(circle)}: {', '.join(circle)}")  # noqa: T201
    prose = [path for path in _tracked("*.md") if path.parts[0] in ("docs", path.name)]
    for name, paths in {
        "lines of product": _product(),
        "lines of tests": [path for path in _tracked("*.py") if path.parts[0] == "tests"],
    }.items():
        print(f"{name}: {sum(_text(path).count(chr(10)) for path in paths):,}")  # noqa: T201
    print(f"words of documentation: {sum(len(_text(path).split()) for path in prose):,}")  # noqa: T201


def circles() -> list[list[str]]:
    """Return the groups of modules that import one another, directly or not, the largest first."""
    graph = grimp.build_graph(*PACKAGES)
    names = sorted(graph.modules)
    place = {name: i for i, name in enumerate(names)}
    pairs = [(place[a], place[b]) for a in names for b in graph.find_modules_directly_imported_by(a)]
    rows, columns = np.array(pairs).T
    edges = coo_array((np.ones(len(pairs)), (rows, columns)), shape=(len(names), len(names)))
    _, group = connected_components(edges, connection="strong")
    sizes = np.bincount(group)
    found = [[names[i] for i in np.flatnonzero(group == each)] for each in np.flatnonzero(sizes > 1)]
    return sorted(found, key=len, reverse=True)


def late_imports(path: Path) -> Iterator[int]:
    """Yield the lines on which a function of the module imports a module of ours."""
    for function in ast.walk(ast.parse(_text(path))):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in PACKAGES:
                    yield node.lineno


def _folders(modules: list[Path]) -> None:
    counted: Counter[Path] = Counter()
    lines: Counter[Path] = Counter()
    for path in modules:
        counted[path.parent] += path.name != "__init__.py"
        lines[path.parent] += _text(path).count("\n")
    for folder in sorted(counted):
        mark = "  more than may be in a folder" if counted[folder] > LARGEST else ""
        print(f"{counted[folder]:4} modules {lines[folder]:6,} lines  {folder}{mark}")  # noqa: T201


def _product() -> list[Path]:
    """Return the files of the product that people write: code, templates, scripts and styles of pages."""
    kinds = ("*.py", "*.html", "*.js", "*.css")
    skipped = ("tests", "benchmarks", "scripts", "docs")
    return [
        p for kind in kinds for p in _tracked(kind) if p.parts[0] not in skipped and "vendor" not in p.parts
    ]


def _tracked(pattern: str) -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", pattern], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [Path(line) for line in listed.stdout.splitlines()]


def _text(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


if __name__ == "__main__":
    main()
