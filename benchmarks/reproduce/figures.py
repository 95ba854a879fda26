"""Charts as SVG: the same bytes for the same numbers, readable on dark pages and by the colour-blind."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import product
from math import exp
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from benchmarks.reproduce import gains, published, solutions, windows
from benchmarks.reproduce.runs import Floats, mean

# Okabe and Ito's colours; lines differ by marker and dash as well.
BLACK: Final = "#000000"
ORANGE: Final = "#E69F00"
GREEN: Final = "#009E73"
BLUE: Final = "#0072B2"
VERMILION: Final = "#D55E00"
PURPLE: Final = "#CC79A7"
STYLE: Final[dict[Any, Any]] = {
    "svg.hashsalt": "reproduction",  # else the names of clip paths are random
    "font.size": 10,
    "figure.facecolor": "white",  # fixed: a page may be dark
    "axes.grid": True,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "lines.markersize": 5.5,
    "lines.linewidth": 1.5,
}


def draw_gains(found: gains.Errors, path: Path) -> None:
    """Tables 6.3 and 6.4: gain over both baselines by epsilon_inf, a panel per alpha."""
    looks: dict[gains.Baseline, tuple[str, str]] = {"l-sue": (BLUE, "o"), "l-oue": (VERMILION, "s")}
    dashes: dict[gains.Tuning, str] = {"paper": "-", "exact": "--"}
    x = [float(epsilon) for epsilon in published.GAIN_EPSILONS]
    with _chart(path, panels=2, height=4.4) as (figure, axes):
        for panel, alpha in zip(axes, gains.ALPHAS, strict=True):
            for baseline, (colour, marker) in looks.items():
                name = f"over {baseline.upper()}"
                for tuning, dash in dashes.items():
                    panel.plot(
                        x,
                        gains.gains(found, alpha=alpha, baseline=baseline, tuning=tuning),
                        color=colour,
                        marker=marker,
                        linestyle=dash,
                        markerfacecolor=colour if tuning == "paper" else "white",
                        label=f"{name}, {tuning} tuning",
                    )
                value = published.GAINS["ms-fimu"][alpha, baseline]
                label = f"{name}, published (mean over ε∞)"
                panel.axhline(value, color=colour, linestyle=":", linewidth=1.3, label=label)
            panel.set_title(f"ε₁ = {alpha} ε∞")
            panel.set_xlabel("ε∞")
        axes[0].set_ylabel("gain of ALLOMFREE in MSE, %")
        _legend_below(figure, axes[0], columns=2)


def draw_window_errors(found: Mapping[windows.Setting, Floats], path: Path) -> None:
    """Figure 5.4: mean error over the windows by epsilon."""
    looks = {"smp-grr": (BLUE, "o", "Smp[GRR]"), "spl-grr": (VERMILION, "s", "Spl[GRR]")}
    with _chart(path, panels=1, height=4.4) as (figure, axes):
        x = [float(epsilon) for epsilon in published.WINDOW_EPSILONS]
        for solution in windows.SOLUTIONS:
            colour, marker, name = looks[solution]
            for per_profile, dash, face, meaning in (
                (False, "-", colour, "ε as in the thesis"),
                (True, "--", "white", "ε of a profile's week"),
            ):
                estimates = [
                    mean(
                        found[
                            windows.Setting(solution=solution, epsilon=epsilon, per_profile=per_profile)
                        ].mean(axis=1)
                    )
                    for epsilon in published.WINDOW_EPSILONS
                ]
                axes[0].errorbar(
                    x,
                    [each.value for each in estimates],
                    yerr=[1.96 * each.std_error for each in estimates],
                    color=colour,
                    marker=marker,
                    linestyle=dash,
                    markerfacecolor=face,
                    capsize=2,
                    label=f"{name}, {meaning}",
                )
        points = [
            (float(epsilon), published.WINDOW_ERRORS[solution, epsilon])
            for solution, epsilon in product(windows.SOLUTIONS, published.WINDOW_EPSILONS)
        ]
        axes[0].plot(*zip(*points, strict=True), "x", color=BLACK, zorder=4, label="published (one run each)")
        _percent_points(axes[0], (0.005, 0.01, 0.02, 0.05, 0.1))
        axes[0].set_ylabel("mean RMSE over 28 windows,\npercentage points")
        axes[0].xaxis.set_major_locator(FixedLocator(x))
        axes[0].set_xlabel("ε")
        _legend_below(figure, axes[0], columns=2)


def draw_windows(found: Mapping[windows.Setting, Floats], path: Path) -> None:
    """Figure 5.5: error of each window by its visitors, epsilon 1."""
    looks = {"smp-grr": (BLUE, "Smp[GRR]"), "spl-grr": (VERMILION, "Spl[GRR]")}
    days = [b - a + 1 for a, b in windows.WINDOWS]
    with _chart(path, panels=1, height=4.4) as (figure, axes):
        for solution in windows.SOLUTIONS:
            colour, name = looks[solution]
            setting = windows.Setting(solution=solution, epsilon="1", per_profile=False)
            y = found[setting].mean(axis=0)
            for is_union, marker in ((False, "o"), (True, "^")):
                chosen = [i for i, length in enumerate(days) if (length > 1) == is_union]
                axes[0].plot(
                    [windows.n_visitors()[i] for i in chosen],
                    [y[i] for i in chosen],
                    color=colour,
                    marker=marker,
                    linestyle="",
                    markerfacecolor=colour if is_union else "white",
                    label=f"{name}, {'union of days' if is_union else 'single day'}",
                )
        _percent_points(axes[0], (0.02, 0.03, 0.05, 0.07))
        axes[0].set_ylabel("RMSE, percentage points")
        axes[0].set_xlabel("visitors of the window")
        axes[0].xaxis.set_major_formatter("{x:,.0f}")
        _legend_below(figure, axes[0], columns=2)


def draw_solutions(found: Mapping[solutions.Setting, Floats], path: Path) -> None:
    """Figure 7.11: as in the thesis on the left, at the same epsilon per profile on the right."""
    looks: dict[solutions.Solution, tuple[str, str, str, str]] = {
        "smp": (BLACK, "o", "-", "Smp[ADP]"),
        "spl": (ORANGE, "s", "-", "Spl[ADP]"),
        "adp": (BLUE, "D", "--", "RS+FD[ADP]"),
        "grr": (GREEN, "^", ":", "RS+FD[GRR]"),
        "ouez": (VERMILION, "v", "-.", "RS+FD[OUE-z]"),
        "ouer": (PURPLE, "P", ":", "RS+FD[OUE-r]"),
    }
    titles = {True: "as in the thesis: ε of RS+FD amplified", False: "same ε of a profile for all"}
    x = [float(epsilon) for epsilon in published.SOLUTION_EPSILONS]
    with _chart(path, panels=2, height=4.8) as (figure, axes):
        for panel, is_amplified in zip(axes, titles, strict=True):
            for solution, (colour, marker, dash, name) in looks.items():
                curve = solutions.curve(solution, amplified=is_amplified)
                y = [mean(found[setting]) for setting in curve]
                panel.errorbar(
                    x,
                    [each.value for each in y],
                    yerr=[1.96 * each.std_error for each in y],
                    color=colour,
                    marker=marker,
                    linestyle=dash,
                    markerfacecolor="white",
                    capsize=2,
                    label=name,
                )
            panel.set_yscale("log")
            panel.set_title(titles[is_amplified], fontsize=10)
            panel.set_xlabel("ε")
            panel.xaxis.set_major_locator(FixedLocator(x))
            panel.xaxis.set_major_formatter(FixedFormatter([f"ln {round(exp(each))}" for each in x]))
        axes[0].set_ylabel("mean MSE over six attributes")
        _legend_below(figure, axes[0], columns=3)


@contextmanager
def _chart(path: Path, *, panels: int, height: float) -> Iterator[tuple[Figure, Sequence[Axes]]]:
    with mpl.rc_context(STYLE):
        # Not pyplot, whose figures stay open and may want a screen.
        figure = Figure(figsize=(8 if panels > 1 else 6.4, height), layout="constrained")
        axes = figure.subplots(1, panels, sharey=True, squeeze=False)
        yield figure, list(axes[0])
        # No date: the file changes only with what it shows.
        figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def _legend_below(figure: Figure, panel: Axes, *, columns: int) -> None:
    handles, labels = panel.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, fontsize=9)


def _percent_points(panel: Axes, ticks: Sequence[float]) -> None:
    """Logarithmic scale with a few ticks, in percentage points."""
    panel.set_yscale("log")
    panel.yaxis.set_major_locator(FixedLocator(ticks))
    panel.yaxis.set_major_formatter(FixedFormatter([f"{100 * tick:g}" for tick in ticks]))
    panel.yaxis.set_minor_locator(NullLocator())
