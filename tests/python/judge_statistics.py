"""Compares figures of judges with those of scikit-learn, statsmodels and ppi-python; prints each that differs.

Reads one JSON object: for each kind a list of [inputs, result] pairs.
"""

import json
import sys
import warnings

import numpy
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate
from sklearn.metrics import accuracy_score, cohen_kappa_score, confusion_matrix, recall_score
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.proportion import proportion_confint

# One class alone, and verdicts that are all the same, are compared as far as both sides know them.
warnings.filterwarnings("ignore")


def share(hits, of):
    if of == 0:
        return [None, None, None]
    return [hits / of, *proportion_confint(hits, of, alpha=0.05, method="wilson")]


def agreement(pairs):
    labels, verdicts = zip(*pairs)
    table = confusion_matrix(labels, verdicts, labels=[True, False])
    (hits, missed), (wrong, right) = table
    rates = {
        "tpr": share(hits, hits + missed),
        "tnr": share(right, right + wrong),
        "accuracy": share(hits + right, table.sum()),
    }
    if rates["tpr"][0] is not None:
        assert numpy.isclose(rates["tpr"][0], recall_score(labels, verdicts))
    if rates["tnr"][0] is not None:
        assert numpy.isclose(rates["tnr"][0], recall_score(labels, verdicts, pos_label=False))
    assert numpy.isclose(rates["accuracy"][0], accuracy_score(labels, verdicts))
    kappa = cohen_kappa_score(labels, verdicts)
    if numpy.isnan(kappa):
        return rates | {"kappa": None}
    asymptotic = cohens_kappa(table)
    assert numpy.isclose(asymptotic.kappa, kappa)
    if asymptotic.std_kappa < 1e-9:
        return rates | {"kappa": [kappa, None, None]}
    ends = [max(asymptotic.kappa_low, -1), min(asymptotic.kappa_upp, 1)]
    return rates | {"kappa": [kappa, *ends]}


def ppi(pairs, verdicts):
    labels, called = numpy.array(pairs, dtype=float).T
    others = numpy.array(verdicts, dtype=float)
    if len(set(called) | set(others)) == 1:
        # Its weight is 0 / 0: the labels alone count.
        weight = 0
    else:
        weight = None
    estimate = ppi_mean_pointestimate(labels, called, others, lam=weight)
    low, high = ppi_mean_ci(labels, called, others, alpha=0.05, lam=weight)
    return [float(numpy.clip(value, 0, 1)) for value in (estimate[0], low[0], high[0])]


def same(found, expect):
    if isinstance(expect, dict):
        return found.keys() == expect.keys() and all(same(found[key], expect[key]) for key in expect)
    if found is None or expect is None:
        return found is expect
    if isinstance(expect, list):
        return len(found) == len(expect) and all(map(same, found, expect))
    return abs(found - expect) < 1e-9


wrong = 0
told = json.load(sys.stdin)
assert told.keys() == {"agreement", "ppi"} and all(map(len, told.values())), told.keys()
for pairs, found in told["agreement"]:
    expect = agreement(pairs)
    if not same(found, expect):
        print("agreement", pairs, found, expect)
        wrong += 1
for given, found in told["ppi"]:
    expect = ppi(*given)
    if not same(found, expect):
        print("ppi", given, found, expect)
        wrong += 1
sys.exit(wrong > 0)
