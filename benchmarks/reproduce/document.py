"""The text of docs/reproduction.md: what a paper claims, what we compute, and whether it agrees."""

from collections.abc import Iterable, Sequence
from textwrap import fill
from typing import Final

import ldp
from benchmarks.reproduce import (
    exact,
    forecasts,
    loloha,
    published,
    recognition,
    scenarios,
    streams,
    tables,
    windows,
)
from benchmarks.reproduce.distances import levels
from benchmarks.reproduce.exact import Cell, SolutionRow
from benchmarks.reproduce.findings import NEARLY, Findings
from benchmarks.reproduce.marginals import everybody, french_visitors, nursery
from benchmarks.reproduce.runs import Comparison
from benchmarks.reproduce.variances import one_round, two_rounds

WIDTH: Final = 110
LOSS_EPSILONS: Final = ("0.5", "1", "2", "3")


def render(found: Findings) -> str:
    """Put the whole document together."""
    cells = exact.cells()
    sections = [
        head(),
        f"## In short\n\n{tables.summary_table(found)}",
        variance_section(),
        tuning_section(cells),
        gain_section(found),
        nursery_section(found),
        window_section(found),
        solution_section(found),
        loss_section(),
        recognition_section(),
        distance_section(),
        scenario_section(),
        forecast_section(),
        stream_section(found),
        loloha_section(found),
    ]
    return "\n".join(wrapped(section) for section in sections)


def wrapped(section: str) -> str:
    """Fill the lines of its paragraphs; tables, headings and charts stay as they are."""
    filled = [
        block
        if block.startswith(("|", "#", "!"))
        else fill(block, WIDTH, break_long_words=False, break_on_hyphens=False)
        for block in section.strip().split("\n\n")
    ]
    return "\n\n".join(filled) + "\n"


def head() -> str:
    """How to read it."""
    return f"""# Reproduction of published results

`make reproduce` writes this page and the files it links to from the library (`ldp`) with fixed keys: the
same bytes on every run. Data: MS-FIMU (`mobility/demo/SOURCES.md`). Simulated numbers have their
standard error over the runs; bars in charts are 95% intervals. A number *agrees* if it is within three
standard errors of the published one, whose error is taken from our runs and the number of runs of the
paper.

Published numbers: {published.THESIS} ("the thesis"), and its author's notebooks
({published.NOTEBOOKS}). *Paper tuning* is what is published; *exact tuning* is what `ldp` uses: the most
useful parameters that keep the stated epsilon exactly.
"""


def variance_section() -> str:
    """Tables 6.1 and 6.2."""
    two, one = two_rounds(), one_round()
    return f"""## Tables 6.1 and 6.2: variances

**Claim.** Approximate variances (at frequency 0) for {published.TABLE_USERS:,} users. Table 6.1: two
rounds with ε₁ = alpha ε∞, L-GRR for 2, 32 and 1024 values and four L-UE protocols. Table 6.2: one round.

**Here.** Variances of the channels of `ldp` in paper tuning, from their integer probabilities:
{sum(each.agrees for each in two)} of {len(two)} and {sum(each.agrees for each in one)} of {len(one)} cells
round to the printed digits ([table 6.1](reproduction/table-6-1.csv),
[table 6.2](reproduction/table-6-2.csv)). In the text, two rows under alpha = 0.3 have wrong labels and should
read (2.0, 0.60) and (4.0, 1.20).
"""


def tuning_section(cells: Sequence[Cell]) -> str:
    """L-GRR for the domains of MS-FIMU, and what exact tuning changes."""
    changed = changed_choices(cells)
    return f"""## L-GRR in exact tuning

With k = 2, 32 and 1024 values, {sum(cell.agrees for cell in cells)} of {len(cells)} cells agree with the
published formula (equations 6.5 and 6.7) to nine digits. [Others](reproduction/l-grr.csv) are not
published.

The published second round is right for two values only; for more it reveals less than it may. Variance in
paper tuning over exact tuning, over the 24 cells of a k:

{tables.ratio_table(cells)}

The choice of ALLOMFREE changes in {len(changed)} cells ([file](reproduction/choices.csv)), which divides the
variance by up to {max(cell.gain for cell in changed):.3f}.

With exact tuning and k > 2, several reports of one value can lose more than
their number times ε₁ (never more than ε∞); with paper tuning they cannot. `ldp` can also tune for the loss
of several reports (`horizon`): {_horizon_text(7)}.
"""


def changed_choices(cells: Sequence[Cell]) -> list[Cell]:
    """Cells in which exact tuning changes the choice of ALLOMFREE."""
    return [cell for cell in cells if cell.paper_choice != cell.exact_choice]


def gain_section(found: Findings) -> str:
    """Tables 6.3 and 6.4."""
    comparisons = found.gain_comparisons().values()
    return f"""## Tables 6.3 and 6.4: gains of ALLOMFREE on MS-FIMU

**Claim.** Gain of ALLOMFREE in MSE over L-SUE (Basic RAPPOR) and L-OUE, with one of six attributes per
user (Smp): mean over ε∞ = 0.5, 1, ..., 4 and {published.GAIN_RUNS} runs. As in the
notebook, negative estimates are set to 0 and the rest is rescaled.

**Here.** The same with {found.n_gain_runs} runs of {everybody().pseudonyms.size:,} users.

{tables.table(*tables.gain_rows(found, "ms-fimu"))}

{_agreement(comparisons)}

![Gain by epsilon](reproduction/gains.svg)
"""


def nursery_section(found: Findings) -> str:
    """Tables 6.3 and 6.4 on another data set."""
    people = nursery()
    return f"""## Tables 6.3 and 6.4: gains of ALLOMFREE on Nursery

**Claim.** The same on Nursery. **Here.** {found.n_gain_runs} runs on data made from their definition: each
combination of eight attributes once, {people.pseudonyms.size:,} rows, and the class as ninth attribute by
its counts ({_counts()}).

{_agreement(found.gain_comparisons("nursery").values(), "nursery.csv")} Adult and Census are not
reproduced: no shares of them are here.
"""


def window_section(found: Findings) -> str:
    """Figures 5.4 and 5.5."""
    won, total = found.windows_won()
    return f"""## Figures 5.4 and 5.5: Smp[GRR] and Spl[GRR] by day and union of days

**Claim.** One attribute per user with all of ε (Smp) beats six with ε / 6 each (Spl) on every union
of consecutive days. The notebook prints, for one run, the mean over 28 windows of the
RMSE of all categories, clipped.

**Here.** {found.n_window_runs} runs, in percentage points, of {french_visitors().presence.size:,} French
visitors with the marginals and daily totals of the data. How attributes and days go together is made up.

{_agreement(found.window_comparisons().values(), "figures-5-4-5-5.csv")} Smp has the smaller error in {won}
of {total} windows and epsilons.

![Mean error by epsilon](reproduction/window-errors.svg)

![Error by window, epsilon 1](reproduction/windows.svg)

**At equal epsilon of a profile.** The visit duration is answered every day, so over the week a profile
loses up to {_profile_loss("smp-grr")} ε under Smp and up to {_profile_loss("spl-grr")} ε under Spl. If the
whole week has ε, the lead of Smp is smaller{_profile_lead(found)}.
"""


def solution_section(found: Findings) -> str:
    """Figure 7.11."""
    thesis, profile = (found.ratios_to_smp(amplified=amplified) for amplified in (True, False))
    useful, honest = (sum(ratio <= NEARLY for ratio in ratios) for ratios in (thesis, profile))
    return f"""## Figure 7.11: Spl, Smp and RS+FD by epsilon

**Claim.** RS+FD (one attribute answered, fakes for the others) has nearly the same MSE as Smp or a
smaller one, for ε = ln 2, ..., ln 7.

**Here.** {found.n_solution_runs} runs, clipped ([all numbers](reproduction/figure-7-11.csv)). As in the
thesis, where the answers of RS+FD have ε' = ln(6(e^ε - 1) + 1), RS+FD[ADP] has {min(thesis):.2f} to
{max(thesis):.2f} times the MSE of Smp[ADP]: the claim **holds** at {useful} of {len(thesis)} epsilons
(at most {NEARLY} times). At the same loss of a profile it has {min(profile):.1f} to
{max(profile):.1f} times: the claim holds at {honest} of {len(profile)}.

![MSE by epsilon](reproduction/solutions.svg)
"""


def loss_section() -> str:
    """Losses of RS+FD, and exact variances at equal loss."""
    rows = [exact.solution_row(epsilon) for epsilon in LOSS_EPSILONS]
    amplified = float(rows[1].amplified)
    attribute = ", ".join(f"{row.attribute_adp / row.smp_adp:.2f}" for row in rows)
    return f"""## RS+FD: privacy loss, and variances at equal loss

**Claim.** Algorithm 4 gives the answer ε' = ln(d(e^ε - 1) + 1) and calls the whole ε-LDP.

**Here.** Exact losses for ε = 1, d = 6 (ε' = {amplified:.4f}) and the domains of MS-FIMU, of a profile and
of one attribute if the others stay, are in [a file](reproduction/losses.csv).

**Does not agree.** LDP is about any two inputs, and an input is a profile. Reports that fit all of one
profile and none of another do so for any answer, so the loss is ε' with every variant. For one
attribute it is ε with OUE-z; more with GRR for large domains, and with OUE-r above two values.

**Variances** at frequency 0 for ε = {", ".join(LOSS_EPSILONS)} ([all](reproduction/variances.csv)). With ε',
RS+FD[ADP] seems to have {_ratios(rows[:2], amplified=True)} times the variance of Smp[ADP] for ε at most
1, and {_ratios(rows[2:], amplified=True)} times above. At equal epsilon of a profile it has
{_ratios(rows, amplified=False)} times: it is Smp with fakes added to the answer. If the promise is about
one attribute only, it has {attribute} times: fakes help where ε is small.
"""


def recognition_section() -> str:
    """Text about the recognition of the answer."""
    chance, with_value = (tables.of_100(each) for each in recognition.before())
    first, last = recognition.EPSILONS[0], recognition.EPSILONS[-1]
    return f"""## RS+FD: which report is the answer

**Question.** Section 12.2 leaves open whether an attacker can infer which of a person's six reports is the
answer.

**Here.** The best attack knows the channel and the shares of each attribute, and names the report that is
likelier an answer than a fake by the largest factor. Of 100 guesses for ε = {first} to {last},
{_guesses("grr")} are right with GRR and {_guesses("ouez")} with OUE-z; chance is {chance}. Of guesses of
the answer and its true value, {_guesses("grr", 1)} and {_guesses("ouez", 1)}; without reports {with_value}.
Exact, and simulated with {everybody().pseudonyms.size:,} people: [file](reproduction/recognition.csv).

**Often one can.** Fakes of OUE-z have fewer bits than answers, and fakes of GRR are as frequent for rare
values as for others. When a value changes, a fake stays, so the report that changes is the answer.
"""


def distance_section() -> str:
    """Tables 10.1 and 10.2."""
    return f"""## Tables 10.1 and 10.2: distances after planar Laplace noise

**Claim.** For emergencies under five levels of geo-indistinguishability: great-circle distance to the
centre that sends the ambulance, and its correlation with the response time. Before noise they are
{published.MEAN_KM} ± {published.STD_KM} km and {published.CORRELATION}.

**Here.** Changes of zone are not reproduced: the data are not public. The mean
square distance is the one before plus 6 / ε². For the mean, distances are taken as lognormal with the
printed mean and deviation; for the correlation, the response time as linear in the true distance.

{tables.distances_in_short(levels())} ([all numbers](reproduction/table-10-2.csv)). Printed correlations are
lower. Keyed noise on squares gives the same within 20 m ([sanitised tables](sanitised_tables.md#measured)).
"""


def scenario_section() -> str:
    """Chapter 4."""
    all_week, one_day = (row.answer for row in scenarios.rows()[:2])
    solutions = 100 * scenarios.misplaced_by_solutions()
    return f"""## Chapter 4: who came on which days

**Claim.** A linear program finds, from unions, how many visitors came on each combination of days:
{published.ALL_WEEK} on all seven. Error rate of unions: below 8.1%.

**Here.** The unions of MS-FIMU allow {all_week.least:,} to {all_week.most:,} on all seven (estimate:
{all_week.estimate:.0f}) and {one_day.least:,} to {one_day.most:,} on exactly one
([more](reproduction/scenarios.csv)). {(scenarios.widths() == 0).sum()} of {len(scenarios.PATTERNS)}
combinations are determined.

**Does not agree.** {scenarios.SOLUTIONS} solutions of the program with random costs misplace
{solutions.min():.1f}% to {solutions.max():.1f}% of visitors (mean {solutions.mean():.1f}%), the estimate
{100 * scenarios.misplaced_by_estimate():.1f}%. A synthetic population has the same unions, and
attributes within {100 * max(scenarios.synthetic_errors().values()):.2f}%.
"""


def forecast_section() -> str:
    """Chapter 8."""
    found = forecasts.on_training_days()
    models = ", ".join(f"{name} {error:,}" for name, error in forecasts.MODELS.items())
    ours, persistence = found.model.mean(), found.persistence.mean()
    low, high = (forecasts.input_epsilons(each(forecasts.INPUT_SD.values())) for each in (max, min))
    low_printed, high_printed = (each(forecasts.INPUT_PRINTED.values()) for each in (min, max))
    shares = [f"{100 * each.min():.1f}% to {100 * each.max():.1f}%" for each in found.coverage]
    return f"""## Chapter 8: forecasts of half hours

**Claim.** Next half hour of six zones of Paris, last week, mean RMSE: {models}.
*Not computed here*: the week is not part of the repository
(`python -m benchmarks.reproduce.forecasts FILE`, which also adds noise).

**Here.** On the three weeks before, each forecast by a ridge regression fitted to earlier days:
{ours:,.0f}, last value {persistence:,.0f}. Intervals of 80% contain {shares[0]} by zone, of 95% {shares[1]}.

**Privacy: does not agree.** Epsilons of table 8.4 are the floor of an accountant that stops at order
{forecasts.TFP_ORDER}, and protect a row, not a person. Noise on inputs composes to {low[0]:.2f} to
{high[0]:.2f} for a person in all slots, not {low_printed} to {high_printed}; with nested zones to
{low[1]:.2f} to {high[1]:.2f} ([file](reproduction/table-8-4.csv)).
"""


def stream_section(found: Findings) -> str:
    """Errors of streams."""
    variances = ", ".join(f"{ratio:.1f} (w = {window})" for window, ratio in streams.ratios().items())
    budget, people = streams.exact_errors()
    least, most = streams.smoothed_shares(found.stream_runs)
    defined = [each for key, each in found.stream_comparisons().items() if streams.is_defined(*key)]
    return f"""## Streams: dividing people or epsilon, and smoothed days

**Claim.** LDP-IDS (Ren et al., SIGMOD 2022): where any w days in a row lose at most ε, asking everyone once
in w days with all of ε (LPU) is more exact than asking every day with ε / w (LBU). An
unpublished study for the design of `smp-stream` gives figures with unary encoding (OUE), {streams.BASE.size}
categories, {streams.DAYS} days, {streams.N:,} people, ε = 1, w = {streams.WINDOW}; LPU also with the filter
(live) and the smoother (all days).

**Here.** Mean squared error of a day, times 10,000: stated; {found.n_stream_runs} runs; deviation. Exact,
for steady shares: LBU {budget:.2f}, LPU {people:.2f}.

{tables.stream_table(found)}

{_agreement(defined)} These are LBU, LPU and all steady days, if the study has
{streams.STATED_RUNS} runs (it says 12 to 40). It does not define the other scenarios: ours are made to be
alike, so their smoothed errors confirm only the order of size.

The variance of LBU over that of LPU at frequency 0 is, exactly, {variances}. Filter and smoother follow
weekends and events late; their errors are {least:.2f} to {most:.2f} times those of LPU. `smp-stream` sends
codes instead of bits ([daily values](daily_values.md#streams)).
"""


def loloha_section(found: Findings) -> str:
    """LOLOHA on its synthetic data."""
    n_best = sum(each.best == each.equation for each in loloha.cells())
    best, two = (loloha.variance_ratios(protocol) for protocol in ("OLOLOHA", "BiLOLOHA"))
    return f"""## LOLOHA: hashes, errors and losses of repeated reports

**Claim.** {published.LOLOHA} (EDBT 2023): the best number g of hash values (figure 1), variances (figure 2),
the largest loss (table 1). On synthetic data, errors and losses (figures 3 and 4), and of how many people
dBitFlipPM shows every change (table 2): 0% (d = 1), 100% (d = b). Figures are only drawn.

**Here.** Equation (6) gives the g with the least variance in {n_best} of {len(loloha.cells())} cells, and is
off by one in the others ([file](reproduction/loloha.csv)). The variance of OLOLOHA is {best[0]:.2f} to
{best[1]:.2f} times that of L-OSUE, and never smaller; that of BiLOLOHA {two[0]:.2f} to {two[1]:.2f} times.

{published.SYN_USERS:,} people, {published.SYN_VALUES} values, {published.SYN_COLLECTIONS} collections; a
value changes to another one with probability {published.SYN_CHANGE}; ε₁ = {loloha.ALPHA} ε∞;
{found.n_loloha_runs} runs. Mean squared error of a collection, times 10,000; mean and largest loss of a
person:

{tables.loloha_table(found)}

{_agreement(found.loloha_comparisons())} These are those of table 2. dBitFlipPM has one round: its answers are
kept, so equal reports link a person, and with d = b each change is seen. With d = 1 a person loses least, at
a much larger error than that of LOLOHA.
"""


def files(found: Findings) -> dict[str, str]:
    """Return large tables by file name."""
    return exact_files(exact.cells()) | {
        "nursery.csv": tables.csv_table(*tables.gain_rows(found, "nursery")),
        "figures-5-4-5-5.csv": tables.window_table(found),
        "figure-7-11.csv": tables.solution_table(found),
        "recognition.csv": tables.recognition_table(found),
    }


def exact_files(cells: Sequence[Cell]) -> dict[str, str]:
    """Return the files that do not depend on chance."""
    return {
        "table-6-1.csv": tables.printed_table(two_rounds(), ("alpha", "ε∞")),
        "table-6-2.csv": tables.printed_table(one_round(), ("ε",)),
        "scenarios.csv": tables.scenario_table(),
        "table-8-4.csv": tables.forecast_losses(),
        "table-10-2.csv": tables.distance_table(levels()),
        "losses.csv": tables.loss_table(),
        "loloha.csv": tables.loloha_variances(),
        "choices.csv": tables.changed_table(changed_choices(cells)),
        "l-grr.csv": tables.variance_table(cells),
        "variances.csv": tables.loss_variance_table([exact.solution_row(each) for each in LOSS_EPSILONS]),
    }


def _guesses(variant: recognition.Variant, which: int = 0) -> str:
    """Right guesses of 100, from the smallest epsilon to the largest."""
    ends = (recognition.EPSILONS[0], recognition.EPSILONS[-1])
    settings = (recognition.Setting(variant=variant, epsilon=each) for each in ends)
    return " to ".join(tables.of_100(recognition.expected(each)[which]) for each in settings)


def _counts() -> str:
    return ", ".join(f"{each:,}" for each in published.NURSERY_CLASSES)


def _agreement(comparisons: Iterable[Comparison], file: str = "") -> str:
    found = list(comparisons)
    numbers = f"numbers ([file](reproduction/{file}))" if file else "numbers"
    differ = sum(not comparison.agrees for comparison in found)
    if not differ:
        return f"**Agrees**: all {len(found)} {numbers}."
    return f"**Does not agree**: {differ} of {len(found)} {numbers} differ by more than chance explains."


def _horizon_text(reports: int) -> str:
    low, high = exact.domains_won(reports=reports)
    return f"for {reports} reports L-GRR leads L-OSUE up to k = {low} to {high}"


def _profile_loss(solution: windows.Solution) -> str:
    plan = windows.plan(windows.Setting(solution=solution, epsilon="1", per_profile=False))
    return f"{float(ldp.certify(plan).epsilon_profile):.3g}"


def _profile_lead(found: Findings) -> str:
    """Ratio of the errors of Spl and Smp, in both comparisons."""
    leads = []
    for per_profile in (False, True):
        ratios = [
            found.window_errors("spl-grr", epsilon=epsilon, per_profile=per_profile).mean()
            / found.window_errors("smp-grr", epsilon=epsilon, per_profile=per_profile).mean()
            for epsilon in published.WINDOW_EPSILONS
        ]
        leads.append(f"{min(ratios):.1f} to {max(ratios):.1f} times")
    return f" (error of Spl over that of Smp: {leads[0]} in the thesis' comparison, {leads[1]} at equal loss)"


def _ratios(rows: Sequence[SolutionRow], *, amplified: bool) -> str:
    ratios = [(row.amplified_adp if amplified else row.fake_data["adp"]) / row.smp_adp for row in rows]
    return f"{min(ratios):.2f} to {max(ratios):.2f}"
