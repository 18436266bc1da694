"""Judges recordings of Ringer by tools of others. Usage: run.py RINGER --out FOLDER [--only PART ...] [--seed N]

Prints a table and ends with 1 where a bound does not hold, or where the rows would not notice a fault that is put into recordings.
"""

import argparse
import pathlib
import sys
import time

import calls
import double
import levels
import lines
import planted
import scanner
import table
import turns

REPEAT = 4


def recordings(ringer, folder, seed):
    """Returns the rows of the calls of the suite and of the demonstration, and those of planted faults."""
    every = calls.suite(ringer, folder, REPEAT, seed)
    real, wrong = calls.demo(ringer, folder)
    every += real
    found = judged(every)
    if wrong:
        found[0].notes.extend(f"the demonstration's own check does not hold: {one}" for one in wrong)
    found += scanner.rows([call for call in every if not call.is_noisy])
    return found + planted.rows(every, judged, folder)


def judged(every):
    """Returns the rows that need no other program."""
    quiet = [call for call in every if not call.is_noisy or call.clean is not None]
    noisy = [call for call in every if call.is_noisy and call.clean is None]
    return turns.turn_rows(quiet) + turns.latency_rows(quiet, noisy) + turns.overlap_rows(quiet) + levels.rows(every)


PARTS = ("recordings", "lines", "double")


def main():
    """Runs the parts and prints their rows."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("ringer", type=pathlib.Path)
    words.add_argument("--out", type=pathlib.Path, required=True)
    words.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    words.add_argument("--seed", type=int, default=1, help="first seed of the calls in virtual time")
    asked = words.parse_args()
    ringer, folder = asked.ringer.resolve(), calls.fresh(asked.out.resolve())
    found, start = [], time.monotonic()
    for part in asked.only:
        rows = recordings(ringer, folder, asked.seed) if part == "recordings" else {"lines": lines, "double": double}[part].rows(ringer, folder)
        print(table.text(rows), flush=True)
        found += rows
    broken = [row for row in found if not row.holds]
    print(f"\n{len(found) - len(broken)} of {len(found)} hold, {time.monotonic() - start:.0f} s; recordings are in {folder}")
    return 1 if broken else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except calls.Broken as broken:
        sys.exit(f"referees: {broken}")
