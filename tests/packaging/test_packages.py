"""Tarball, bill of materials and licences, with the program that was built; and what the packing refuses."""

import hashlib
import json
import os
import re
import subprocess
import tarfile
import tempfile
import unittest
import zipfile

import checked
import house

import bill
import elf
import pack

STAND_IN = r"""
#include <stdio.h>
#include <string.h>
int main(int count, char **words) {
    const char *first = count > 1 ? words[1] : "";
    if (!strcmp(first, "--version")) puts("ringer 9.8.7");
    else if (!strcmp(first, "--help")) puts("Commands:\n  up           Run\n  completions  Print\n  man          Print");
    else if (!strcmp(first, "completions") && count == 3) printf("# words for %s\n", words[2]);
    else if (!strcmp(first, "man")) puts(".TH ringer 1");
    else return 2;
    return 0;
}
"""


def stand_in(folder):
    """Builds a small program with the commands of man pages and completions; returns its path."""
    source, program = os.path.join(folder, "ringer.c"), os.path.join(folder, "ringer")
    with open(source, "w", encoding="ascii") as file:
        file.write(STAND_IN)
    house.run("gcc", "-o", program, source)
    return program


class Tarball(unittest.TestCase):
    """The tarball of the program."""

    @classmethod
    def setUpClass(cls):
        cls.folder = house.packed("tarball")
        cls.path = house.file_in(cls.folder, "ringer-", ".tar.gz")
        with tarfile.open(cls.path) as tar:
            cls.entries = {entry.name.split("/", 1)[1]: entry for entry in tar.getmembers()}
            cls.content = {name: tar.extractfile(entry).read() for name, entry in cls.entries.items() if entry.isfile()}

    def test_it_holds_the_program_and_what_belongs_to_it(self):
        expected = {"ringer", "README.md", "CHANGELOG.md", "LICENSE", "LICENSE-MIT", "LICENSE-APACHE",
                    "THIRD-PARTY-LICENSES.txt", "sbom.cdx.json", "ringer.service", "ringer.toml"}
        found = {name for name in self.content if not name.startswith("share/")}
        self.assertEqual(found, expected)
        commands = house.run(house.PROGRAM, "--help").stdout
        wanted = {f"share/{place}" for place in pack.COMPLETIONS.values()} if re.search("^  completions ", commands, re.M) else set()
        wanted |= {"share/man/man1/ringer.1"} if re.search("^  man ", commands, re.M) else set()
        self.assertEqual(set(self.content) - expected, wanted)
        self.assertTrue(all(entry.uid == 0 and entry.uname == "root" for entry in self.entries.values()))
        self.assertEqual(self.entries["ringer"].mode, 0o755)

    def test_the_program_runs_and_has_no_symbols(self):
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "ringer")
            with open(program, "wb") as file:
                file.write(self.content["ringer"])
            os.chmod(program, 0o755)
            printed = house.run(program, "--version").stdout
            self.assertEqual(printed, house.run(house.PROGRAM, "--version").stdout)
            self.assertIn("no symbols", house.run("nm", program, check=False).stdout)
            self.assertLessEqual(elf.glibc(program), pack.GLIBC)
            self.assertGreater(elf.glibc(program), (2, 17))

    def test_the_checksum_is_that_of_the_file(self):
        with open(self.path, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        with open(f"{self.path}.sha256", encoding="ascii") as file:
            self.assertEqual(file.read(), f"{digest}  {os.path.basename(self.path)}\n")
        house.run("sha256sum", "--check", f"{self.path}.sha256", cwd=self.folder)

    def test_the_bill_names_what_is_linked_and_nothing_else(self):
        document = json.loads(self.content["sbom.cdx.json"])
        self.assertEqual((document["bomFormat"], document["specVersion"]), ("CycloneDX", "1.6"))
        own = document["metadata"]["component"]
        self.assertEqual(f"{own['name']} {own['version']}\n", house.run(house.PROGRAM, "--version").stdout)
        parts = {part["name"]: part for part in document["components"]}
        with open(os.path.join(house.ROOT, "Cargo.lock"), encoding="utf-8") as file:
            locked = set(re.findall(r'^name = "(.*)"\nversion = "(.*)"$', file.read(), re.MULTILINE))
        for part in document["components"]:
            if part["name"] != "rust-std":
                self.assertIn((part["name"], part["version"]), locked)
            self.assertTrue(part["licenses"][0]["expression"], part["name"])
        # Of the lock file: what is linked has the checksum of the registry, what only tests use is not there.
        self.assertRegex(parts["tokio"]["hashes"][0]["content"], "^[0-9a-f]{64}$")
        self.assertTrue({"tokio", "rustls", "rusqlite", "ringer-sip"} <= set(parts))
        self.assertFalse({"tempfile", "s3s", "s3s-fs"} & set(parts))
        refs = {part["bom-ref"] for part in [own, *document["components"]]}
        self.assertEqual(len(refs), len(document["components"]) + 1)
        for edge in document["dependencies"]:
            self.assertTrue({edge["ref"], *edge["dependsOn"]} <= refs, edge["ref"])

    def test_the_licences_of_all_parts_are_there(self):
        text = self.content["THIRD-PARTY-LICENSES.txt"].decode()
        parts = json.loads(self.content["sbom.cdx.json"])["components"]
        for part in parts:
            if part.get("hashes"):
                line = f"\n{part['name']} {part['version']}: "
                self.assertTrue(line in text, line)
        # A licence that asks for its text, one with a notice, and data that no package brings.
        for words in ["Mozilla Public License Version 2.0", "Attribution-ShareAlike 4.0", "Apache License"]:
            self.assertTrue(words in text, words)

    def test_no_secret_is_in_it(self):
        for name, content in self.content.items():
            for secret in house.PLANTED:
                self.assertFalse(secret.encode() in content, name)


class Packing(unittest.TestCase):
    """Packing of a small program."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.program = stand_in(self.folder.name)

    def out(self, name, *more, **environment):
        folder = os.path.join(self.folder.name, name)
        house.run(house.PACK, self.program, "--out", folder, *more, "tarball", "wheel", "deb", env=house.environment(**environment))
        return folder

    def test_the_same_bytes_come_of_the_same_program(self):
        first = self.out("first", SOURCE_DATE_EPOCH="1700000000")
        second = self.out("second", SOURCE_DATE_EPOCH="1700000000")
        names = sorted(os.listdir(first))
        self.assertEqual(len(names), 6)
        for name in names:
            with open(os.path.join(first, name), "rb") as one, open(os.path.join(second, name), "rb") as other:
                self.assertEqual(one.read(), other.read(), name)

    def test_man_page_and_completions_are_packed_where_the_program_prints_them(self):
        folder = self.out("all")
        with tarfile.open(house.file_in(folder, "ringer-", ".tar.gz")) as tar:
            names = {name.split("/", 1)[1] for name in tar.getnames()}
            text = tar.extractfile("ringer-9.8.7-x86_64-linux-gnu/share/zsh/site-functions/_ringer").read()
        places = {"man/man1/ringer.1", *pack.COMPLETIONS.values()}
        self.assertTrue({f"share/{place}" for place in places} <= names, names)
        self.assertEqual(text, b"# words for zsh\n")
        with zipfile.ZipFile(house.file_in(folder, "ringer_engine", ".whl")) as archived:
            self.assertTrue({f"ringer_engine-9.8.7.data/data/share/{place}" for place in places} <= set(archived.namelist()))
        listed = house.run("dpkg-deb", "--contents", house.file_in(folder, "ringer_9", ".deb")).stdout
        for place in ["./usr/share/man/man1/ringer.1.gz", "./usr/share/bash-completion/completions/ringer"]:
            self.assertIn(place, listed)

    def test_what_is_no_program_is_refused(self):
        text = os.path.join(self.folder.name, "text")
        with open(text, "w", encoding="ascii") as file:
            file.write("#!/bin/sh\n")
        for program, why in [(text, "no 64-bit ELF program"), ("/nonexistent", "No such file"), ("/bin/true", "no version of ringer")]:
            refused = house.run(house.PACK, program, "--out", self.folder.name, "tarball", check=False)
            self.assertEqual(refused.returncode, 1, program)
            self.assertIn(why, refused.stdout)
            self.assertNotIn("Traceback", refused.stdout)

    def test_a_newer_library_than_promised_is_refused(self):
        promised, pack.GLIBC = pack.GLIBC, (2, 1)
        try:
            with self.assertRaisesRegex(elf.BadProgram, r"needs glibc 2\.\d+; packages promise 2\.1"):
                pack.Packing(self.program, None, True, 1)
        finally:
            pack.GLIBC = promised

    def test_versions_are_written_as_each_kind_sorts_them(self):
        for version, python, debian in [("1.2.3", "1.2.3", "1.2.3"), ("1.0.0-rc.1", "1.0.0rc1", "1.0.0~rc.1"), ("1.0.0-beta2", "1.0.0b2", "1.0.0~beta2")]:
            self.assertEqual((pack.python_version(version), pack.debian_version(version)), (python, debian))
        with self.assertRaisesRegex(elf.BadProgram, "1.0.0-x: a wheel's version"):
            pack.python_version("1.0.0-x")

    def test_older_writings_of_licences_are_made_expressions(self):
        for written, expected in [("MIT/Apache-2.0", "MIT OR Apache-2.0"), ("Apache-2.0 / MIT", "Apache-2.0 OR MIT"), ("MIT AND ISC", "MIT AND ISC")]:
            self.assertEqual(bill.expression(written), expected)


class Unit(unittest.TestCase):
    """The unit of systemd."""

    def test_nothing_in_it_runs_as_root(self):
        with open(os.path.join(house.ROOT, "packaging", "ringer.service"), encoding="utf-8") as file:
            lines = [line.strip().split("=", 1) for line in file if "=" in line and not line.startswith("#")]
        found = {}
        for name, value in lines:
            found.setdefault(name, []).append(value)
        self.assertEqual((found["User"], found["Group"], found["NoNewPrivileges"]), (["ringer"], ["ringer"], ["yes"]))
        self.assertEqual((found["CapabilityBoundingSet"], found["AmbientCapabilities"]), ([""], [""]))
        commands = [value for name, values in found.items() if name.startswith("Exec") for value in values]
        self.assertTrue(commands)
        for command in commands:
            # `+`, `!` and `!!` before a command would run it with all privileges.
            self.assertRegex(command, "^/usr/bin/ringer ")
        self.assertNotIn("PermissionsStartOnly", found)
        variables = dict(value.split("=", 1) for value in found["Environment"])
        own = {name: value for name, value in variables.items() if name.startswith("RINGER_")}
        self.assertEqual(checked.problems("", own), [])
        self.assertLess(int(own["RINGER_SERVER_DRAIN_TIMEOUT_S"]), int(found["TimeoutStopSec"][0].removesuffix("min")) * 60)

    def test_systemd_understands_it(self):
        if not subprocess.run(["which", "systemd-analyze"], capture_output=True).stdout:
            self.skipTest("systemd-analyze is not here")
        with tempfile.TemporaryDirectory() as folder:
            unit = os.path.join(folder, "ringer.service")
            with open(os.path.join(house.ROOT, "packaging", "ringer.service"), encoding="utf-8") as file:
                text = file.read().replace("/usr/bin/ringer", "/bin/true")
            with open(unit, "w", encoding="utf-8") as file:
                file.write(text)
            said = house.run("systemd-analyze", "verify", unit, check=False)
            own = [line for line in said.stdout.splitlines() if "ringer.service" in line]
            self.assertEqual((said.returncode, own), (0, []), said.stdout)
            rated = house.run("systemd-analyze", "security", "--offline=true", "--threshold=25", unit, check=False)
            self.assertEqual(rated.returncode, 0, rated.stdout[-300:])


if __name__ == "__main__":
    unittest.main()
