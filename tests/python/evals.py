"""Reads files of evals with their framework's own parser; prints a JSON list of [file name, scenario names, turns of each]."""

import json
import sys

from pipecat.evals.scenario import EvalScenarioFile

read = [EvalScenarioFile.load(path) for path in sys.argv[1:]]
print(json.dumps([[file.name, [one.name for one in file], [len(one.turns) for one in file]] for file in read]))
