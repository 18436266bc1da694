"""The workflow of releases, the action that uses them, and the bill of materials against the schema of its format."""

import hashlib
import os
import tarfile
import tempfile
import unittest

import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

import checked
import house


def steps():
    with open(os.path.join(house.ROOT, "action.yml"), encoding="utf-8") as file:
        return yaml.safe_load(file)["runs"]["steps"]


class Release(unittest.TestCase):
    """Files of a release."""

    def test_the_workflow_is_one(self):
        shellcheck = os.path.join(checked.TOOLS, "venv", "bin", "shellcheck")
        path = os.path.join(house.ROOT, ".github", "workflows", "release.yml")
        checked.tool("actionlint", "-shellcheck", shellcheck, path)

    def test_scripts_are_sound(self):
        folder = os.path.join(house.ROOT, "packaging", "deb")
        scripts = [os.path.join(folder, name) for name in ["postinst", "prerm", "postrm"]]
        own = os.path.join(house.ROOT, "tests", "packaging")
        checked.installed("shellcheck", *scripts, os.path.join(own, "root.sh"), os.path.join(own, "tools.sh"))
        for step in steps():
            if "run" in step:
                with tempfile.NamedTemporaryFile("w", suffix=".bash", encoding="utf-8") as file:
                    file.write("#!/bin/bash\n" + step["run"])
                    file.flush()
                    checked.installed("shellcheck", file.name)

    def test_the_bill_of_materials_is_of_its_schema(self):
        with tarfile.open(house.file_in(house.packed("tarball"), "ringer-", ".tar.gz")) as tar:
            name = next(name for name in tar.getnames() if name.endswith("/sbom.cdx.json"))
            text = tar.extractfile(name).read().decode()
        validator = JsonStrictValidator(SchemaVersion.V1_6)
        self.assertIsNone(validator.validate_str(text))
        self.assertIsNotNone(validator.validate_str(text.replace('"purl"', '"pearl"')))


class Action(unittest.TestCase):
    """The step of the action that takes the program from a package."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.output = os.path.join(self.folder.name, "output")

    def unpack(self, package, digest=""):
        script = next(step["run"] for step in steps() if step.get("id") == "unpack")
        env = house.environment(RINGER_PACKAGE=package, RINGER_SHA256=digest, RUNNER_TEMP=self.folder.name, GITHUB_OUTPUT=self.output)
        return house.run("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script, check=False, env=env)

    def test_tarball_and_wheel_bring_the_program(self):
        expected = house.run(house.PROGRAM, "--version").stdout
        for kind, beginning, end in [("tarball", "ringer-", ".tar.gz"), ("wheel", "ringer_engine", ".whl")]:
            package = house.file_in(house.packed(kind), beginning, end)
            with open(package, "rb") as file:
                digest = hashlib.sha256(file.read()).hexdigest()
            said = self.unpack(package, digest)
            self.assertEqual((said.returncode, said.stdout), (0, expected))
            with open(self.output, encoding="utf-8") as file:
                program = file.read().splitlines()[-1].removeprefix("program=")
            self.assertEqual(house.run(program, "--version").stdout, expected)

    def test_other_packages_are_refused(self):
        package = house.file_in(house.packed("tarball"), "ringer-", ".tar.gz")
        for path, digest, why in [(package, "0" * 64, "has another SHA-256"), ("/nonexistent.whl", "", "there is no package"),
                                  ("https://example.com/ringer.whl", "", "needs its sha256"), ("/etc/hostname", "", "no .tar.gz and no .whl")]:
            said = self.unpack(path, digest)
            self.assertEqual(said.returncode, 2)
            self.assertIn(why, said.stdout)

    def test_the_run_uses_what_was_unpacked(self):
        run = next(step for step in steps() if step["name"] == "Run the suites")
        self.assertEqual(run["env"]["RINGER_PROGRAM"], "${{ steps.unpack.outputs.program || inputs.ringer }}")


if __name__ == "__main__":
    unittest.main()
