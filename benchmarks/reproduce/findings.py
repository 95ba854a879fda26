"""Results of the simulations, compared with the published ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from benchmarks.reproduce import gains, loloha, published, recognition, solutions, streams, windows
from benchmarks.reproduce.runs import Comparison, Estimate, Floats, mean

RATIO: Final[tuple[solutions.Solution, ...]] = ("adp", "smp")
NEARLY: Final = 1.1  # "nearly the same" as Smp: at most this multiple of its error


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Findings:
    """Errors of all runs, by setting; the first axis is the run."""

    gain_runs: gains.Errors
    window_runs: Mapping[windows.Setting, Floats]
    solution_runs: Mapping[solutions.Setting, Floats]
    recognition_runs: Mapping[recognition.Setting, Floats]
    stream_runs: Mapping[str, Floats]
    loloha_runs: Mapping[loloha.Setting, Floats]

    @property
    def n_gain_runs(self) -> int:
        """Runs per setting of tables 6.3 and 6.4."""
        return int(next(iter(self.gain_runs.values())).shape[0])

    @property
    def n_window_runs(self) -> int:
        """Runs per setting of figures 5.4 and 5.5."""
        return int(next(iter(self.window_runs.values())).shape[0])

    @property
    def n_solution_runs(self) -> int:
        """Runs per setting of figure 7.11."""
        return int(next(iter(self.solution_runs.values())).shape[0])

    @property
    def n_stream_runs(self) -> int:
        """Runs per scenario of streams."""
        return int(next(iter(self.stream_runs.values())).shape[0])

    @property
    def n_loloha_runs(self) -> int:
        """Runs per setting of LOLOHA's data."""
        return int(next(iter(self.loloha_runs.values())).shape[0])

    def loloha_comparisons(self) -> list[Comparison]:
        """Return comparisons with the numbers of table 2, one of each epsilon."""
        return [
            loloha.compare(setting, of_runs)
            for setting, of_runs in self.loloha_runs.items()
            if setting.protocol in published.CAUGHT
        ]

    def stream_comparisons(self) -> dict[tuple[str, str], Comparison]:
        """Return comparisons by (scenario, method)."""
        return {
            (scenario, method): comparison
            for scenario, of_runs in self.stream_runs.items()
            for method, comparison in streams.compare(scenario, of_runs).items()
        }

    def gain_comparisons(
        self, data: published.DataSet = "ms-fimu"
    ) -> dict[tuple[str, gains.Baseline], Comparison]:
        """Return the gains by (alpha, protocol), on one data set."""
        return {
            (alpha, baseline): gains.compare(self.gain_runs, alpha=alpha, baseline=baseline, data=data)
            for alpha, baseline in published.GAINS[data]
        }

    def window_comparisons(self) -> dict[tuple[windows.Solution, str], Comparison]:
        """Return comparisons by (solution, epsilon); the published run is one of the same kind as ours."""
        comparisons = {}
        for (solution, epsilon), value in published.WINDOW_ERRORS.items():
            errors = self.window_errors(solution, epsilon=epsilon, per_profile=False).mean(axis=1)
            run = Estimate(value=value, std_error=float(errors.std(ddof=1)))
            comparisons[solution, epsilon] = Comparison(published=run, ours=mean(errors))
        return comparisons

    def window_errors(self, solution: windows.Solution, *, epsilon: str, per_profile: bool) -> Floats:
        """Errors by run and window."""
        return self.window_runs[windows.Setting(solution=solution, epsilon=epsilon, per_profile=per_profile)]

    def windows_won(self) -> tuple[int, int]:
        """Count how often Smp has the smaller error than Spl, over epsilons and windows; and of how many."""
        won = 0
        for epsilon in published.WINDOW_EPSILONS:
            smp, spl = (
                self.window_errors(solution, epsilon=epsilon, per_profile=False).mean(axis=0)
                for solution in windows.SOLUTIONS
            )
            won += int((smp < spl).sum())
        return won, len(published.WINDOW_EPSILONS) * len(windows.WINDOWS)

    def ratios_to_smp(self, *, amplified: bool) -> list[float]:
        """MSE of RS+FD[ADP] over that of Smp[ADP], by epsilon."""
        fake, smp = (
            [self.solution_runs[setting].mean() for setting in solutions.curve(name, amplified=amplified)]
            for name in RATIO
        )
        return [float(a / b) for a, b in zip(fake, smp, strict=True)]
