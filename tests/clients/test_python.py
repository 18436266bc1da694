"""The client in Python: its wheel in a fresh environment, the plugin of pytest, and the operations of the API."""

import glob
import json
import os
import re
import shutil
import tempfile
import unittest
import xml.etree.ElementTree as xml
import zipfile

import place

# Suites in writing: a scenario of each kind by the marker, and runs from a test.
MARKED = '''
import os
import unittest
import pytest
from ringer_client import NotTested

@pytest.fixture
def own_port(monkeypatch):
    monkeypatch.setenv("RINGER_TEST_FIXTURE", "was there")

@pytest.mark.ringer("chat.yaml")
def test_desk(own_port, ringer_scenario):
    assert os.environ["RINGER_TEST_FIXTURE"] == "was there"
    assert ringer_scenario.result.calls[0].metrics["duration"] >= 0

@pytest.mark.ringer("chat.yaml", filter="answers", repeat=2)
def test_body_fails():
    assert False, "the body ran"

class TestUnit(unittest.TestCase):
    @pytest.mark.ringer("chat.yaml", filter="answers")
    def test_method(self):
        pass

def test_run_passes(ringer_run):
    assert ringer_run("chat.yaml", tag="smoke").exit_code == 0

def test_run_fails(ringer_run):
    ringer_run("chat.yaml")

def test_run_skips(ringer_run):
    ringer_run("chat.yaml", filter="polite")

def test_run_is_not_reached(ringer_run):
    ringer_run("gone.ringer.yaml")

def test_run_is_refused(ringer_run):
    ringer_run("chat.yaml", filter="polite", colour="blue")

def test_run_is_looked_at(ringer_run):
    run = ringer_run("chat.yaml", check=False)
    assert [one.verdict for one in run.scenarios] == ["passed", "failed", "failed", "unknown"]
    assert [call.seed for call in run.scenario("speaks French").calls] == [1, 2]
    assert run.report.is_file()

def test_engine(ringer_engine, ringer_run):
    assert ringer_engine.api_key not in repr(ringer_engine)
    run = ringer_run("chat.yaml", engine=ringer_engine, spawn=True, filter="answers")
    number = int(run.scenarios[0].calls[0].result_id)
    result = ringer_engine.client().results.get_simulation_result(number).simulation_result
    assert result.verdict.word.value == "passed"
'''
OUTCOMES = {
    "test_desk[answers]": "passed", "test_desk[speaks French]": "failed", "test_desk[says no please]": "failed",
    "test_desk[is polite]": "skipped", "test_body_fails[answers]": "failed", "test_run_passes": "passed",
    "test_run_fails": "failed", "test_run_skips": "skipped", "test_run_is_not_reached": "error",
    "test_run_is_refused": "error", "test_method": "error", "test_run_is_looked_at": "passed", "test_engine": "passed",
}
CHAT = {"answers": "passed", "speaks French": "failed", "says no please": "failed", "is polite": "skipped", "nobody is there": "error"}
DESK = {"answers": "passed", "takes keys": "failed", "is polite": "skipped"}


def setUpModule():
    """Builds the wheel, and installs it in an environment without anything else."""
    global folder, python, wheel
    made = tempfile.TemporaryDirectory(prefix="ringer-client-")
    unittest.addModuleCleanup(made.cleanup)
    folder = made.name
    pip = os.path.join(place.TOOLS, "venv", "bin", "pip")
    quiet = ["--quiet", "--disable-pip-version-check", "--no-index"]
    source = os.path.join(folder, "repository")
    shutil.copytree(os.path.join(place.ROOT, "clients", "python"), os.path.join(source, "clients", "python"))
    os.makedirs(os.path.join(source, "fixtures", "api"))
    shutil.copy(place.DOCUMENT, os.path.join(source, "fixtures", "api"))
    place.run(pip, "wheel", *quiet, "--no-build-isolation", "--no-deps", "--wheel-dir", os.path.join(folder, "built"),
              os.path.join(source, "clients", "python"))
    wheel, = glob.glob(os.path.join(folder, "built", "ringer_client-*-py3-none-any.whl"))
    place.run("python3", "-m", "venv", "--without-pip", os.path.join(folder, "venv"))
    python = os.path.join(folder, "venv", "bin", "python")
    place.run(pip, "--python", python, "install", *quiet, "--no-compile", "--find-links", os.path.join(place.TOOLS, "wheels"),
              f"{wheel}[pytest]", "pytest-xdist")


def project(name, *files, **texts):
    """Returns a folder with suites of this folder and with texts; it is the root folder of pytest."""
    path = os.path.join(folder, name)
    os.makedirs(path)
    for one in files:
        shutil.copy(os.path.join(place.HERE, one), path)
    for stem, text in {"pytest.ini": "[pytest]\n", **{f"{stem}.py": text for stem, text in texts.items()}}.items():
        with open(os.path.join(path, stem), "w", encoding="utf-8") as file:
            file.write(text)
    return path


def tested(path, *words, **env):
    """Starts pytest in a project."""
    words = ["-p", "no:cacheprovider", "--junitxml=junit.xml", "-rs", *words]
    return place.start(python, "-m", "pytest", *words, cwd=path, env=place.environment(**env))


def cases(path):
    """Returns the test cases of a JUnit file by their names."""
    found = xml.parse(os.path.join(path, "junit.xml")).getroot().iter("testcase")
    return {one.get("name"): one for one in found}


def outcome(case):
    """Returns what JUnit says of a test case."""
    words = {"failure": "failed", "error": "error", "skipped": "skipped"}
    found = [words[part.tag] for part in case if part.tag in words]
    return found[0] if found else "passed"


def properties(case, name):
    """Returns the values of a property of a test case."""
    return [one.get("value") for one in case.iter("property") if one.get("name") == name]


def reason(case):
    """Returns the text of an outcome that is not passed."""
    return " ".join(f"{part.get('message')} {part.text}" for part in case if part.tag in ("failure", "error", "skipped"))


class Plugin(unittest.TestCase):
    """Suites under pytest: which verdict is which outcome."""

    def check_collected(self, path, told_of):
        """Checks a run of suites that are collected."""
        code, printed = told_of
        told = cases(path)
        self.assertEqual({name: outcome(case) for name, case in told.items()}, CHAT, printed)
        self.assertEqual(code, 1, printed)
        self.assertIn("2 failed, 1 passed, 1 skipped, 1 error", printed)
        self.assertIn("the agent did not say 'Bonjour'", reason(told["speaks French"]))
        self.assertRegex(reason(told["says no please"]), r"the agent said 'please' \(at 0\.\d\d s\)")
        self.assertIn("No language model is configured", reason(told["is polite"]))
        self.assertIn("check that the agent is running", reason(told["nobody is there"]))
        for name, case in told.items():
            report, = properties(case, "ringer_report")
            self.assertTrue(os.path.isfile(report), report)
            self.assertEqual(properties(case, "ringer_seed"), ["1", "2"] if name == "speaks French" else ["1"])
            self.assertRegex(properties(case, "ringer_result_id")[0], r"^\d+$")
        self.assertEqual(properties(told["says no please"], "ringer_verdict"), ["failed"])
        self.assertIn("Captured ringer call", printed)
        self.assertEqual(len(os.listdir(os.path.join(path, "ringer-results"))), 2, "a folder for each suite, and nothing else")
        self.assertIn(properties(told["says no please"], "ringer_report")[0], printed.split("reports of ringer")[1])

    def test_each_verdict_has_its_outcome(self):
        alone, both = project("chat"), project("chat-n")
        for path in [alone, both]:
            shutil.copy(os.path.join(place.HERE, "gone.ringer.yaml"), path)
            shutil.copy(os.path.join(place.HERE, "chat.yaml"), os.path.join(path, "chat.ringer.yaml"))
        ended = [place.ended(one) for one in [tested(alone), tested(both, "-n", "2")]]
        self.check_collected(alone, ended[0])
        self.check_collected(both, ended[1])

    def test_calls_by_sip_in_virtual_time(self):
        path = project("desk", "desk.ringer.yaml")
        code, printed = place.ended(tested(path, "-o", "ringer_args=--sim"))
        self.assertEqual(({name: outcome(case) for name, case in cases(path).items()}, code), (DESK, 1), printed)

    def test_marked_tests_and_runs(self):
        files = ["chat.yaml", "gone.ringer.yaml"]
        path = project("marked", *files, test_marked=MARKED)
        code, printed = place.ended(tested(path, "-n", "2", "test_marked.py"))
        told = cases(path)
        self.assertEqual({name: outcome(case) for name, case in told.items()}, OUTCOMES, printed)
        self.assertEqual(code, 1, printed)
        self.assertIn("the body ran", reason(told["test_body_fails[answers]"]))
        self.assertEqual(properties(told["test_body_fails[answers]"], "ringer_seed"), ["1", "2"])
        self.assertEqual(properties(told["test_desk[speaks French]"], "ringer_seed"), ["1", "2"])
        self.assertRegex(reason(told["test_desk[says no please]"]), r"the agent said 'please' \(at 0\.\d\d s\)")
        self.assertIn("colour is no option of a run", reason(told["test_run_is_refused"]))
        self.assertRegex(reason(told["test_run_fails"]), r"report\.html#call-[0-3]")

    def test_suites_of_the_settings_and_a_part_of_them(self):
        path = project("part", "chat.yaml")
        words = ["-o", "ringer_suites=chat.y*ml", "-o", "ringer_args=--seed 7", "-o", "ringer_out=made"]
        code, printed = place.ended(tested(path, *words, "-k", "smoke or French"))
        told = cases(path)
        self.assertEqual({name: outcome(case) for name, case in told.items()}, {"answers": "passed", "speaks French": "failed"}, printed)
        self.assertIn("2 deselected", printed)
        self.assertEqual(properties(told["speaks French"], "ringer_seed"), ["7", "8"])
        self.assertEqual(len(os.listdir(os.path.join(path, "made"))), 2, "a run for each")
        self.assertEqual(code, 1)

    def test_what_cannot_be_called_is_an_error(self):
        path = project("refused", "chat.yaml", test_none='import pytest\n@pytest.mark.ringer("none.yaml")\ndef test_none(): pass\n')
        with open(os.path.join(path, "chat.yaml"), encoding="utf-8") as file:
            text = file.read()
        os.remove(os.path.join(path, "chat.yaml"))
        with open(os.path.join(path, "old.ringer.yaml"), "w", encoding="utf-8") as file:
            file.write(text.replace("version: 1", "version: 2"))
        started = [tested(path), tested(path, "--junitxml=", RINGER_PROGRAM="", PATH="/nonexistent"),
                   tested(path, "--junitxml=", RINGER_PROGRAM="/nonexistent/ringer")]
        said = [place.ended(one) for one in started]
        self.assertEqual([code for code, _ in said], [2, 2, 2], said)
        self.assertRegex(said[0][1], r"old\.ringer\.yaml:2:10: version 2 is not known")
        self.assertRegex(said[0][1], r"none\.yaml")
        self.assertIn("2 errors", said[0][1])
        for _, printed in said[1:]:
            self.assertIn("pip install ringer-engine", printed)

    def test_names_with_brackets_are_told_from_tags(self):
        path = project("names")
        names = [("keys", "[v2, old]"), ("keys [v2]", "[]"), ("keys [v3]", "[new]"), ("menu", "[]"), ("menu [v2, old]", "[]")]
        with open(os.path.join(path, "names.ringer.yaml"), "w", encoding="utf-8") as file:
            file.write("version: 1\nconnect: { sip: \"sip:desk@127.0.0.1:${AGENT_PORT}\" }\nscenarios:\n" + "".join(
                f"  - {{ name: \"{name}\", tags: {tags}, turns: [{{ wait: 500 }}] }}\n" for name, tags in names))
        printed = place.ended(tested(path, "--collect-only", "-q", "--junitxml="))[1]
        self.assertEqual([f"names.ringer.yaml::{name}" for name, _ in names], printed.splitlines()[:len(names)], printed)
        printed = place.ended(tested(path, "--collect-only", "-q", "--junitxml=", "-k", "new or old"))[1]
        self.assertEqual(printed.splitlines()[:3], ["names.ringer.yaml::keys", "names.ringer.yaml::keys [v3]",
                                                    "names.ringer.yaml::menu [v2, old]"], printed)

    def test_a_server_is_used_where_it_is_named(self):
        path = project("server", "gone.ringer.yaml", test_server="def test_server(ringer_engine):\n    ringer_engine.client()\n")
        code, printed = place.ended(tested(path, RINGER_SERVER="http://127.0.0.1:9", RINGER_API_KEY="planted-key-4c1f0b7e"))
        told = cases(path)
        self.assertEqual({name: outcome(case) for name, case in told.items()}, {"nobody is there": "error", "test_server": "passed"})
        self.assertIn("the server is not reached", reason(told["nobody is there"]))
        self.assertNotIn("planted-key", printed)
        self.assertEqual(code, 1)
        code, printed = place.ended(tested(path, RINGER_SERVER="http://127.0.0.1:9"))
        self.assertIn("RINGER_API_KEY", reason(cases(path)["test_server"]))
        self.assertEqual(outcome(cases(path)["test_server"]), "error")
        self.assertEqual(code, 1)


class Client(unittest.TestCase):
    """Operations of the API."""

    def test_the_wheel_has_every_operation(self):
        with open(place.DOCUMENT, encoding="utf-8") as file:
            paths = json.load(file)["paths"]
        named = sorted(re.sub("(?<=[a-z0-9])(?=[A-Z])", "_", one["operationId"]).lower() for path in paths.values()
                       for one in path.values())
        with zipfile.ZipFile(wheel) as archived:
            names = archived.namelist()
            methods = re.findall(r"^    (?:async )?def (\w+)\(self", archived.read("ringer_client/operations.py").decode(), re.MULTILINE)
        modules = [os.path.basename(name)[:-3] for name in names if name.startswith("ringer_client/api/") and not name.endswith("__.py")]
        self.assertEqual(sorted(modules), named)
        self.assertEqual(sorted(one for one in methods if one not in ("__init__", "bind")), sorted(named * 2))
        self.assertIn("ringer_client/py.typed", names)

    def test_operations_of_every_tag(self):
        program = ("import subprocess, sys, tempfile\nfrom ringer_client import Engine, run_suites\n"
                   "with tempfile.TemporaryDirectory() as out, Engine.start(out) as engine:\n"
                   "    run = run_suites([sys.argv[1]], out + '/run', engine=engine, spawn=True, filter='answers')\n"
                   "    number = run.scenarios[0].calls[0].result_id\n"
                   "    subprocess.run([sys.executable, sys.argv[2], engine.base_url, engine.api_key, number], check=True)\n")
        printed = place.run(python, "-c", program, os.path.join(place.HERE, "chat.yaml"), os.path.join(place.HERE, "operations.py"))
        told = json.loads(printed)
        with open(place.DOCUMENT, encoding="utf-8") as file:
            paths = json.load(file)["paths"]
        operations = [one for path in paths.values() for one in path.values()]
        tags = {one["tags"][0].replace(" ", "_").lower() for one in operations}
        self.assertEqual(set(told["called"]), tags)
        self.assertEqual(told["called"], told["awaited"])
        refused = {tag: status for tag, status in told["called"].items() if isinstance(status, int)}
        self.assertEqual(refused, {"generation": 503, "text": 404})
        for methods in told["methods"]:
            self.assertEqual(sum(len(names) for names in methods.values()), len(operations))
        self.assertEqual((told["called"]["agents"], told["called"]["custom_metrics"]), ("AgentAdded", "list of CustomMetricSpec"))
        status, detail, text, _ = told["wrong key"]
        self.assertEqual((status, detail), (401, "Invalid or missing API key"))
        self.assertEqual(text, "list_agents: 401: Invalid or missing API key")
        self.assertEqual((told["wrong key, awaited"], told["wrong key, stream"]), (401, 401))
        self.assertEqual((told["bad field"][0], told["bad field"][1][0]["loc"]), (422, ["body", "name"]))
        self.assertEqual(told["events"], told["events, awaited"])
        self.assertIn("call.ended", told["events"])
        self.assertEqual((told["text"], told["transcript"], told["bytes"]), ("# ", "Transcript", "bytes"))
        self.assertEqual(told["moved"], ["RIFF", [True, False]], "the store is not given the key")
        self.assertNotIn("key", told["repr"])


if __name__ == "__main__":
    unittest.main()
