"""Reads what was exported with the readers of others: `exports.py KIND`, the file on standard input. Prints JSON.

`parquet`: types of the columns, and rows (pyarrow). `csv`: rows. `textgrid`: tiers with their intervals (TextGrid). `rttm`:
marks (rttm_manager).
"""

import csv
import io
import json
import os
import sys
import tempfile

import pyarrow.parquet
import rttm_manager
import textgrid


def parquet(data):
    """Returns the types of the columns by name, and the rows."""
    table = pyarrow.parquet.read_table(io.BytesIO(data), use_threads=False)
    return {"types": {field.name: str(field.type) for field in table.schema}, "rows": table.to_pylist()}


def table(data):
    """Returns the rows of a table as texts."""
    return {"rows": list(csv.DictReader(io.StringIO(data.decode(), newline="")))}


def marks(data):
    """Returns the marks of an RTTM file."""
    with tempfile.NamedTemporaryFile(suffix=".rttm") as file:
        file.write(data)
        file.flush()
        return [mark.model_dump() for mark in rttm_manager.import_rttm(file.name)]


def tiers(data):
    """Returns the length of a TextGrid, and its tiers: name and intervals with begin, end and label."""
    with tempfile.NamedTemporaryFile(suffix=".TextGrid") as file:
        file.write(data)
        file.flush()
        grid = textgrid.TextGrid.fromFile(file.name)
    told = [{"name": tier.name, "intervals": [[one.minTime, one.maxTime, one.mark] for one in tier]} for tier in grid.tiers]
    return {"length": grid.maxTime, "tiers": told}


READERS = {"parquet": parquet, "csv": table, "textgrid": tiers, "rttm": marks}
print(json.dumps(READERS[sys.argv[1]](sys.stdin.buffer.read())))
sys.stdout.flush()
# The threads of pyarrow may still run, and abort the end of the interpreter.
os._exit(0)
