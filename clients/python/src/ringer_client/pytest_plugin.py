"""Plugin of pytest: a test for each scenario of a suite, and fixtures for engines and runs.

A failed scenario is a failure. One that could not be told is a skip. An agent that was not reached and a bad setting are errors.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shlex
from pathlib import Path, PurePath
from typing import Any, Callable, Generator, Iterator, Mapping

import pytest

from . import suites
from .engine import Engine
from .errors import BadSuite, NotTested, RingerError, Unreachable

SUITE_NAMES = ("*.ringer.yaml", "*.ringer.yml")
# Property of a report under which the path of report.html is found.
REPORT = "ringer_report"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the settings of the plugin."""
    parser.addini("ringer_suites", "suites to collect beside *.ringer.yaml: globs below the root folder", "args", default=[])
    parser.addini("ringer_program", "path of the program ringer [default: RINGER_PROGRAM, beside Python, PATH]", default="")
    parser.addini("ringer_out", "folder of the results, below the root folder", default="ringer-results")
    parser.addini("ringer_args", "further flags of every `ringer run`", "args", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Names the marker."""
    config.addinivalue_line("markers", "ringer(path, ..., **options): a test for each scenario of these suites; options are "
                                       "flags of `ringer run`, as filter, tag, repeat, seed")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> SuiteFile | None:
    """Collects suites by their names."""
    named = parent.config.getini("ringer_suites")
    below = PurePath(os.path.relpath(file_path, parent.config.rootpath))
    if any(file_path.match(name) for name in SUITE_NAMES) or any(below.match(name) for name in named):
        return SuiteFile.from_parent(parent, path=file_path)
    return None


class SuiteFile(pytest.File):
    """A suite, with a test for each scenario."""

    def collect(self) -> Iterator[SuiteItem]:
        """Returns the tests."""
        listed = scenarios(self.config, [str(self.path)], {}, self.path.parent)
        self.count = len(listed)
        self.run: suites.Run | RingerError | None = None
        self.told: set[str] = set()
        for _, name, tags in listed:
            item = SuiteItem.from_parent(self, name=name)
            item.suite = self
            item.extra_keyword_matches.update(tags)
            if self.config.pluginmanager.hasplugin("xdist"):
                item.add_marker(pytest.mark.xdist_group(name=str(self.path)))
            yield item

    def result(self, item: SuiteItem) -> tuple[suites.Run, suites.Scenario]:
        """Returns what came of a scenario. All of a file that is chosen as a whole are called together, at the first of them."""
        chosen = [one for one in self.session.items if one.parent is self]
        is_again = item.name in self.told
        self.told.add(item.name)
        if len(chosen) < self.count or is_again:
            run = play(self.config, [str(self.path)], {"filter": item.name}, self.path.parent, item.nodeid)
        else:
            if self.run is None:
                try:
                    self.run = play_once(self.config, str(self.path), self.nodeid)
                except RingerError as error:
                    self.run = error
            if isinstance(self.run, RingerError):
                raise self.run
            run = self.run
        return run, run.scenario(item.name)


class SuiteItem(pytest.Item):
    """A scenario of a suite, with all of its repetitions."""

    suite: SuiteFile

    def runtest(self) -> None:
        """Plays it."""
        run, scenario = self.suite.result(self)
        attach(self, run, [scenario])
        judge(scenario.verdict, scenario.text())

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: str | None = None) -> Any:
        """Returns the reason alone for errors of this package."""
        if isinstance(excinfo.value, RingerError):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Returns file and name."""
        return self.path, None, self.name


def scenarios(config: pytest.Config, paths: list[str], options: Mapping[str, Any], cwd: Path) -> list[tuple[str, str, list[str]]]:
    """Returns file, name and tags of scenarios; what refuses them is an error of the collection."""
    try:
        return suites.list_scenarios(paths, with_args(config, options), program=program(config), cwd=cwd)
    except RingerError as error:
        raise pytest.Collector.CollectError(str(error)) from None


def program(config: pytest.Config) -> str | None:
    """Returns the program that the settings name; `None`: the one that is found."""
    named = config.getini("ringer_program")
    return str(config.rootpath / named) if os.sep in named else named or None


def with_args(config: pytest.Config, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns options with the flags of the settings before them."""
    words = [word for line in config.getini("ringer_args") for word in shlex.split(line)]
    return {"args": words, **options} if words else dict(options)


def play(config: pytest.Config, paths: list[str], options: dict[str, Any], cwd: Path, name: str,
         engine: Engine | None = None) -> suites.Run:
    """Plays suites with results in a folder named after `name`."""
    return suites.run_suites(paths, folder_of(config, name), program=program(config), cwd=cwd, engine=engine,
                             **with_args(config, options))


def folder_of(config: pytest.Config, name: str) -> Path:
    """Returns the folder of results: the readable part of a name, and a hash by which it is the only one."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", name).strip("-")[:80]
    return config.rootpath / config.getini("ringer_out") / f"{readable}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def play_once(config: pytest.Config, path: str, name: str) -> suites.Run:
    """Plays a suite once for all processes of pytest-xdist: the first plays it, the others wait and read what came of it."""
    cwd, folder = Path(path).parent, folder_of(config, name)
    worker = getattr(config, "workerinput", None)
    if worker is None:
        return play(config, [path], {}, cwd, name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    kept = folder.parent / f".{folder.name}-{worker['testrunuid']}.json"
    with locked(kept.with_suffix(".lock")):
        if not kept.exists():
            try:
                run = play(config, [path], {}, cwd, name)
                rows = [[one.file, one.name, one.verdict, one.reason, [vars(call) for call in one.calls]] for one in run.scenarios]
                told = {"code": run.exit_code, "rows": rows, "folder": str(run.folder)}
            except RingerError as error:
                told = {"error": str(error), "is_reached": not isinstance(error, Unreachable)}
            kept.write_text(json.dumps(told), encoding="utf-8")
        told = json.loads(kept.read_text(encoding="utf-8"))
    if "error" in told:
        raise NotTested(told["error"]) if told["is_reached"] else Unreachable(told["error"])
    made = [suites.Scenario(file, name, verdict, reason, [suites.Call(**call) for call in calls])
            for file, name, verdict, reason, calls in told["rows"]]
    return suites.Run(told["code"], made, Path(told["folder"]))


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds a lock of a file; the system frees it when the process ends."""
    import fcntl

    with open(path, "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Removes what processes of pytest-xdist have told each other."""
    if config.pluginmanager.hasplugin("dsession"):
        for path in (config.rootpath / config.getini("ringer_out")).glob(".*-*.*"):
            if path.suffix in (".json", ".lock"):
                path.unlink()


def judge(verdict: str, text: str) -> None:
    """Ends a test by a verdict: passes, fails, skips, or raises what is an error."""
    if verdict == "passed":
        return
    if verdict == "unknown":
        pytest.skip(text)
    if verdict == "unreachable":
        raise Unreachable(text)
    pytest.fail(text, pytrace=False)


def attach(item: pytest.Item, run: suites.Run, told: list[suites.Scenario]) -> None:
    """Attaches the report to a test: properties of JUnit, and a section that is shown where it does not pass."""
    item.user_properties.append((REPORT, str(run.report)))
    for scenario in told:
        for call in scenario.calls:
            item.user_properties += [("ringer_result_id", call.result_id), ("ringer_seed", str(call.seed)),
                                     ("ringer_verdict", call.verdict)]
    warnings = [f"warning: {warning}" for one in told for call in one.calls for warning in call.warnings]
    text = "\n".join([*(one.text() for one in told), *dict.fromkeys(warnings), f"report: {run.report}"])
    item.add_report_section("call", "ringer", text)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Makes a test for each scenario of a test with the marker."""
    marker = metafunc.definition.get_closest_marker("ringer")
    if marker is None:
        return
    if not marker.args or not all(isinstance(path, (str, os.PathLike)) for path in marker.args):
        raise pytest.Collector.CollectError("the marker ringer takes paths of suites, as in ringer(\"calls.yaml\")")
    folder = metafunc.definition.path.parent
    paths = [found(metafunc.config, folder, path) for path in marker.args]
    listed = scenarios(metafunc.config, paths, marker.kwargs, folder)
    marked = [Marked(paths, marker.kwargs, folder, file, name) for file, name, _ in listed]
    group = [pytest.mark.xdist_group(name=" ".join(paths))] if metafunc.config.pluginmanager.hasplugin("xdist") else []
    if "ringer_scenario" not in metafunc.fixturenames:
        # A test need not ask for it.
        metafunc.fixturenames.append("ringer_scenario")
    params = [pytest.param(one, id=one.name, marks=group) for one in marked]
    metafunc.parametrize("ringer_scenario", params, indirect=True)


def found(config: pytest.Config, folder: Path, path: str | os.PathLike[str]) -> str:
    """Returns a path beside the test, else below the root folder."""
    beside = folder / path
    below = config.rootpath / path
    return str(below if below.exists() and not beside.exists() else beside)


class Marked:
    """A scenario that a marked test plays after its fixtures are there, and before its body runs."""

    def __init__(self, paths: list[str], options: Mapping[str, Any], folder: Path, file: str, name: str) -> None:
        self.paths, self.options, self.folder, self.file, self.name = paths, options, folder, file, name
        self.run: suites.Run | RingerError | None = None
        self.result: suites.Scenario | None = None

    def __repr__(self) -> str:
        return f"Marked({self.name!r})"

    def play(self, item: pytest.Item) -> None:
        """Plays it, and ends the test where it did not pass."""
        self.run = play(item.config, self.paths, {**self.options, "filter": self.name}, self.folder, item.nodeid)
        self.result = self.run.scenario(self.name, self.file)
        attach(item, self.run, [self.result])
        judge(self.result.verdict, self.result.text())


@pytest.fixture
def ringer_scenario(request: pytest.FixtureRequest) -> Marked:
    """The scenario of a test with the marker `ringer`: its `result` and `run` are there when the body of the test runs."""
    if not hasattr(request, "param"):
        raise pytest.UsageError("ringer_scenario belongs to tests with the marker ringer")
    return request.param


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Plays the scenario of a marked test before its body runs."""
    if item.get_closest_marker("ringer") is not None:
        marked = item.callspec.params.get("ringer_scenario") if hasattr(item, "callspec") else None
        if not isinstance(marked, Marked):
            raise BadSuite("the marker ringer is for functions of pytest, and not for methods of unittest")
        marked.play(item)
    yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Reports what was not tested as an error: pytest counts a failed `setup` as one, and a failed `call` as a failure."""
    report = (yield).get_result()
    if call.when == "call" and report.failed and call.excinfo is not None and isinstance(call.excinfo.value, NotTested):
        report.when = "setup"
        report.longrepr = str(call.excinfo.value)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Names the reports of tests that did not pass."""
    paths = [value for outcome in ("failed", "error", "skipped") for report in terminalreporter.stats.get(outcome, [])
             for name, value in getattr(report, "user_properties", []) if name == REPORT]
    if paths:
        terminalreporter.section("reports of ringer")
        for path in dict.fromkeys(paths):
            terminalreporter.line(path)


@pytest.fixture(scope="session")
def ringer_engine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """An engine for the tests of this process: that of RINGER_SERVER and RINGER_API_KEY, else one that is started."""
    server, key = os.environ.get("RINGER_SERVER"), os.environ.get("RINGER_API_KEY")
    if server:
        if not key:
            raise NotTested("RINGER_SERVER is set, and RINGER_API_KEY, the key of the server, is not")
        with Engine(server, key) as engine:
            yield engine
        return
    with Engine.start(tmp_path_factory.mktemp("ringer"), program=program(request.config)) as engine:
        yield engine


@pytest.fixture
def ringer_run(request: pytest.FixtureRequest) -> Callable[..., suites.Run]:
    """Plays suites from a test: `ringer_run("calls.yaml", filter="menu")`.

    What did not pass ends the test: a failure, a skip or an error. With `check=False` the run is returned whatever came of it.
    `engine` makes the calls there. Options are flags of `ringer run`.
    """
    counted = iter(range(1, 1 << 31))

    def run(*paths: str, check: bool = True, engine: Engine | None = None, **options: Any) -> suites.Run:
        __tracebackhide__ = True
        folder = request.path.parent
        name = f"{request.node.nodeid} run {next(counted)}"
        named = [found(request.config, folder, path) for path in paths]
        made = play(request.config, named, options, folder, name, engine)
        attach(request.node, made, made.scenarios)
        if check:
            judge({1: "failed", 3: "unknown", 4: "unreachable"}.get(made.exit_code, "passed"), made.text())
        return made

    return run
