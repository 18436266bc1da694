"""Rows of the table, and small statistics of differences."""

import dataclasses
from importlib import metadata

import numpy


@dataclasses.dataclass
class Row:
    """What was compared, with which tool, how many times, with which figures and bounds, and whether these hold."""

    what: str
    tool: str
    n: int
    figures: str
    bound: str
    holds: bool
    notes: list = dataclasses.field(default_factory=list)


def tool(*names):
    """Returns names of packages with the versions that are installed."""
    return ", ".join(f"{name} {metadata.version(name)}" for name in names)


def differences(what, by, values, bounds, unit="ms", shown=1, notes=()):
    """Returns the row of differences: their median, the 95th percentile and the worst of their amounts, each at most its bound.

    `bounds` has three numbers; None stands for no bound. No values at all break the row.
    """
    values = numpy.asarray(values, dtype=float)
    if not len(values):
        return Row(what, by, 0, "nothing to compare", "", False, list(notes))
    amounts = numpy.abs(values)
    found = [float(numpy.median(values)), float(numpy.percentile(amounts, 95)), float(amounts.max())]
    names = ["median", "p95", "worst"]
    limits = [(name, bound) for name, bound in zip(names, bounds) if bound is not None]
    holds = all(abs(value) <= bound for value, bound in zip(found, bounds) if bound is not None)
    figures = f"{found[0]:+.{shown}f} / {found[1]:.{shown}f} / {found[2]:.{shown}f} {unit} (median / p95 / worst)"
    return Row(what, by, len(values), figures, ", ".join(f"{name} <= {bound:g}" for name, bound in limits), holds, list(notes))


def text(rows):
    """Returns the rows as a table to read."""
    lines = []
    for row in rows:
        lines.append(f"{'holds ' if row.holds else 'BROKEN'} {row.what} [{row.tool}] n={row.n}: {row.figures}; bound: {row.bound}")
        lines.extend(f"         {note}" for note in row.notes)
    return "\n".join(lines)
