"""Local differential privacy for mobility reports.

A plan says what is asked and at which epsilon; a sanitiser answers with keyed bits; gap tallies count the
answers; estimators turn counts into frequencies with their errors; the accountant certifies what is revealed.

>>> from decimal import Decimal
>>> import numpy as np
>>> import ldp
>>> plan = ldp.build_plan(
...     mechanism="smp-grr", unit="profile", version=1, days=2, epsilon=Decimal("1.0"),
...     indicators=[ldp.IndicatorRequest(slug="gender", kind="static", domain_size=3)],
... )
>>> ldp.certify(plan).epsilon_profile <= Decimal("1.0")
True

Three subscribers in four have the value 0; all are present on both days:

>>> pseudonyms = np.arange(40_000, dtype=np.uint64)
>>> values = np.where(pseudonyms % 4 == 0, 1, 0).astype(np.int32)
>>> sanitiser = ldp.Sanitiser(plan, ldp.KeyedPrf(bytes(16)))
>>> codes = sanitiser.answer(0, pseudonyms, values)
>>> delta = ldp.Delta.zero(plan)
>>> ldp.tally_static(np.full(40_000, 0b11, np.uint64), codes, delta.counts[0], sign=1)
>>> counts = ldp.union(delta.counts[0], first_day=1, last_day=2)
>>> int(counts.sum())
40000
>>> channel = ldp.grr_channel(epsilon=plan.indicators[0].epsilon, domain_size=3)
>>> estimates = ldp.grr_frequencies(counts, n_reports=40_000, n_population=40_000, channel=channel)
>>> bool(estimates.ci_low[0] < 0.75 < estimates.ci_high[0])
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ldp.codes import NO_ANSWER, NO_COUNT
from ldp.errors import InvalidBudgetError, InvalidDomainError, LdpError, NoReportsError, PlanError
from ldp.estimation.choosing import (
    ExpectedError,
    epsilon_for_error,
    expected_error,
    rank_mechanisms,
    smp_weights,
)
from ldp.estimation.estimators import (
    Estimates,
    grr_frequencies,
    histogram_frequencies,
    histogram_variance,
    project_simplex,
    pure_frequencies,
    pure_variance,
)
from ldp.estimation.movement import (
    day_pair_bounds,
    day_pair_share,
    day_pair_visitors,
    leaving_visitors,
    mean_days_present,
    new_visitors,
    returning_visitors,
    shared_share,
    shared_visitors,
    window_visitors,
)
from ldp.estimation.ratios import Interval
from ldp.estimation.scenario.bounds import ScenarioPeople, scenario_people, table_people
from ldp.estimation.scenario.categories import CategoryPeople, category_people, edge_targets, noisy_people
from ldp.estimation.scenario.flows import Flows, flows_of, whole_flows
from ldp.estimation.scenario.intervals import CellNoise
from ldp.estimation.scenario.markov import likeliest_patterns, likely_people
from ldp.estimation.scenario.patterns import PatternPeople, likely_patterns
from ldp.estimation.scenario.population import (
    error_rate,
    people_tally,
    synthetic_daily,
    synthetic_presence,
    synthetic_static,
)
from ldp.estimation.scenario.projection import projected_flows
from ldp.estimation.scenario.published import (
    TableConflict,
    UnionFit,
    UnionTable,
    fit_unions,
    merge_tables,
    shown_flows,
)
from ldp.estimation.scenario.questions import Scenario, days_in_a_row, exactly_days, on_days
from ldp.estimation.tallies import Delta
from ldp.estimation.unions import all_unions, union
from ldp.estimation.windows import (
    IndicatorTallies,
    Window,
    WindowEstimate,
    shared_reports,
    window_difference,
    window_sum,
)
from ldp.kernels.streams import KeyedStream, SystemEntropy, derive_subkey
from ldp.privacy.accounting import (
    Certificate,
    IndicatorCertificate,
    certify,
    certify_classes,
    check_cap,
)
from ldp.privacy.certificates import Memoised, ReportsCertificate, certify_reports, epsilon_of_study
from ldp.privacy.classes import ClassSpec
from ldp.privacy.plan_requests import IndicatorRequest, build_plan
from ldp.privacy.plans import IndicatorSpec, PlanSpec
from ldp.protocols.adaptive import adp_channel
from ldp.protocols.bit_flip import BitFlipChannel, bit_flip_channel
from ldp.protocols.channels import GrrChannel, PureChannel, epsilon_of, grr_channel, noise_at_zero
from ldp.protocols.fake_data import (
    FakeDataChannel,
    PriorFakeDataChannel,
    fake_data_channel,
    hidden_epsilon,
    prior_fake_data_channel,
    prior_hidden_epsilon,
)
from ldp.protocols.faked_reports import FakedChannel, PriorFakedChannel
from ldp.protocols.hadamard import HadamardChannel, hadamard_channel
from ldp.protocols.hashing import HashChannel, blh_channel, olh_channel
from ldp.protocols.histogram import HistogramChannel, histogram_channel
from ldp.protocols.numbers.threshold import Scale, ThresholdChannel, threshold_channel
from ldp.protocols.numbers.wave import WaveChannel, wave_channel
from ldp.protocols.projective import ProjectiveChannel, code_channel, projective_channel
from ldp.protocols.repeated.hashed import hash_channel
from ldp.protocols.repeated.question import question_channel
from ldp.protocols.subset import SubsetChannel, subset_channel
from ldp.protocols.two_round import TwoRoundGrr, TwoRoundHash, best_buckets, lgrr_channel, loloha_channel
from ldp.protocols.two_round_unary import TwoRoundUnary, allomfree_channel, lue_channel
from ldp.protocols.unary import UnaryChannel, best_theta, oue_channel, sue_channel, the_channel

if TYPE_CHECKING:
    from ldp.estimation.classes import ClassReports, Pooled, homogeneity_test, pooled_if_alike, stratified
    from ldp.estimation.joint.linear import LinearEstimate, linear_query, linear_variance
    from ldp.estimation.numbers.figures import number_mean, number_survival
    from ldp.estimation.numbers.threshold import threshold_mean, threshold_quantile, threshold_survival
    from ldp.estimation.numbers.wave import wave_query, wave_survival, wave_variance
    from ldp.kernels.cmac import cmac64, cmac64_of
    from ldp.kernels.entropy import KeyedPrf
    from ldp.keyed.bit_flip import BitFlipReporter, BitFlipSupport
    from ldp.keyed.choices import choose_days, choose_indicator
    from ldp.keyed.fakes.data import answers as fake_data_answers
    from ldp.keyed.fakes.data import support_counts as fake_data_counts
    from ldp.keyed.hashing import HashReports, hash_values
    from ldp.keyed.histogram import answers as histogram_answers
    from ldp.keyed.histogram import sums as histogram_sums
    from ldp.keyed.multidim import asked_answers, smp_answers, smp_counts, spl_answers, spl_counts
    from ldp.keyed.oracles import OracleChannel, count_support, oracle_answers, support_counts
    from ldp.keyed.sanitiser import Sanitiser
    from ldp.keyed.tallying import tally_asked, tally_daily, tally_reports, tally_static, tally_visitors
    from ldp.keyed.two_round import GrrReporter, HashReporter, Support, UnaryReporter
    from ldp.research.bayes import (
        BayesEstimates,
        bayes_frequencies,
        bayes_reports,
        grr_matrix,
        histogram_likelihoods,
        support_likelihoods,
    )

__all__ = [
    "NO_ANSWER",
    "NO_COUNT",
    "BayesEstimates",
    "BitFlipChannel",
    "BitFlipReporter",
    "BitFlipSupport",
    "CategoryPeople",
    "CellNoise",
    "Certificate",
    "ClassReports",
    "ClassSpec",
    "Delta",
    "Estimates",
    "ExpectedError",
    "FakeDataChannel",
    "FakedChannel",
    "Flows",
    "GrrChannel",
    "GrrReporter",
    "HadamardChannel",
    "HashChannel",
    "HashReporter",
    "HashReports",
    "HistogramChannel",
    "IndicatorCertificate",
    "IndicatorRequest",
    "IndicatorSpec",
    "IndicatorTallies",
    "Interval",
    "InvalidBudgetError",
    "InvalidDomainError",
    "KeyedPrf",
    "KeyedStream",
    "LdpError",
    "LinearEstimate",
    "Memoised",
    "NoReportsError",
    "OracleChannel",
    "PatternPeople",
    "PlanError",
    "PlanSpec",
    "Pooled",
    "PriorFakeDataChannel",
    "PriorFakedChannel",
    "ProjectiveChannel",
    "PureChannel",
    "ReportsCertificate",
    "Sanitiser",
    "Scale",
    "Scenario",
    "ScenarioPeople",
    "SubsetChannel",
    "Support",
    "SystemEntropy",
    "TableConflict",
    "ThresholdChannel",
    "TwoRoundGrr",
    "TwoRoundHash",
    "TwoRoundUnary",
    "UnaryChannel",
    "UnaryReporter",
    "UnionFit",
    "UnionTable",
    "WaveChannel",
    "Window",
    "WindowEstimate",
    "adp_channel",
    "all_unions",
    "allomfree_channel",
    "asked_answers",
    "bayes_frequencies",
    "bayes_reports",
    "best_buckets",
    "best_theta",
    "bit_flip_channel",
    "blh_channel",
    "build_plan",
    "category_people",
    "certify",
    "certify_classes",
    "certify_reports",
    "check_cap",
    "choose_days",
    "choose_indicator",
    "cmac64",
    "cmac64_of",
    "code_channel",
    "count_support",
    "day_pair_bounds",
    "day_pair_share",
    "day_pair_visitors",
    "days_in_a_row",
    "derive_subkey",
    "edge_targets",
    "epsilon_for_error",
    "epsilon_of",
    "epsilon_of_study",
    "error_rate",
    "exactly_days",
    "expected_error",
    "fake_data_answers",
    "fake_data_channel",
    "fake_data_counts",
    "fit_unions",
    "flows_of",
    "grr_channel",
    "grr_frequencies",
    "grr_matrix",
    "hadamard_channel",
    "hash_channel",
    "hash_values",
    "hidden_epsilon",
    "histogram_answers",
    "histogram_channel",
    "histogram_frequencies",
    "histogram_likelihoods",
    "histogram_sums",
    "histogram_variance",
    "homogeneity_test",
    "leaving_visitors",
    "lgrr_channel",
    "likeliest_patterns",
    "likely_patterns",
    "likely_people",
    "linear_query",
    "linear_variance",
    "loloha_channel",
    "lue_channel",
    "mean_days_present",
    "merge_tables",
    "new_visitors",
    "noise_at_zero",
    "noisy_people",
    "number_mean",
    "number_survival",
    "olh_channel",
    "on_days",
    "oracle_answers",
    "oue_channel",
    "people_tally",
    "pooled_if_alike",
    "prior_fake_data_channel",
    "prior_hidden_epsilon",
    "project_simplex",
    "projected_flows",
    "projective_channel",
    "pure_frequencies",
    "pure_variance",
    "question_channel",
    "rank_mechanisms",
    "returning_visitors",
    "scenario_people",
    "shared_reports",
    "shared_share",
    "shared_visitors",
    "shown_flows",
    "smp_answers",
    "smp_counts",
    "smp_weights",
    "spl_answers",
    "spl_counts",
    "stratified",
    "subset_channel",
    "sue_channel",
    "support_counts",
    "support_likelihoods",
    "synthetic_daily",
    "synthetic_presence",
    "synthetic_static",
    "table_people",
    "tally_asked",
    "tally_daily",
    "tally_reports",
    "tally_static",
    "tally_visitors",
    "the_channel",
    "threshold_channel",
    "threshold_mean",
    "threshold_quantile",
    "threshold_survival",
    "union",
    "wave_channel",
    "wave_query",
    "wave_survival",
    "wave_variance",
    "whole_flows",
    "window_difference",
    "window_sum",
    "window_visitors",
]

# Code that needs compiled kernels, or is for researchers only, by its module.
_LOADED_LATER: Final = {
    "ldp.estimation.classes": (
        "ClassReports", "Pooled", "homogeneity_test", "pooled_if_alike", "stratified",
    ),
    "ldp.estimation.joint.linear": ("LinearEstimate", "linear_query", "linear_variance"),
    "ldp.estimation.numbers.figures": ("number_mean", "number_survival"),
    "ldp.estimation.numbers.threshold": ("threshold_mean", "threshold_quantile", "threshold_survival"),
    "ldp.estimation.numbers.wave": ("wave_query", "wave_survival", "wave_variance"),
    "ldp.kernels.cmac": ("cmac64", "cmac64_of"),
    "ldp.kernels.entropy": ("KeyedPrf",),
    "ldp.keyed.bit_flip": ("BitFlipReporter", "BitFlipSupport"),
    "ldp.keyed.choices": ("choose_days", "choose_indicator"),
    "ldp.keyed.fakes.data": ("fake_data_answers", "fake_data_counts"),
    "ldp.keyed.hashing": ("HashReports", "hash_values"),
    "ldp.keyed.histogram": ("histogram_answers", "histogram_sums"),
    "ldp.keyed.multidim": ("asked_answers", "smp_answers", "smp_counts", "spl_answers", "spl_counts"),
    "ldp.keyed.oracles": ("OracleChannel", "count_support", "oracle_answers", "support_counts"),
    "ldp.keyed.sanitiser": ("Sanitiser",),
    "ldp.keyed.tallying": (
        "tally_asked", "tally_daily", "tally_reports", "tally_static", "tally_visitors",
    ),
    "ldp.keyed.two_round": ("GrrReporter", "HashReporter", "Support", "UnaryReporter"),
    "ldp.research.bayes": (
        "BayesEstimates", "bayes_frequencies", "bayes_reports", "grr_matrix", "histogram_likelihoods",
        "support_likelihoods",
    ),
}  # fmt: skip
_CALLED_THERE: Final = {
    "fake_data_answers": "answers",
    "fake_data_counts": "support_counts",
    "histogram_answers": "answers",
    "histogram_sums": "sums",
}


def __getattr__(name: str) -> Any:
    """Load what needs a compiler when it is first used, so that readers of tallies need none."""
    for module, names in _LOADED_LATER.items():
        if name in names:
            return getattr(import_module(module), _CALLED_THERE.get(name, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
