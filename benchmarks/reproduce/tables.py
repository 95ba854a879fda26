"""Tables of docs/reproduction.md, in Markdown."""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from benchmarks.reproduce import exact, gains, published, solutions
from benchmarks.reproduce.exact import Cell, SolutionRow
from benchmarks.reproduce.findings import NEARLY, Findings
from benchmarks.reproduce.runs import Comparison, Estimate, mean

NAMES: Final[dict[solutions.Solution, str]] = {
    "smp": "Smp[ADP]",
    "spl": "Spl[ADP]",
    "adp": "RS+FD[ADP]",
    "grr": "RS+FD[GRR]",
    "ouez": "RS+FD[OUE-z]",
    "ouer": "RS+FD[OUE-r]",
}


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lines of a table."""
    lines = [header, ["--"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def summary_table(cells: Sequence[Cell], found: Findings) -> str:
    """One line per claim."""
    lost = exact.losses("adp", epsilon="1")
    thesis, profile = (
        sum(ratio <= NEARLY for ratio in found.ratios_to_smp(amplified=amplified))
        for amplified in (True, False)
    )
    agreeing = sum(each.agrees for each in cells)
    total = len(published.SOLUTION_EPSILONS)
    rows = [
        ("Table 6.1: variances of L-GRR", f"{agreeing} of {len(cells)} cells agree with its formula"),
        ("Tables 6.3, 6.4: gains of ALLOMFREE", _count(found.gain_comparisons().values())),
        ("Figures 5.4, 5.5: errors of Smp and Spl", _count(found.window_comparisons().values())),
        (
            f"Figure 7.11: RS+FD[ADP] has at most {NEARLY} times the MSE of Smp[ADP]",
            f"at {thesis} of {total} epsilons of the thesis; at {profile} if a profile loses the same",
        ),
        (
            "Algorithm 4: RS+FD with epsilon 1 is 1-LDP",
            f"no: a profile loses {lost.profile:.4f}, one attribute up to {max(lost.attributes):.2f} (ADP)",
        ),
    ]
    return table(("claim", "here"), rows)


def variance_table(cells: Sequence[Cell]) -> str:
    """Table 6.1, in paper tuning."""
    header = ("k", "ε∞", *(f"alpha = {alpha}" for alpha in published.TABLE_ALPHAS))
    rows = []
    for (k, epsilon_inf), group in groupby(cells, key=lambda cell: (cell.domain_size, cell.epsilon_inf)):
        marks = [f"{each.paper:.4g}" + ("" if each.agrees else " (**differs**)") for each in group]
        rows.append((str(k), epsilon_inf, *marks))
    return table(header, rows)


def ratio_table(cells: Sequence[Cell]) -> str:
    """Paper tuning over exact tuning, per domain size."""
    ratios = {
        str(k): [each.paper / each.exact for each in group]
        for k, group in groupby(cells, key=lambda cell: cell.domain_size)
    }
    return table(
        ("k", *ratios),
        [
            ("least", *(f"{min(each):.3g}" for each in ratios.values())),
            ("most", *(f"{max(each):.3g}" for each in ratios.values())),
        ],
    )


def changed_table(changed: Sequence[Cell]) -> str:
    """Cells in which ALLOMFREE chooses otherwise."""
    return table(
        ("k", "ε∞", "alpha", "paper's choice", "exact choice", "variance of the former over the latter"),
        [
            (
                str(each.domain_size),
                each.epsilon_inf,
                each.alpha,
                each.paper_choice,
                each.exact_choice,
                f"{each.gain:.3f}",
            )
            for each in changed
        ],
    )


def gain_table(found: Findings) -> str:
    """Tables 6.3 and 6.4."""
    rows = []
    for (alpha, baseline), comparison in found.gain_comparisons().items():
        exact_gain = gains.gain(found.gain_runs, alpha=alpha, baseline=baseline, tuning="exact")
        unbiased = gains.expected_gain(alpha=alpha, baseline=baseline, tuning="paper")
        rows.append(
            (
                f"alpha {alpha}, over {baseline.upper()}",
                f"{comparison.published.value:.2f}",
                with_error(comparison.ours, digits=2),
                comparison.verdict,
                with_error(exact_gain, digits=2),
                f"{unbiased:.2f}",
            )
        )
    header = ("gain, %", "published", "here, paper tuning", "", "here, exact tuning", "without the clip")
    return table(header, rows)


def window_table(found: Findings) -> str:
    """Numbers behind figures 5.4 and 5.5."""
    rows = []
    for (solution, epsilon), comparison in found.window_comparisons().items():
        per_profile = mean(found.window_errors(solution, epsilon=epsilon, per_profile=True).mean(axis=1))
        rows.append(
            (
                {"smp-grr": "Smp[GRR]", "spl-grr": "Spl[GRR]"}[solution],
                epsilon,
                f"{100 * comparison.published.value:.3f}",
                with_error(comparison.ours, scale=100, digits=3),
                comparison.verdict,
                with_error(per_profile, scale=100, digits=3),
            )
        )
    return table(("", "ε", "published", "here", "", "here, ε of a profile's week"), rows)


def solution_table(found: Findings, *, amplified: bool) -> str:
    """Figure 7.11, in units of 1e-4."""
    curves = [solutions.curve(name, amplified=amplified) for name in NAMES]
    rows = []
    for i, epsilon in enumerate(published.SOLUTION_EPSILONS):
        values = (with_error(mean(found.solution_runs[curve[i]]), scale=1e4, digits=2) for curve in curves)
        rows.append((epsilon, *values))
    return table(("ε of the thesis" if amplified else "ε of a profile", *NAMES.values()), rows)


def loss_table() -> str:
    """What the variants of RS+FD reveal at nominal epsilon 1."""
    rows = []
    for variant in exact.VARIANTS:
        found = exact.losses(variant, epsilon="1")
        attributes = (f"{each:.3f}" for each in found.attributes)
        rows.append((NAMES[variant], f"{found.profile:.4f}", *attributes))
    return table(("ε = 1", "profile", *(f"k = {k}" for k in exact.TABLE_SIZES)), rows)


def loss_variance_table(rows: Sequence[SolutionRow]) -> str:
    """Variances at equal loss of a profile, and as the thesis compares them."""
    header = (
        "ε",
        "ε'",
        "Smp[GRR]",
        "Smp[ADP]",
        *(NAMES[variant] for variant in exact.VARIANTS),
        "RS+FD[ADP], ε per attribute",
        "RS+FD[ADP] with ε'",
        "Smp[ADP] at ε'",
    )
    lines = []
    for row in rows:
        fake = row.fake_data.values()
        numbers = (
            row.smp_grr,
            row.smp_adp,
            *fake,
            row.attribute_adp,
            row.amplified_adp,
            row.smp_adp_amplified,
        )
        lines.append((row.epsilon, f"{float(row.amplified):.4f}", *(f"{each:.4g}" for each in numbers)))
    return table(header, lines)


def with_error(estimate: Estimate, *, digits: int, scale: float = 1.0) -> str:
    """Value and standard error."""
    return f"{scale * estimate.value:.{digits}f} ± {scale * estimate.std_error:.{digits}f}"


def _count(comparisons: Iterable[Comparison]) -> str:
    found = [comparison.agrees for comparison in comparisons]
    return f"{sum(found)} of {len(found)} numbers agree"
