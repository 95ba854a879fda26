"""Printed results of the papers, with sources. Numbers here are cited; nothing here is computed by `ldp`.

THESIS: H. H. Arcolezi, Production of Categorical Data Verifying Differential Privacy (2022), chapters 5 to 7.
NOTEBOOKS: those that its author publishes for the same experiments; they print what figures only draw.
"""

from collections.abc import Mapping
from fractions import Fraction
from math import exp
from typing import Final, Literal, NamedTuple

THESIS: Final = "Arcolezi, *Production of Categorical Data Verifying Differential Privacy* (2022)"
NOTEBOOKS: Final = "<https://github.com/hharcolezi/ldp-protocols-mobility-cdrs>"

# Table 6.1: approximate variances for epsilon_1 = alpha epsilon_inf, a row per alpha and epsilon_inf. Digits
# of the notebook that makes the table (papers/[4]), which rounds to six of them, L-GRR 1024 then to five.
TABLE_USERS: Final = 10_000
TABLE_DOMAINS: Final = (2, 3, 8, 12, 32, 37, 1024)
TABLE_EPSILONS: Final = ("0.5", "1", "2", "4")
TABLE_ALPHAS: Final = ("0.1", "0.2", "0.3", "0.4", "0.5", "0.6")

TABLE_COLUMNS: Final = ("L-GRR 2", "L-GRR 32", "L-GRR 1024", "L-OSUE", "L-SUE", "L-SOUE", "L-OUE")
TABLE: Final = """
0.6 0.5 0.001103   0.980969   26706.64042 0.004411 0.004436 0.005306 0.005549
0.6 1   0.000270   0.125036    3153.91118 0.001078 0.001103 0.001234 0.001347
0.6 2   0.000062   0.006327     117.36989 0.000247 0.000270 0.000264 0.000310
0.6 4   0.000011   0.000078       0.25903 0.000044 0.000062 0.000045 0.000057
0.5 0.5 0.001592   2.088372   60218.72092 0.006367 0.006392 0.007336 0.007611
0.5 1   0.000392   0.268074    7198.83434 0.001567 0.001592 0.001740 0.001872
0.5 2   0.000092   0.013926     281.04330 0.000368 0.000392 0.000389 0.000447
0.5 4   0.000018   0.000188       0.74088 0.000072 0.000092 0.000073 0.000092
0.4 0.5 0.002492   4.530779  135874.24278 0.009967 0.009992 0.011012 0.011324
0.4 1   0.000617   0.586823   16443.91803 0.002467 0.002492 0.002658 0.002812
0.4 2   0.000148   0.031552     673.74545 0.000593 0.000617 0.000617 0.000690
0.4 4   0.000032   0.000484       2.12772 0.000127 0.000148 0.000128 0.000156
0.3 0.5 0.004436  10.689842  329836.44067 0.017744 0.017769 0.018863 0.019214
0.3 1   0.001103   1.398568   40412.79198 0.004411 0.004436 0.004620 0.004799
0.3 2   0.000270   0.078202    1737.75675 0.001078 0.001103 0.001106 0.001198
0.3 4   0.000062   0.001389       6.56584 0.000247 0.000270 0.000248 0.000291
0.2 0.5 0.009992  30.850524  972656.62277 0.039967 0.039992 0.041148 0.041536
0.2 1   0.002492   4.080052  120651.23939 0.009967 0.009992 0.010190 0.010394
0.2 2   0.000617   0.237925    5443.09103 0.002467 0.002492 0.002498 0.002610
0.2 4   0.000148   0.004939      24.49048 0.000593 0.000617 0.000595 0.000659
0.1 0.5 0.039992 154.117700 4941829.34018 0.159967 0.159992 0.161191 0.161608
0.1 1   0.009992  20.613446  620584.58635 0.039967 0.039992 0.040201 0.040424
0.1 2   0.002492   1.255550   29356.68268 0.009967 0.009992 0.010000 0.010130
0.1 4   0.000617   0.030494     156.12292 0.002467 0.002492 0.002469 0.002560
"""

# Table 6.2: approximate variances of one round, for as many users.
ONE_ROUND_COLUMNS: Final = ("GRR 2", "GRR 32", "GRR 1024", "OUE", "SUE")
ONE_ROUND: Final = """
0.5 0.000392 0.007520 0.243240 0.001567 0.001592
1   0.000092 0.001108 0.034707 0.000368 0.000392
2   0.000018 0.000092 0.002522 0.000072 0.000092
4   0.000002 0.000003 0.000037 0.000008 0.000018
"""

# Tables 6.3 and 6.4: gain of ALLOMFREE in MSE over (alpha, protocol) in percent, mean over epsilon_inf.
DataSet = Literal["ms-fimu", "nursery"]
GAINS: Final[Mapping[DataSet, Mapping[tuple[str, Literal["l-sue", "l-oue"]], float]]] = {
    "ms-fimu": {
        ("0.3", "l-sue"): 10.00,
        ("0.3", "l-oue"): 19.32,
        ("0.6", "l-sue"): 20.08,
        ("0.6", "l-oue"): 37.62,
    },
    "nursery": {
        ("0.3", "l-sue"): 23.73,
        ("0.3", "l-oue"): 35.88,
        ("0.6", "l-sue"): 30.38,
        ("0.6", "l-oue"): 54.96,
    },
}
GAIN_EPSILONS: Final = ("0.5", "1", "1.5", "2", "2.5", "3", "3.5", "4")
GAIN_RUNS: Final = 100  # seeds that each published mean is over (NOTEBOOKS, papers/[4])

# Nursery (V. Rajkovič et al., 1997; UCI Machine Learning Repository): each combination of eight attributes
# once, and how often the five classes of its ninth column occur in the 12,960 rows.
NURSERY_ATTRIBUTES: Final = (3, 5, 4, 4, 3, 2, 3, 3)
NURSERY_CLASSES: Final = (4320, 2, 328, 4266, 4044)

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


class PlaceLevel(NamedTuple):
    """Row of tables 10.1 and 10.2: level ln(odds) within a radius; what noise does to the data.

    correlation : of the noisy distance with the ambulance response time
    """

    odds: int
    radius_m: int
    epsilon_per_m: str
    mean_km: float
    std_km: float
    correlation: float


# Tables 10.1 and 10.2: great-circle distance to the ambulance's centre before noise, and after.
MEAN_KM, STD_KM, CORRELATION = 3.44, 3.72, 0.369
PLACE_LEVELS: Final = (
    PlaceLevel(3, 200, ".005493", 3.48, 3.72, 0.367),
    PlaceLevel(3, 400, ".002747", 3.57, 3.72, 0.362),
    PlaceLevel(2, 600, ".001155", 4.03, 3.74, 0.335),
    PlaceLevel(2, 800, ".000866", 4.38, 3.81, 0.313),
    PlaceLevel(2, 1000, ".000693", 4.77, 3.92, 0.288),
)


def lgrr_variance(*, domain_size: int, epsilon_inf: float, epsilon_1: float) -> float:
    """Cell of table 6.1: variance of L-GRR at frequency 0, by equations (6.5) and (6.7) of the thesis."""
    k, e, f = domain_size, exp(epsilon_inf), exp(epsilon_1)
    rho = (e * f - 1) / (e - f)
    p1, q1 = e / (e + k - 1), 1 / (e + k - 1)
    p2, q2 = rho / (rho + k - 1), 1 / (rho + k - 1)
    q = q1 * p2 + (1 - q1) * q2
    return q * (1 - q) / (TABLE_USERS * ((p1 - q1) * (p2 - q2)) ** 2)


# Chapter 4: visitors on all seven days, by a linear program from the unions.
ALL_WEEK: Final = 176

# LOLOHA: epsilons of figures, the data set Syn, and of table 2 the share of people whose changes are seen.
LOLOHA: Final = "Arcolezi et al., *Frequency Estimation of Evolving Data Under Local Differential Privacy*"
LOLOHA_EPSILONS: Final = ("0.5", "1", "1.5", "2", "2.5", "3", "3.5", "4", "4.5", "5")
SYN_VALUES, SYN_USERS, SYN_COLLECTIONS, SYN_CHANGE = 360, 10_000, 120, Fraction(1, 4)
CAUGHT: Final = {"1BitFlipPM": 0.0, "bBitFlipPM": 1.0}
CAUGHT_ROUNDING: Final = 0.0001  # percents are printed with two decimals
