"""The Dockerfile: a linter's word, what goes into its context, and its last stage carried out in a Debian 12 without
an engine of containers: started as its user, with a root that cannot be written to."""

import fnmatch
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import checked
import house
import image

# Most bytes of the image, compressed as registries keep it, without models.
MOST_BYTES = 150_000_000


def context(folder):
    """Returns the files that .dockerignore leaves of a folder, by Docker's rules: the last pattern that fits decides."""
    with open(os.path.join(folder, ".dockerignore"), encoding="utf-8") as file:
        patterns = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    rules = [(pattern.lstrip("!").strip("/"), pattern.startswith("!")) for pattern in patterns]

    def fits(path, pattern):
        parts = path.split("/")
        beginnings = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
        if pattern.startswith("**/"):
            return any(fnmatch.fnmatchcase(part, pattern[3:]) for part in parts)
        wanted = pattern.count("/")
        return any(fnmatch.fnmatchcase(one, pattern) for one in beginnings if one.count("/") == wanted)

    found = []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in {"target", ".git", ".venv"}]
        for name in names:
            path = os.path.relpath(os.path.join(place, name), folder)
            sent = True
            for pattern, brings in rules:
                if fits(path, pattern):
                    sent = brings
            if sent:
                found.append(path)
    return found


class Written(unittest.TestCase):
    """The Dockerfile as it is written."""

    def test_the_linter_has_nothing_to_say(self):
        checked.installed("hadolint", "--failure-threshold", "style", image.DOCKERFILE)

    def test_the_last_stage_runs_as_a_plain_user_and_says_how_it_is(self):
        words = [word for word, _ in image.last_stage()]
        rest = dict(image.last_stage())
        self.assertEqual(rest["USER"], "10001:10001")
        self.assertLess(max(at for at, word in enumerate(words) if word == "RUN"), words.index("USER"))
        self.assertEqual(json.loads(rest["VOLUME"]), ["/data", "/models"])
        self.assertEqual(json.loads(rest["ENTRYPOINT"]), ["/usr/bin/ringer"])
        self.assertIn("HEALTHCHECK", words)
        self.assertNotIn("ARG", words)
        for name in image.variables():
            self.assertNotRegex(name, "KEY|SECRET|TOKEN|PASSWORD|DATABASE_URL")
        self.assertEqual(checked.problems("", {name: value for name, value in image.variables().items() if name.startswith("RINGER_")}), [])

    def test_only_sources_go_into_the_context(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = os.path.join(folder, "tree")
            tracked = house.run("git", "-C", house.ROOT, "ls-files").stdout.split()
            for path in tracked:
                if os.path.isfile(os.path.join(house.ROOT, path)):
                    os.makedirs(os.path.dirname(os.path.join(copy, path)), exist_ok=True)
                    shutil.copy(os.path.join(house.ROOT, path), os.path.join(copy, path))
            planted = {".env": 1, "src/.env": 1, "prod.env": 1, "data/secret.key": 2, "src/secret.key": 2, "ringer.toml": 3, "src/ringer.toml": 3,
                       ".cargo/credentials.toml": 4, "fixtures/tls.pem": 4, "models/key.txt": 4, "ringer-results/report.html": 3}
            for path, which in planted.items():
                os.makedirs(os.path.dirname(os.path.join(copy, path)), exist_ok=True)
                with open(os.path.join(copy, path), "w", encoding="ascii") as file:
                    file.write(house.PLANTED[which])
            sent = context(copy)
            self.assertEqual(set(sent) & set(planted), set())
            self.check_sources(copy, set(sent))
            for path in set(tracked) - set(sent):
                if os.path.isfile(os.path.join(copy, path)):
                    os.remove(os.path.join(copy, path))
            manifest = house.run(os.environ.get("CARGO", "cargo"), "metadata", "--locked", "--offline", "--no-deps", "--format-version", "1",
                                 cwd=copy, check=False)
            self.assertEqual(manifest.returncode, 0, manifest.stdout)

    def check_sources(self, copy, sent):
        """Checks that all code is sent, and each file that code of the program includes."""
        needed = 0
        for part in ["src", "media/src", "sip/src", "speech/src"]:
            for path in glob.glob(os.path.join(copy, part, "**", "*.rs"), recursive=True):
                self.assertIn(os.path.relpath(path, copy), sent)
                with open(path, encoding="utf-8") as file:
                    code = file.read().split("#[cfg(test)]")[0]
                if re.search("/tests?/|tests?.rs$", path):
                    continue
                for included in re.findall(r'include_(?:str|bytes)!\("([^"]+)"\)', code):
                    target = os.path.relpath(os.path.normpath(os.path.join(os.path.dirname(path), included)), copy)
                    self.assertIn(target, sent, path)
                    needed += 1
        self.assertGreater(needed, 20)


class LastStage(unittest.TestCase):
    """The last stage, carried out."""

    @classmethod
    def setUpClass(cls):
        cls.image = image.made()
        cls.debian = cls.image.debian

    def test_the_engine_answers_and_says_that_it_is_well(self):
        api, sip = house.free_ports(2)
        settings = {"RINGER_SERVER_LISTEN": f"127.0.0.1:{api}", "RINGER_SIP_LISTEN": f"127.0.0.1:{sip}", "RINGER_METRICS_PUBLIC": "true",
                    "RINGER_BOOTSTRAP_KEY": checked.STAND_IN}
        entry, words = json.loads(dict(image.last_stage())["ENTRYPOINT"]), json.loads(dict(image.last_stage())["CMD"])
        health = json.loads(dict(image.last_stage())["HEALTHCHECK"].split(" CMD ", 1)[1])
        process = subprocess.Popen(self.image.command(*entry, *words, **settings), env=house.environment(), text=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            house.await_answer(process, api)
            self.assertEqual(house.ask(api, "/v1/all-agents", checked.STAND_IN), 200)
            well = house.run(*self.image.command(*health, **settings))
            self.assertEqual(well.returncode, 0)
            ill = house.run(*self.image.command(*health, **{**settings, "RINGER_SERVER_LISTEN": "127.0.0.1:1"}), check=False)
            self.assertNotEqual(ill.returncode, 0)
            self.check_figures(api)
        finally:
            process.terminate()
            said, _ = process.communicate(timeout=house.PATIENCE)
        self.assertEqual(process.returncode, 0, said)
        self.assertIn("ringer is ready", said)
        self.assertNotIn(checked.STAND_IN, said)

    def check_figures(self, api):
        """Checks that the figures which the chart scales by are told."""
        import urllib.request

        with urllib.request.urlopen(f"http://127.0.0.1:{api}/metrics", timeout=house.PATIENCE) as answer:
            text = answer.read().decode()
        for name in ["ringer_calls_live", "ringer_calls_most"]:
            self.assertRegex(text, rf"(?m)^{name} [0-9]")

    def test_voices_and_ears_are_there(self):
        said = house.run(*self.image.command("/usr/bin/ringer", "doctor", "--json"), check=False)
        report = json.loads(said.stdout[said.stdout.index("{"):])
        found = {check["name"]: check["ok"] for check in report["checks"]}
        for name in ["flite", "espeak-ng", "libpocketsphinx3", "pocketsphinx-en-us", "libopus0"]:
            self.assertTrue(found[name], said.stdout)

    def test_it_is_small_enough(self):
        archived = house.run(*house.AS_ROOT, "bash", "-o", "pipefail", "-c",
                             f"tar -C {self.debian.path} --one-file-system -c . 2>/dev/null | gzip -6 | wc -c", timeout=image.LONG)
        size = int(archived.stdout.split()[-1])
        print(f"\nthe image would have {size / 1e6:.1f} MB, compressed by gzip (a Debian without documentation, and the program stripped)")
        self.assertLess(size, MOST_BYTES)
        self.assertGreater(size, MOST_BYTES // 10)

    def test_no_secret_is_in_it(self):
        for secret in house.PLANTED:
            found = house.run(*house.AS_ROOT, "grep", "-rlF", "--devices=skip", "--", secret, self.debian.path, check=False)
            self.assertEqual((found.returncode, found.stdout), (1, ""), secret)

    def test_only_its_own_folder_belongs_to_its_user(self):
        owned = self.debian.says("find", "/", "-xdev", "-uid", "10001")
        self.assertEqual(owned, "/data")
        self.assertEqual(self.debian.says("find", "/usr", "/etc", "-xdev", "-perm", "-0002", "!", "-type", "l"), "")


if __name__ == "__main__":
    unittest.main()
