"""What the papers print, with its source. Numbers here are cited; nothing here is computed by `ldp`.

THESIS: H. H. Arcolezi, Production of Categorical Data Verifying Differential Privacy (2022), chapters 5 to 7.
NOTEBOOKS: those that its author publishes for the same experiments; they print what figures only draw.
"""

from collections.abc import Mapping
from math import exp
from typing import Final, Literal

THESIS: Final = "Arcolezi, *Production of Categorical Data Verifying Differential Privacy* (2022)"
NOTEBOOKS: Final = "<https://github.com/hharcolezi/ldp-protocols-mobility-cdrs>"

# Table 6.1: approximate variances of L-GRR and L-OSUE.
TABLE_USERS: Final = 10_000
TABLE_DOMAINS: Final = (2, 3, 8, 12, 32, 37, 1024)
TABLE_EPSILONS: Final = ("0.5", "1", "2", "4")
TABLE_ALPHAS: Final = ("0.1", "0.2", "0.3", "0.4", "0.5", "0.6")

# Tables 6.3 and 6.4: gain of ALLOMFREE in MSE over (alpha, protocol) in percent, mean over epsilon_inf.
GAINS: Final[Mapping[tuple[str, Literal["l-sue", "l-oue"]], float]] = {
    ("0.3", "l-sue"): 10.00,
    ("0.3", "l-oue"): 19.32,
    ("0.6", "l-sue"): 20.08,
    ("0.6", "l-oue"): 37.62,
}
GAIN_EPSILONS: Final = ("0.5", "1", "1.5", "2", "2.5", "3", "3.5", "4")
GAIN_RUNS: Final = 100  # seeds that each published mean is over (NOTEBOOKS, papers/[4])

# Figures 5.4 and 5.5: mean RMSE over the 28 windows, by epsilon (NOTEBOOKS, papers/[1]); one run.
WINDOW_ERRORS: Final[Mapping[tuple[Literal["smp-grr", "spl-grr"], str], float]] = {
    ("smp-grr", "1"): 0.029053723443993963,
    ("smp-grr", "2"): 0.008379547625574803,
    ("smp-grr", "3"): 0.004537593667519566,
    ("spl-grr", "1"): 0.07482844716099998,
    ("spl-grr", "2"): 0.047685857876355854,
    ("spl-grr", "3"): 0.028250093234046175,
}
WINDOW_EPSILONS: Final = ("1", "2", "3")

# Figure 7.11: epsilons ln 2 to ln 7 as the experiment rounds them (NOTEBOOKS, papers/[2]).
SOLUTION_EPSILONS: Final = ("0.6931", "1.0986", "1.3863", "1.6094", "1.7918", "1.9459")


def lgrr_variance(*, domain_size: int, epsilon_inf: float, epsilon_1: float) -> float:
    """Cell of table 6.1: variance of L-GRR at frequency 0, by equations (6.5) and (6.7) of the thesis."""
    k, e, f = domain_size, exp(epsilon_inf), exp(epsilon_1)
    rho = (e * f - 1) / (e - f)
    p1, q1 = e / (e + k - 1), 1 / (e + k - 1)
    p2, q2 = rho / (rho + k - 1), 1 / (rho + k - 1)
    q = q1 * p2 + (1 - q1) * q2
    return q * (1 - q) / (TABLE_USERS * ((p1 - q1) * (p2 - q2)) ** 2)
