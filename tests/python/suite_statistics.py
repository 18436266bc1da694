"""Compares figures of suites with those of statsmodels, scipy and numpy; prints each that differs.

Reads one JSON object: for each kind a list of [inputs, result] pairs.
"""

import json
import sys

import numpy
from scipy import special, stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.power import normal_sample_size_one_tail
from statsmodels.stats.proportion import proportion_confint


def wilson(passed, told):
    return list(proportion_confint(passed, told, alpha=0.05, method="wilson"))


def pass_k(passed, told, k):
    return special.comb(passed, k, exact=True) / special.comb(told, k, exact=True)


def percentile(values, percent):
    return float(numpy.percentile(values, percent, method="linear"))


def exact_mcnemar(worse, better):
    return float(mcnemar([[0, worse], [better, 0]], exact=True).pvalue)


def pairs_needed(worse, better, pairs):
    worse, better = worse / pairs, better / pairs
    change, uneven = abs(worse - better), worse + better
    needed = normal_sample_size_one_tail(
        change, 0.8, 0.025, std_null=uneven**0.5, std_alternative=(uneven - change**2) ** 0.5
    )
    return float(numpy.ceil(needed))


def paired_difference(both, worse, better, neither):
    """Newcombe's method 10: Wilson intervals of both shares, joined by the correlation of the pairs."""
    told = both + worse + better + neither
    before, after = both + worse, both + better
    low_1, high_1 = proportion_confint(before, told, alpha=0.05, method="wilson")
    low_2, high_2 = proportion_confint(after, told, alpha=0.05, method="wilson")
    p_1, p_2 = before / told, after / told
    product = before * (told - before) * after * (told - after)
    above = both * neither - worse * better
    if above > 0:
        above = max(above - told / 2, 0)
    phi = above / numpy.sqrt(product) if product else 0.0
    quadratic = numpy.array([[1, -phi], [-phi, 1]])
    below, beyond = numpy.array([p_2 - low_2, high_1 - p_1]), numpy.array([high_2 - p_2, p_1 - low_1])
    reach = [numpy.sqrt(max(side @ quadratic @ side, 0)) for side in (below, beyond)]
    return [p_2 - p_1, max(p_2 - p_1 - reach[0], -1), min(p_2 - p_1 + reach[1], 1)]


def bootstrap(before, now, percent):
    """The difference, and an interval by other draws."""

    def difference(before, now):
        return numpy.percentile(now, percent) - numpy.percentile(before, percent)

    drawn = stats.bootstrap(
        (before, now), difference, paired=True, vectorized=False, n_resamples=4000, method="percentile",
        rng=numpy.random.default_rng(1),
    ).confidence_interval
    return [float(difference(before, now)), float(drawn.low), float(drawn.high)]


# Each kind with how far its results may be apart: figures to the last digits, draws by what other draws give.
KINDS = {
    "wilson": (wilson, 1e-9),
    "pass_k": (pass_k, 1e-9),
    "percentile": (percentile, 1e-9),
    "mcnemar": (exact_mcnemar, 1e-9),
    "pairs_needed": (pairs_needed, 0),
    "bootstrap": (bootstrap, 0.05),
    "paired_difference": (paired_difference, 1e-9),
}

wrong = 0
told = json.load(sys.stdin)
assert told.keys() == KINDS.keys(), told.keys()
for kind, (compute, apart) in KINDS.items():
    assert told[kind], kind
    for given, found in told[kind]:
        expect = compute(*given)
        if not numpy.allclose(found, expect, rtol=0, atol=apart):
            print(kind, given, found, expect)
            wrong += 1
    if kind == "bootstrap":
        for given, found in told[kind]:
            assert abs(found[0] - bootstrap(*given)[0]) < 1e-9, (given, found)
sys.exit(wrong > 0)
