"""The wheel: installed by pip in an empty environment, it calls the sample agent; an older system refuses it."""

import os
import re
import shutil
import tempfile
import unittest
import zipfile

import house

SUITE = """
version: 1
connect: { sip: "sip:desk@127.0.0.1:${PORT}" }
spawn:
  command: ["${RINGER}", agent, --listen, "udp:127.0.0.1:${PORT},tcp:127.0.0.1:${PORT}"]
  ready: { tcp: "127.0.0.1:${PORT}", within_s: 30 }
scenarios:
  - name: keys
    turns:
      - expect: { within_ms: 8000 }
      - dtmf: "1"
"""


class Wheel(unittest.TestCase):
    """The wheel of the program, in a fresh environment of Python."""

    @classmethod
    def setUpClass(cls):
        cls.wheel = house.file_in(house.packed("wheel"), "ringer_engine", ".whl")
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.venv = os.path.join(cls.folder.name, "venv")
        house.run("python3", "-m", "venv", cls.venv)
        cls.pip = os.path.join(cls.venv, "bin", "pip")
        house.run(cls.pip, "install", "--no-index", cls.wheel)

    def test_pip_installs_the_program_that_was_built(self):
        program = os.path.join(self.venv, "bin", "ringer")
        self.assertEqual(house.run(program, "--version").stdout, house.run(house.PROGRAM, "--version").stdout)
        shown = house.run(self.pip, "show", "--files", "ringer-engine").stdout
        self.assertIn("../../../bin/ringer", shown)
        self.assertIn("sboms/ringer.cdx.json", shown)
        self.assertIn("licenses/THIRD-PARTY-LICENSES.txt", shown)
        house.run(self.pip, "check")

    def test_it_calls_the_sample_agent(self):
        port, = house.free_ports(1)
        suite = os.path.join(self.folder.name, "keys.yaml")
        with open(suite, "w", encoding="ascii") as file:
            file.write(SUITE)
        program = os.path.join(self.venv, "bin", "ringer")
        env = house.environment(PORT=str(port), RINGER=program)
        out = os.path.join(self.folder.name, "results")
        # 3: this machine was too slow to tell, which says nothing of the package.
        for _ in range(2):
            ended = house.run(program, "run", suite, "--out", out, check=False, env=env, cwd=self.folder.name)
            if ended.returncode != 3:
                break
        self.assertEqual(ended.returncode, 0, ended.stdout)
        self.assertTrue(os.path.exists(os.path.join(out, "report.html")))
        self.assertRegex(ended.stdout, r"keys")

    def test_pip_on_an_older_system_refuses_it(self):
        name = os.path.basename(self.wheel)
        future = os.path.join(self.folder.name, name.replace("manylinux_2_36", "manylinux_2_99"))
        shutil.copy(self.wheel, future)
        refused = house.run(self.pip, "install", "--no-index", future, check=False)
        self.assertEqual(refused.returncode, 1, refused.stdout)
        self.assertIn("is not a supported wheel on this platform", refused.stdout)
        for least, code in [("2_35", 1), ("2_36", 0)]:
            machine = re.search(r"manylinux_2_36_(\w+)\.whl", name).group(1)
            chosen = house.run(self.pip, "download", "--no-index", "--find-links", os.path.dirname(self.wheel), "--no-deps",
                               "--only-binary", ":all:", "--platform", f"manylinux_{least}_{machine}", "--dest",
                               os.path.join(self.folder.name, least), "ringer-engine", check=False)
            self.assertEqual(chosen.returncode, code, chosen.stdout)
            if code:
                self.assertIn("No matching distribution found for ringer-engine", chosen.stdout)

    def test_no_secret_is_in_it(self):
        with zipfile.ZipFile(self.wheel) as archived:
            for name in archived.namelist():
                content = archived.read(name)
                for secret in house.PLANTED:
                    self.assertFalse(secret.encode() in content, name)


if __name__ == "__main__":
    unittest.main()
