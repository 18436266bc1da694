"""Suites that `ringer run` plays, and what came of them. Every verdict is the program's own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Iterable, Mapping

from .engine import Engine, find_program, free_ports
from .errors import BadSuite, EngineError, Unreachable

# Exit codes of `ringer run` after which there are results: passed, failed, could not be told, not reached.
TOLD = (0, 1, 3, 4)
# Flags of `ringer run` that take a value, that may be given several times, and that are switches.
VALUES = ("baseline", "concurrency", "config", "filter", "repeat", "seed", "server", "shard", "timeout")
LISTS = ("tag",)
SWITCHES = ("evidence", "sim", "spawn")
# Variables that a suite may use for the ports of its agent: free ones, chosen for each run.
PORTS = ("AGENT_PORT", "AGENT_PORT_2", "AGENT_PORT_3", "AGENT_PORT_4")
# Seconds in which an interrupted run hangs up and writes what there is.
INTERRUPTED_S = 30.0
# A line of a list: name and tags.
TAGGED = re.compile(r"(.+) \[([^\[\]]+)\]")
# Order of calls in report.html.
ORDER = ("failed", "unreachable", "unknown", "passed")


@dataclass(frozen=True)
class Call:
    """A call of a scenario. `at_ms` is the moment of the reason, where it is known; `place` leads to the call in the report."""

    seed: int
    result_id: str
    verdict: str
    code: str
    reason: str
    at_ms: float | None
    place: str
    metrics: dict[str, Any] = field(repr=False)
    warnings: list[str] = field(repr=False)

    @property
    def moment(self) -> str:
        """The moment as text, as in ` (at 9.40 s)`; empty where it is not known."""
        return "" if self.at_ms is None else f" (at {self.at_ms / 1000:.2f} s)"


@dataclass(frozen=True)
class Scenario:
    """A scenario with the verdict on its gate: passed, failed, unknown or unreachable."""

    file: str
    name: str
    verdict: str
    reason: str
    calls: list[Call]

    def head(self) -> str:
        """Returns name, verdict, reason and its moment as a line."""
        worst = next((call for verdict in ORDER for call in self.calls if call.verdict == verdict), None)
        reason = f": {self.reason}{worst.moment if worst else ''}" if self.reason else ""
        return f"{self.name}: {self.verdict}{reason}"

    def text(self) -> str:
        """Returns the head, and a line for each call with its place in the report."""
        def line(call: Call) -> str:
            other = f": {call.reason}{call.moment}" if call.reason not in ("", self.reason) else ""
            return f"  seed {call.seed}, result {call.result_id}: {call.verdict}{other}: {call.place}"

        return "\n".join([self.head(), *(line(call) for call in self.calls)])


@dataclass(frozen=True)
class Run:
    """A run that is over: the program's exit code, its scenarios, and the folder of its results."""

    exit_code: int
    scenarios: list[Scenario]
    folder: Path

    @property
    def report(self) -> Path:
        """Path of report.html."""
        return self.folder / "report.html"

    def scenario(self, name: str, file: str | None = None) -> Scenario:
        """Returns a scenario. Raises `EngineError` where the run has none of that name."""
        found = [one for one in self.scenarios if one.name == name and file in (None, one.file)]
        if not found:
            raise EngineError(f"{name}: the run has no scenario of that name: see {self.report}")
        return found[0]

    def text(self) -> str:
        """Returns the scenarios that did not pass; all where all passed."""
        wrong = [one for one in self.scenarios if one.verdict != "passed"]
        return "\n".join([*(one.text() for one in wrong or self.scenarios), f"report: {self.report}"])


def list_scenarios(paths: Iterable[str], options: Mapping[str, Any], *, program: str | None = None,
                   cwd: str | os.PathLike[str] | None = None) -> list[tuple[str, str, list[str]]]:
    """Returns file, name and tags of each scenario that `ringer run` would play with these options."""
    def listed(**other: Any) -> list[tuple[str, str]]:
        return lines_of([find_program(program), "run", *paths, *flags({**options, **other}), "--list"], cwd)

    found: list[tuple[str, str, list[str]]] = []
    bracketed: list[tuple[str, str]] | None = None
    for file, line in listed():
        tagged = TAGGED.fullmatch(line)
        if tagged and bracketed is None:
            bracketed = listed(filter=" [")
        # Brackets may belong to the name. Then the name has them without the tags, too.
        is_name = tagged is not None and (file, line) in (bracketed or []) and (file, line) in listed(filter=line)
        if tagged is None or is_name:
            found.append((file, line, []))
        else:
            found.append((file, tagged[1], tagged[2].split(", ")))
    return found


def lines_of(command: list[str], cwd: str | os.PathLike[str] | None) -> list[tuple[str, str]]:
    """Returns file and line of each scenario that a list names; none where no scenario matches a filter of this package."""
    asked = subprocess.run(command, cwd=cwd, env=environment(None), text=True, errors="replace", stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if asked.returncode == 2 and asked.stderr.startswith("no scenario matches") and any(" [" in word for word in command):
        return []
    if asked.returncode != 0:
        raise refused(asked.returncode, asked.stderr)
    found, file = [], ""
    for line in asked.stdout.splitlines():
        if line.startswith("  "):
            found.append((file, line[2:]))
        else:
            file = line
    return found


def run_suites(paths: Iterable[str], out: str | os.PathLike[str], *, program: str | None = None,
               cwd: str | os.PathLike[str] | None = None, engine: Engine | None = None, **options: Any) -> Run:
    """Plays suites by `ringer run` with results in `out`; returns what came of them.

    `options` are flags of `ringer run`, as `filter="menu"`, `tag=["smoke"]`, `repeat=3`. With `engine` its calls are made there,
    else on the server of RINGER_SERVER, else on an engine of the run's own. Raises `BadSuite` where a file, flag or setting is
    refused, `Unreachable` where the server is not reached, `EngineError` where the program ends in any other way.
    """
    out = Path(out).resolve()
    if engine is not None:
        options = {**options, "server": engine.base_url}
    command = [find_program(program), "run", *paths, *flags(options), "--out", str(out), "--json"]
    code, printed, said = play(command, cwd, environment(engine))
    lines = printed.strip().splitlines()
    if code not in TOLD or not lines:
        raise refused(code, said)
    return read(code, json.loads(lines[-1]), out)


def play(command: list[str], cwd: str | os.PathLike[str] | None, env: dict[str, str]) -> tuple[int, str, str]:
    """Runs the program to its end; returns exit code and what it printed. An exception hangs its calls up."""
    __tracebackhide__ = True
    process = subprocess.Popen(command, cwd=cwd, env=env, text=True, errors="replace", stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        printed, said = process.communicate()
    except BaseException:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=INTERRUPTED_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
        raise
    return process.returncode, printed, said


def environment(engine: Engine | None) -> dict[str, str]:
    """Returns the environment of a run, with free ports for its agent."""
    ports = dict(zip(PORTS, (str(port) for port in free_ports(len(PORTS)))))
    key = {"RINGER_API_KEY": engine.api_key} if engine is not None else {}
    return {"RINGER_LOG": "off", "NO_COLOR": "1", **ports, **os.environ, **key}


def flags(options: Mapping[str, Any]) -> list[str]:
    """Returns options as flags of `ringer run`; the server is that of RINGER_SERVER unless one is named."""
    server = os.environ.get("RINGER_SERVER")
    if server and not options.get("sim"):
        options = {"server": server, **options}
    made = []
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if name in SWITCHES:
            made += [flag] if value else []
        elif name in LISTS:
            made += [word for one in ([value] if isinstance(value, str) else value) for word in (flag, str(one))]
        elif name in VALUES:
            made += [] if value is None else [f"{flag}={value}"]
        elif name == "args":
            made += value
        else:
            known = ", ".join(sorted((*VALUES, *LISTS, *SWITCHES)))
            raise BadSuite(f"{name} is no option of a run; options are {known}")
    return made


def refused(code: int, said: str) -> Exception:
    """Returns the error for a run that has no results."""
    reason = said.strip()[-4000:] or "it printed no reason"
    if code == 2:
        return BadSuite(reason)
    if code == 4:
        return Unreachable(reason)
    return EngineError(f"`ringer run` ended with {code}: {reason}")


def read(code: int, summary: dict[str, Any], out: Path) -> Run:
    """Returns a run by its summary and `results.jsonl`."""
    with open(out / "results.jsonl", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    ranked = sorted(range(len(lines)), key=lambda at: ORDER.index(lines[at]["verdict"]))
    places = {at: f"{out / 'report.html'}#call-{place}" for place, at in enumerate(ranked)}
    scenarios = []
    for row in summary["scenarios"]:
        is_of = [at for at, line in enumerate(lines) if (line["file"], line["scenario"]) == (row["file"], row["scenario"])]
        calls = [call(lines[at], places[at]) for at in is_of]
        is_unreachable = row["gate"] == "unknown" and row["unreachable"] > 0
        verdict = "unreachable" if is_unreachable else row["gate"]
        scenarios.append(Scenario(row["file"], row["scenario"], verdict, row["reason"], calls))
    verdicts = {one.verdict for one in scenarios}
    expected = {1: "failed", 4: "unreachable"}.get(code)
    is_odd = (expected is not None and expected not in verdicts) or (code == 0 and verdicts - {"passed"})
    if is_odd or verdicts - set(ORDER):
        raise EngineError(f"`ringer run` ended with {code}, but its scenarios are {', '.join(sorted(verdicts)) or 'none'}")
    return Run(code, scenarios, out)


def call(line: dict[str, Any], place: str) -> Call:
    """Returns a call by its line of `results.jsonl`."""
    wrong = [one for one in line.get("expectations") or [] if one["status"] == line["verdict"]]
    moments = [one["at_ms"] for one in wrong if one.get("at_ms") is not None]
    metrics = {one["name"]: one["value"] for one in line.get("metrics") or []}
    return Call(line["seed"], line["result_id"], line["verdict"], line["code"], line["reason"], moments[0] if moments else None,
                place, metrics, line.get("warnings") or [])
