"""The text of docs/reproduction.md: what a paper claims, what we compute, and whether it agrees."""

from collections.abc import Iterable, Sequence
from textwrap import fill
from typing import Final

import ldp
from benchmarks.reproduce import exact, published, recognition, tables, windows
from benchmarks.reproduce.distances import levels
from benchmarks.reproduce.exact import Cell, SolutionRow
from benchmarks.reproduce.findings import NEARLY, Findings
from benchmarks.reproduce.marginals import everybody, french_visitors, nursery
from benchmarks.reproduce.runs import Comparison
from benchmarks.reproduce.variances import one_round, two_rounds

WIDTH: Final = 110


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
        recognition_section(found),
        distance_section(),
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

Written by `make reproduce` from the code that runs (`ldp`), with fixed keys: the same bytes on every run.
Do not edit it. Experiments are on MS-FIMU (sources: `mobility/demo/SOURCES.md`); every simulated
report goes through the library's keyed mechanisms. A simulated number stands with its standard error over
the runs. It *agrees* if chance explains the difference: at most three standard errors, with that of the
published number taken from our runs, for as many runs as the paper has. Bars in charts are 95 %
intervals of the mean.

The papers' numbers are those of {published.THESIS} ("the thesis") and of the notebooks that its author
publishes for the same experiments ({published.NOTEBOOKS}). *Paper tuning* is what is published; *exact
tuning* is what `ldp` uses: the most useful parameters that keep the stated epsilon exactly.
"""


def variance_section() -> str:
    """Tables 6.1 and 6.2."""
    two, one = two_rounds(), one_round()
    return f"""## Tables 6.1 and 6.2: variances

**Claim.** Table 6.1: approximate variance (at frequency 0) of two rounds, for {published.TABLE_USERS:,}
users and ε₁ = alpha ε∞; of L-GRR for 2, 32 and 1024 values, and of the four L-UE protocols, for which the
number of values does not matter. Table 6.2: the same of one round.

**Cited.** The {len(two)} cells of table 6.1 below are the digits that the author's notebook prints
(papers/[4]); it rounds to six digits, and L-GRR 1024 then to five. (Two rows of the table in the text carry
wrong labels: under alpha = 0.3 they should read (2.0, 0.60) and (4.0, 1.20).) The {len(one)} cells of table
6.2 are those of the text.

**Here.** Variances of the channels that `ldp` makes in paper tuning, from their integer probabilities:
{sum(each.agrees for each in two)} of {len(two)} and {sum(each.agrees for each in one)} of {len(one)} cells
round to the printed digits.

{tables.printed_table(two, ("alpha", "ε∞"))}

{tables.printed_table(one, ("ε",))}
"""


def tuning_section(cells: Sequence[Cell]) -> str:
    """L-GRR for the domains of MS-FIMU, and what exact tuning changes."""
    changed = [cell for cell in cells if cell.paper_choice != cell.exact_choice]
    return f"""## L-GRR with other numbers of values, and in exact tuning

**Computed only.** Other numbers of values are not printed. These are variances of L-GRR in paper tuning for
some that occur in MS-FIMU. With k = 2, 32 and 1024, {sum(cell.agrees for cell in cells)} of {len(cells)}
cells agree with the published formula (equations 6.5 and 6.7) to nine digits.

{tables.variance_table(cells)}

**Exact tuning.** The published second round is right for two values only; for more it reveals less than
it may and pays for it. Variance in paper tuning over that in exact tuning, least and most over the 24
cells of a k:

{tables.ratio_table(cells)}

That changes the choice of ALLOMFREE in {len(changed)} cells:

{tables.changed_table(changed)}

This gain is that of *one* report. With exact tuning and k > 2 several reports of one value can lose more
than their number times ε₁ (never more than ε∞); with paper tuning they cannot. So `ldp` can also tune for
the loss of several reports together (`horizon`): {_horizon_text(7)}; {_horizon_text(30)}.
"""


def gain_section(found: Findings) -> str:
    """Tables 6.3 and 6.4."""
    comparisons = found.gain_comparisons().values()
    largest = max(comparison.published.std_error for comparison in comparisons)
    return f"""## Tables 6.3 and 6.4: gains of ALLOMFREE on MS-FIMU

**Claim.** MSE of ALLOMFREE against that of L-SUE (Basic RAPPOR) and L-OUE, each user answering one of six
attributes (Smp): gain in percent, mean over ε∞ = 0.5, 1, ..., 4, for ε₁ = 0.3 ε∞ and 0.6 ε∞; mean of
{published.GAIN_RUNS} runs. The text does not say what the notebook does: negative estimates are set to 0
and the rest is divided by its sum.

**Here.** The same with {found.n_gain_runs} runs of {everybody().pseudonyms.size:,} users per protocol and
epsilon. The last column is the gain in exact variance, of unbiased estimates.

{tables.gain_table(found, "ms-fimu")}

{_agreement(comparisons)} By our runs the published means have standard errors of up to {largest:.1f}
points. The gains would be larger without the clip, which helps the noisier protocol more.

![Gain by epsilon](reproduction/gains.svg)
"""


def nursery_section(found: Findings) -> str:
    """Tables 6.3 and 6.4 on another data set."""
    people = nursery()
    return f"""## Tables 6.3 and 6.4: gains of ALLOMFREE on Nursery

**Claim.** The same on Nursery. (The text counts eight attributes in one place and nine, with the class, in
another.)

**Here.** The data set is fully determined, so it is made and not loaded: each combination of its eight
attributes once, {people.pseudonyms.size:,} rows, and as ninth attribute the class, by its counts
({_counts()}). Which row has which class does not matter, since each estimate is about one attribute.
{found.n_gain_runs} runs.

{tables.gain_table(found, "nursery")}

{_agreement(found.gain_comparisons("nursery").values())} The numbers for Adult and Census are not
reproduced: their shares are not in this repository.
"""


def window_section(found: Findings) -> str:
    """Figures 5.4 and 5.5."""
    won, total = found.windows_won()
    return f"""## Figures 5.4 and 5.5: Smp[GRR] and Spl[GRR] by day and union of days

**Claim.** One attribute per user with all of ε (Smp) beats all six with ε / 6 each (Spl), on each of
seven days and every union of consecutive days. The figures only draw it; the notebook prints, for one
run, the mean over the 28 windows of the RMSE of all categories of the six attributes together, clipped as
above.

**Here.** {found.n_window_runs} runs, in percentage points: {french_visitors().presence.size:,} French
visitors of the demo's population, which has the marginals and daily totals of the data; how attributes and
days go together is made up, so the true frequencies of a window are not quite those of the paper. The
published number counts as one run of ours. (The notebook seeds its generator with the person's number;
here bits are keyed.)

{tables.window_table(found)}

{_agreement(found.window_comparisons().values())} Smp has the smaller error in {won} of {total} windows
and epsilons. Unions need no further ε, since a report is used again and not drawn again.

![Mean error by epsilon](reproduction/window-errors.svg)

![Error by window, epsilon 1](reproduction/windows.svg)

**At equal epsilon of a profile.** The thesis counts the answers of one day, but the visit duration is
answered every day. Over the week a profile loses up to {_profile_loss("smp-grr")} ε under Smp (who is
asked for the duration answers on seven days) and up to {_profile_loss("spl-grr")} ε under Spl (five
answers once and one on seven days, ε / 6 each). In the last column the whole week has ε. What the thesis
draws is therefore not a comparison at equal loss; at equal loss the lead of Smp is
smaller{_profile_lead(found)}.
"""


def solution_section(found: Findings) -> str:
    """Figure 7.11."""
    thesis, profile = (found.ratios_to_smp(amplified=amplified) for amplified in (True, False))
    useful, honest = (sum(ratio <= NEARLY for ratio in ratios) for ratios in (thesis, profile))
    return f"""## Figure 7.11: Spl, Smp and RS+FD by epsilon

**Claim.** RS+FD (one attribute answered, fakes for the others) has nearly the same MSE as Smp or a
smaller one, for ε = ln 2, ..., ln 7 on MS-FIMU. The sources at hand say it in words and draw it, without
numbers, so nothing can be compared to the digit.

**Here.** {found.n_solution_runs} runs, clipped as in the notebook; MSE in units of 0.0001. First as in
the thesis, where the answers of RS+FD have ε' = ln(6(e^ε - 1) + 1):

{tables.solution_table(found, amplified=True)}

Then with the same loss of a profile, so that the answers of RS+FD have ε:

{tables.solution_table(found, amplified=False)}

With ε', RS+FD[ADP] has {min(thesis):.2f} to {max(thesis):.2f} times the MSE of Smp[ADP]: the claim
**holds** at {useful} of {len(thesis)} epsilons, if nearly the same means at most {NEARLY} times. At the
same epsilon of a profile it has {min(profile):.1f} to {max(profile):.1f} times: the claim holds at
{honest} of {len(profile)}.

![MSE by epsilon](reproduction/solutions.svg)
"""


def loss_section() -> str:
    """What RS+FD reveals, and exact variances at equal loss."""
    rows = [exact.solution_row(epsilon) for epsilon in ("0.5", "1", "2", "3")]
    amplified = float(rows[1].amplified)
    attribute = ", ".join(f"{row.attribute_adp / row.smp_adp:.2f}" for row in rows)
    return f"""## RS+FD: what is lost, and variances at equal loss

**Claim.** Algorithm 4 of the thesis gives the answer ε' = ln(d(e^ε - 1) + 1) and calls the whole ε-LDP,
by amplification by sampling.

**Here.** Exact losses of the channels of `ldp` for ε = 1, d = 6 (ε' = {amplified:.4f}) and the domains of
MS-FIMU: of a whole profile, and of one attribute if the others stay.

{tables.loss_table()}

**Does not agree.** LDP is about any two inputs, and here an input is a profile. Reports that fit all of
one profile and none of another do so whichever of them is the answer, so nothing is hidden: the loss is
ε' with every variant. For one attribute it is ε with OUE-z; with GRR large domains lose more, with OUE-r
all of more than two values.

Mean over the attributes of n times the variance at frequency 0, in columns 3 to 8 at equal epsilon of a
profile:

{tables.loss_variance_table(rows)}

With ε', RS+FD[ADP] seems to have {_ratios(rows[:2], amplified=True)} times the variance of Smp[ADP] for ε
at most 1, and {_ratios(rows[2:], amplified=True)} times for ε of 2 and 3. At equal epsilon of a profile
it has {_ratios(rows, amplified=False)} times the variance. It can only lose there: it is Smp with fakes
added to the answer. If the promise is about one attribute only, RS+FD[ADP] has {attribute} times the
variance of Smp[ADP], by epsilon: fakes help where ε is small.
"""


def recognition_section(found: Findings) -> str:
    """Which report is the answer."""
    chance, with_value = (tables.of_100(each) for each in recognition.before())
    n_runs = next(iter(found.recognition_runs.values())).size
    return f"""## RS+FD: which report is the answer

**Question.** Nobody is told which of the six reports of a person is the answer. Section 12.2 of the thesis
leaves open whether it can be inferred; nothing is printed.

**Here.** The best attack: it knows the channel and the shares of each attribute, sees all reports of a
person, and names the report that is likelier as an answer than as a fake by the largest factor. Of 100
people, so many answers are named rightly: in {n_runs} runs of {everybody().pseudonyms.size:,} simulated
people, and exactly (`ldp.privacy.attacker.answered_success`). By chance it would be {chance}. The last two
columns are guesses of the answer and its true value (`answer_success`); without reports {with_value} of 100
are right.

{tables.recognition_table(found)}

**Often one can.** Fakes of OUE-z have fewer bits than answers, and fakes of GRR are as frequent for rare
values as for others. With a permanent report more days show nothing more, as long as no value changes: a
fake stays when the value changes, so a report that changes is the answer.
"""


def distance_section() -> str:
    """Tables 10.1 and 10.2."""
    return f"""## Tables 10.1 and 10.2: distances after planar Laplace noise

**Claim.** Emergencies, with five levels of geo-indistinguishability (table 10.1): great-circle distance to
the centre that sends the ambulance, which is not moved; its correlation with the response time; and how
many emergencies noise moves elsewhere (table 10.2). Before noise the distance is {published.MEAN_KM} ±
{published.STD_KM} km, its correlation {published.CORRELATION}.

**Here.** The data are not public, so places cannot be moved to other zones: those numbers are cited only.
Distances follow from `ldp.geo.distances`. Their mean square is the one before plus 6 / ε², whatever their
law. For the mean they are taken as lognormal with the printed mean and standard deviation. The correlation
is that of a response time that is linear in the true distance.

{tables.distance_table(levels())}

Means and standard deviations **agree** within 20 m, mean squares to what printed digits can tell. The
printed correlations are lower than those of a linear response: response times grow less than in proportion
to distance.
"""


def _counts() -> str:
    return ", ".join(f"{each:,}" for each in published.NURSERY_CLASSES)


def _agreement(comparisons: Iterable[Comparison]) -> str:
    found = list(comparisons)
    differ = sum(not comparison.agrees for comparison in found)
    if not differ:
        return f"**Agrees**: all {len(found)} numbers."
    return f"**Does not agree**: {differ} of {len(found)} numbers differ by more than chance explains."


def _horizon_text(reports: int) -> str:
    low, high = exact.domains_won(reports=reports)
    return f"for {reports} reports L-GRR leads L-OSUE up to k = {low} to {high}, depending on the epsilons"


def _profile_loss(solution: windows.Solution) -> str:
    plan = windows.plan(windows.Setting(solution=solution, epsilon="1", per_profile=False))
    return f"{float(ldp.certify(plan).epsilon_profile):.3g}"


def _profile_lead(found: Findings) -> str:
    """How many times larger the error of Spl is, in both comparisons."""
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
