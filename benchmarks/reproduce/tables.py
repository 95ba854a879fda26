"""Tables of docs/reproduction.md in Markdown, and large ones as CSV."""

import csv
import io
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from benchmarks.reproduce import (
    exact,
    forecasts,
    gains,
    loloha,
    published,
    recognition,
    scenarios,
    solutions,
    streams,
)
from benchmarks.reproduce.distances import NoisyDistances, levels
from benchmarks.reproduce.exact import Cell, SolutionRow
from benchmarks.reproduce.findings import NEARLY, Findings
from benchmarks.reproduce.published import DataSet
from benchmarks.reproduce.runs import Comparison, Estimate, mean
from benchmarks.reproduce.variances import PrintedCell, one_round, two_rounds

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
    lines = ["| " + " | ".join(line) + " |" for line in (header, *rows)]
    return "\n".join([lines[0], "|" + "--|" * len(header), *lines[1:]])


def csv_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return the table as CSV."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([header, *rows])
    return file.getvalue()


def summary_table(found: Findings) -> str:
    """One line per claim."""
    lost = exact.losses("adp", epsilon="1")
    thesis, profile = (
        sum(ratio <= NEARLY for ratio in found.ratios_to_smp(amplified=amplified))
        for amplified in (True, False)
    )
    total = len(published.SOLUTION_EPSILONS)
    rows = [
        ("Table 6.1: variances of two rounds", _agreeing(two_rounds())),
        ("Table 6.2: variances of one round", _agreeing(one_round())),
        ("Tables 6.3, 6.4: gains of ALLOMFREE on MS-FIMU", _count(found.gain_comparisons().values())),
        ("Tables 6.3, 6.4: gains on Nursery", _count(found.gain_comparisons("nursery").values())),
        ("Figures 5.4, 5.5: errors of Smp and Spl", _count(found.window_comparisons().values())),
        (
            f"Figure 7.11: RS+FD[ADP] has at most {NEARLY} times the MSE of Smp[ADP]",
            f"at {thesis} of {total} epsilons of the thesis; at {profile} if a profile loses the same",
        ),
        (
            "Algorithm 4: RS+FD with epsilon 1 is 1-LDP",
            f"no: a profile loses {lost.profile:.4f}, one attribute up to {max(lost.attributes):.2f} (ADP)",
        ),
        (
            "Section 12.2: does RS+FD hide which report is the answer?",
            f"partly: at ε = 1, {_recognised('1')} of 100 are recognised, by chance "
            f"{of_100(recognition.before()[0])}",
        ),
        ("Table 10.2: distances after noise", distances_in_short(levels())),
        ("Chapter 4: unions tell who came on which days", f"no: {all_week_in_short()}"),
        ("LDP-IDS: dividing people beats dividing epsilon", streams_in_short()),
        ("LOLOHA, table 2: dBitFlipPM shows every change", _count(found.loloha_comparisons())),
    ]
    return table(("claim", "here"), rows)


def all_week_in_short() -> str:
    """Return the range for all seven days that the unions allow."""
    answer = scenarios.rows()[0].answer
    return f"{answer.least:,} to {answer.most:,} visitors on all seven days, printed {published.ALL_WEEK}"


def streams_in_short() -> str:
    """Return how much more exact a day is if people are divided."""
    budget, people = streams.exact_errors()
    ratio = f"{budget / people:.1f}"
    return f"yes: {ratio} times smaller mean squared error of a day, windows of {streams.WINDOW} days"


def stream_table(found: Findings) -> str:
    """Stated errors of streams, ours, and the deviation, by method and scenario."""
    scenarios, comparisons = streams.settings(), found.stream_comparisons()
    rows = [
        (method, *(_stated_and_ours(comparisons[scenario, method]) for scenario in scenarios))
        for method in streams.METHODS
    ]
    return table(("", *scenarios), rows)


def loloha_table(found: Findings) -> str:
    """Errors and losses on the synthetic data of LOLOHA, by protocol and epsilon."""
    rows = []
    for protocol in loloha.PROTOCOLS:
        made = [loloha.Setting(protocol=protocol, epsilon_inf=each) for each in loloha.EPSILONS]
        row = [protocol]
        for setting in made:
            error, loss = (mean(each) for each in found.loloha_runs[setting].T[:2])
            most = float(setting.epsilon_inf) * loloha.kept_answers(setting)
            row.append(f"{1e4 * error.value:.3g} ± {1e4 * error.std_error:.1g}; {loss.value:.1f}; {most:g}")
        rows.append(row)
    return table(("", *(f"ε∞ = {each}" for each in loloha.EPSILONS)), rows)


def loloha_variances() -> str:
    """Figures 1 and 2 of LOLOHA, as CSV."""
    found = loloha.cells()
    rows = [
        (each.alpha, each.epsilon_inf, str(each.equation), str(each.best), *map("{:.7g}".format, variances))
        for each in found
        for variances in [each.variances.values()]
    ]
    return csv_table(("alpha", "ε∞", "g by equation (6)", "best g", *found[0].variances), rows)


def _stated_and_ours(comparison: Comparison) -> str:
    stated, ours = comparison.published.value, comparison.ours
    deviation = 100 * (ours.value / stated - 1)
    return f"{stated:g}; {ours.value:.2f} ± {ours.std_error:.2f}; {deviation:+.1f}%"


def scenario_table() -> str:
    """Visitors of scenarios, and errors of synthetic attributes, as CSV."""
    rows = [
        (row.name, str(row.answer.least), str(row.answer.most), f"{row.answer.estimate:.1f}", str(row.true))
        for row in scenarios.rows()
    ]
    return csv_table(("visitors on", "least", "most", "estimate", "data set"), rows)


def printed_table(cells: Sequence[PrintedCell], labels: Sequence[str]) -> str:
    """Return table 6.1 or 6.2 with its printed digits, as CSV, and ours where they differ."""
    columns = list(dict.fromkeys(each.column for each in cells))
    rows = []
    for row, group in groupby(cells, key=lambda cell: cell.row):
        marks = [each.printed + ("" if each.agrees else f" (differs: {each.ours:.7g})") for each in group]
        rows.append((*row, *marks))
    return csv_table((*labels, *columns), rows)


def variance_table(cells: Sequence[Cell]) -> str:
    """Variances of L-GRR in paper tuning, for domains that table 6.1 does not print, as CSV."""
    header = ("k", "ε∞", *(f"alpha = {alpha}" for alpha in published.TABLE_ALPHAS))
    rows = []
    computed = [cell for cell in cells if f"L-GRR {cell.domain_size}" not in published.TABLE_COLUMNS]
    for (k, epsilon_inf), group in groupby(computed, key=lambda cell: (cell.domain_size, cell.epsilon_inf)):
        marks = [f"{each.paper:.4g}" + ("" if each.agrees else " (differs)") for each in group]
        rows.append((str(k), epsilon_inf, *marks))
    return csv_table(header, rows)


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
    """Cells in which ALLOMFREE chooses otherwise, as CSV."""
    return csv_table(
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


def gain_rows(found: Findings, data: DataSet) -> tuple[Sequence[str], list[Sequence[str]]]:
    """Tables 6.3 and 6.4 for one data set: header and rows."""
    rows: list[Sequence[str]] = []
    for (alpha, baseline), comparison in found.gain_comparisons(data).items():
        exact_gain = gains.gain(found.gain_runs, alpha=alpha, baseline=baseline, tuning="exact", data=data)
        unbiased = gains.expected_gain(alpha=alpha, baseline=baseline, tuning="paper", data=data)
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
    return header, rows


def window_table(found: Findings) -> str:
    """Numbers behind figures 5.4 and 5.5, as CSV."""
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
    return csv_table(("", "ε", "published", "here", "", "here, ε of a profile's week"), rows)


def solution_table(found: Findings) -> str:
    """Figure 7.11 in units of 1e-4, as CSV: as in the thesis, then at equal loss of a profile."""
    rows = []
    for answers, amplified in (("ε'", True), ("ε", False)):
        curves = [solutions.curve(name, amplified=amplified) for name in NAMES]
        for i, epsilon in enumerate(published.SOLUTION_EPSILONS):
            values = (
                with_error(mean(found.solution_runs[curve[i]]), scale=1e4, digits=2) for curve in curves
            )
            rows.append((answers, epsilon, *values))
    return csv_table(("answers of RS+FD have", "ε", *NAMES.values()), rows)


def loss_table() -> str:
    """Losses of the variants of RS+FD at nominal epsilon 1, as CSV."""
    rows = []
    for variant in exact.VARIANTS:
        found = exact.losses(variant, epsilon="1")
        attributes = (f"{each:.3f}" for each in found.attributes)
        rows.append((NAMES[variant], f"{found.profile:.4f}", *attributes))
    return csv_table(("ε = 1", "profile", *(f"k = {k}" for k in exact.TABLE_SIZES)), rows)


def loss_variance_table(rows: Sequence[SolutionRow]) -> str:
    """Variances at equal loss of a profile, and as the thesis compares them, as CSV."""
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
    return csv_table(header, lines)


def recognition_table(found: Findings) -> str:
    """Recognised answers of 100, by epsilon, alone and with their true value, as CSV."""
    rows = []
    for epsilon in recognition.EPSILONS:
        grr, ouez, ouer = (
            recognition.Setting(variant=variant, epsilon=epsilon) for variant in ("grr", "ouez", "ouer")
        )
        simulated = [
            with_error(mean(found.recognition_runs[each]), scale=100, digits=2) for each in (grr, ouez, ouer)
        ]
        (grr_only, grr_value), (ouez_only, ouez_value) = (recognition.expected(each) for each in (grr, ouez))
        exact_ones = [of_100(each) for each in (grr_only, ouez_only, grr_value, ouez_value)]
        rows.append(
            (epsilon, simulated[0], exact_ones[0], simulated[1], exact_ones[1], simulated[2], *exact_ones[2:])
        )
    header = (
        "ε of the thesis",
        *("RS+FD[GRR]", "exact", "RS+FD[OUE-z]", "exact", "RS+FD[OUE-r]"),
        *("with its value, GRR", "with its value, OUE-z"),
    )
    return csv_table(header, rows)


def distance_table(rows: Sequence[NoisyDistances]) -> str:
    """Table 10.2 as CSV: what is printed, and what is computed."""
    header = (
        *("level", "radius", "ε per metre", "mean ± sd, km: printed", "computed"),
        *("root mean square, km: printed", "computed", "correlation: printed", "if linear"),
    )
    lines = []
    for row in rows:
        level = row.level
        square = (level.mean_km**2 + level.std_km**2) ** 0.5
        lines.append(
            (
                *(f"ln {level.odds}", f"{level.radius_m:,} m", level.epsilon_per_m),
                f"{level.mean_km:.2f} ± {level.std_km:.2f}",
                f"{row.mean_km:.2f} ± {row.std_km:.2f}" + ("" if row.mean_agrees else " (differs)"),
                f"{square:.2f}",
                f"{row.root_mean_square_km:.2f}" + ("" if row.square_agrees else " (differs)"),
                *(f"{level.correlation:.3f}", f"{row.correlation:.3f}"),
            )
        )
    return csv_table(header, lines)


def distances_in_short(rows: Sequence[NoisyDistances]) -> str:
    """Count the levels that agree."""
    means, squares = sum(row.mean_agrees for row in rows), sum(row.square_agrees for row in rows)
    return f"{means} of {len(rows)} means agree within 20 m, {squares} of {len(rows)} mean squares"


def of_100(share: float) -> str:
    """A probability in cases of a hundred."""
    return f"{100 * share:.2f}"


def with_error(estimate: Estimate, *, digits: int, scale: float = 1.0) -> str:
    """Value and standard error."""
    return f"{scale * estimate.value:.{digits}f} ± {scale * estimate.std_error:.{digits}f}"


def _agreeing(cells: Sequence[PrintedCell]) -> str:
    return f"{sum(each.agrees for each in cells)} of {len(cells)} cells agree to the printed digits"


def _recognised(epsilon: str) -> str:
    grr, ouez = (
        of_100(recognition.expected(recognition.Setting(variant=each, epsilon=epsilon))[0])
        for each in ("grr", "ouez")
    )
    return f"{grr} (GRR) or {ouez} (OUE-z)"


def _count(comparisons: Iterable[Comparison]) -> str:
    found = [comparison.agrees for comparison in comparisons]
    return f"{sum(found)} of {len(found)} numbers agree"


def forecast_losses() -> str:
    """Epsilons of table 8.4 and of noise on inputs, printed and computed, as CSV."""
    rows = []
    for printed, (batch, noise) in forecasts.SGD.items():
        losses = forecasts.printed_epsilon(batch, noise), forecasts.sgd_epsilon(batch, noise)
        inputs = forecasts.input_epsilons(forecasts.INPUT_SD[printed])
        rows.append(
            [f"{printed:.4f}", *(f"{each:.4f}" for each in losses), str(forecasts.INPUT_PRINTED[printed])]
            + [f"{each:.2f}" for each in inputs]
        )
    header = ("training, printed", "its floor", "all orders", "inputs, printed", "one zone", "nested zones")
    return csv_table(header, rows)
