"""The Debian package: installed, started as the unit says, upgraded, removed and purged in a Debian 12."""

import os
import shlex
import subprocess
import tempfile
import unittest

import house

NEWER = "99.0.0"


def of_unit(name):
    """Returns the values of a setting of the unit, each word by word."""
    with open(os.path.join(house.ROOT, "packaging", "ringer.service"), encoding="utf-8") as file:
        return [shlex.split(line.split("=", 1)[1]) for line in file if line.startswith(f"{name}=")]


class Package(unittest.TestCase):
    """The life of the package on one machine."""

    def setUp(self):
        version = house.run(house.PROGRAM, "--version").stdout.split()[1]
        self.older = house.file_in(house.packed("deb"), f"ringer_{version}_", ".deb")

    def install(self, path):
        self.debian.bring(path, "/ringer.deb")
        said = self.debian.run("dpkg", "--force-unsafe-io", "--install", "/ringer.deb")
        self.debian.run("rm", "/ringer.deb")
        return said.stdout

    def as_user(self, *words):
        """Returns the command that runs `words` as the unit does: as its user, without a way to more privileges."""
        bare = ["setpriv", "--reuid", "ringer", "--regid", "ringer", "--clear-groups", "--no-new-privs", "--bounding-set=-all"]
        return self.debian.command(*bare, *words)

    def settle(self):
        """Edits the settings, as whoever runs the service does; returns the port of the API."""
        api, sip = house.free_ports(2)
        path = os.path.join(self.debian.path, "etc/ringer/ringer.toml")
        with open(path, encoding="utf-8") as file:
            text = file.read().replace("127.0.0.1:8080", f"127.0.0.1:{api}").replace("127.0.0.1:5060", f"127.0.0.1:{sip}")
        with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            self.debian.bring(file.name, "/etc/ringer/ringer.toml")
        return api, text

    def check_answer(self, api, key):
        """Starts the engine as the unit does, asks with the key, and stops it as systemd does."""
        process = subprocess.Popen(self.as_user("env", *sum(of_unit("Environment"), []), *of_unit("ExecStart")[0]), env=house.environment(), text=True, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            house.await_answer(process, api)
            self.assertEqual(house.ask(api, "/v1/all-agents", key), 200)
            self.assertEqual(house.ask(api, "/v1/all-agents", "no-such-key-anywhere"), 401)
        finally:
            process.terminate()
            said, _ = process.communicate(timeout=house.PATIENCE)
        self.assertEqual(process.returncode, 0, said)
        self.assertNotIn(key, said)

    def test_data_and_keys_outlive_an_upgrade_and_a_removal(self):
        newer = house.file_in(house.packed("deb", version=NEWER), f"ringer_{NEWER}_", ".deb")
        self.debian = house.Debian()
        self.addCleanup(self.debian.close)
        said = self.install(self.older)
        self.assertIn("ringer keys create", said)
        user = self.debian.says("getent", "passwd", "ringer").split(":")
        self.assertNotEqual(user[2], "0")
        self.assertEqual(user[5:], ["/var/lib/ringer", "/usr/sbin/nologin"])
        self.assertEqual(self.debian.says("stat", "-c", "%U:%G %a", "/var/lib/ringer"), "ringer:ringer 700")
        self.assertEqual(self.debian.says("find", "/usr/bin/ringer", "-user", "root", "-perm", "755"), "/usr/bin/ringer")
        api, settings = self.settle()
        made = house.run(*self.as_user("ringer", "keys", "create", "--config", "/etc/ringer/ringer.toml", "--scope", "admin"))
        key = made.stdout.split()[-1]
        self.check_answer(api, key)
        self.assertEqual(self.debian.says("find", "/var/lib/ringer", "!", "-user", "ringer"), "")
        sealed = self.debian.says("sha256sum", "/var/lib/ringer/secret.key")

        self.install(newer)
        self.assertIn(f" {NEWER}", self.debian.says("dpkg-query", "--show", "ringer").replace("\t", " "))
        self.assertEqual(self.debian.says("cat", "/etc/ringer/ringer.toml"), settings.strip())
        self.assertEqual(self.debian.says("sha256sum", "/var/lib/ringer/secret.key"), sealed)
        self.check_answer(api, key)

        self.debian.run("dpkg", "--remove", "ringer")
        self.assertFalse(self.debian.has("/usr/bin/ringer"))
        self.assertFalse(self.debian.has("/lib/systemd/system/ringer.service"))
        self.assertEqual(self.debian.says("cat", "/etc/ringer/ringer.toml"), settings.strip())
        self.assertEqual(self.debian.says("sha256sum", "/var/lib/ringer/secret.key"), sealed)

        self.debian.run("dpkg", "--purge", "ringer")
        for path in ["/var/lib/ringer", "/etc/ringer"]:
            self.assertFalse(self.debian.has(path), path)
        for table in ["passwd", "group"]:
            self.assertEqual(self.debian.run("getent", table, "ringer", check=False).returncode, 2, table)
        self.assertEqual(self.debian.run("dpkg-query", "--show", "ringer", check=False).returncode, 1)

    def test_no_secret_is_in_it(self):
        with tempfile.TemporaryDirectory() as folder:
            house.run("dpkg-deb", "--raw-extract", self.older, folder)
            for secret in house.PLANTED:
                found = house.run("grep", "-rlF", "--", secret, folder, check=False)
                self.assertEqual((found.returncode, found.stdout), (1, ""))


if __name__ == "__main__":
    unittest.main()
