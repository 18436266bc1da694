"""compose.yaml: against the schema of Compose by its own loader, and its settings against the program."""

import os
import re
import tempfile
import unittest

import yaml

import checked
import house

COMPOSE = os.path.join(house.ROOT, "compose.yaml")
SECRETS = {name: f"{checked.STAND_IN}-{name.lower().replace('_', '-')}"
           for name in ["RINGER_BOOTSTRAP_KEY", "RINGER_SECRET_KEY", "POSTGRES_PASSWORD", "S3_PASSWORD", "NATS_PASSWORD"]}


def loaded(text, *flags, check=True):
    """Returns what the loader of Compose says of a file with this text."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "compose.yaml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        env = {name: value for name, value in house.environment().items() if name not in SECRETS}
        return checked.tool("compose", *flags, path, check=check, env=env, cwd=folder)


def written():
    with open(COMPOSE, encoding="utf-8") as file:
        return file.read()


def filled(text, variables):
    """Returns the text with its variables replaced, as Compose does: `${NAME:?why}` and `${NAME:-default}`."""
    def value(found):
        name, kind, rest = found.groups()
        if kind == ":?" and not variables.get(name):
            raise KeyError(name)
        return variables.get(name) or rest

    return re.sub(r"(?<!\$)\$\{([A-Z0-9_]+)(:[?-])([^}]*)\}", value, text)


class Compose(unittest.TestCase):
    """The file of Compose."""

    @classmethod
    def setUpClass(cls):
        cls.model = yaml.safe_load(loaded(filled(written(), SECRETS)).stdout)
        cls.services = cls.model["services"]
        cls.engines = {name: service for name, service in cls.services.items() if name.startswith("engine-")}

    def test_two_engines_share_a_database_a_bus_and_a_store(self):
        self.assertEqual(sorted(self.services), ["bucket", "engine-1", "engine-2", "nats", "postgres", "s3"])
        first, second = (service["environment"] for service in self.engines.values())
        differ = {name for name in first if first[name] != second[name]}
        self.assertEqual(differ, {"RINGER_SERVER_NAME", "RINGER_SERVER_OWN_URL", "RINGER_SIP_LISTEN", "RINGER_SIP_RTP_PORTS"})
        self.assertIn("@postgres:5432/", first["RINGER_DATABASE_URL"])
        self.assertEqual((first["RINGER_BUS_URL"], first["RINGER_STORAGE_URL"]), ("nats://nats:4222", "s3://ringer"))

    def test_the_program_knows_every_setting(self):
        for service in self.engines.values():
            variables = {name: str(value) for name, value in service["environment"].items()}
            self.assertTrue(all(name.startswith("RINGER_") for name in variables))
            self.assertEqual(checked.problems("", variables), [])

    def test_ports_are_the_same_inside_and_outside_and_nobody_elses(self):
        seen = set()
        for service in self.engines.values():
            published = {(int(port["target"]), port["protocol"]): port["published"] for port in service["ports"]}
            first, last = service["environment"]["RINGER_SIP_RTP_PORTS"].split("-")
            sip = service["environment"]["RINGER_SIP_LISTEN"].rsplit(":", 1)[1]
            wanted = [int(sip), *range(int(first), int(last) + 1)]
            for port in wanted:
                self.assertEqual(published[port, "udp"], str(port))
            outside = {int(port) for port in published.values()}
            self.assertEqual(len(outside), len(published))
            self.assertFalse(outside & seen)
            seen |= outside
            # Without TLS the API is for this machine alone.
            self.assertEqual({port["host_ip"] for port in service["ports"] if port["protocol"] == "tcp"}, {"127.0.0.1"})

    def test_engines_have_no_privileges(self):
        for service in self.engines.values():
            self.assertEqual((service["read_only"], service["cap_drop"]), (True, ["ALL"]))
            self.assertEqual(service["security_opt"], ["no-new-privileges:true"])
            self.assertNotIn("user", service)
            self.assertFalse(service.get("privileged", False))

    def test_nothing_starts_without_its_secrets(self):
        said = loaded(written(), check=False)
        self.assertNotEqual(said.returncode, 0)
        for name in SECRETS:
            self.assertIn(f"required variable {name} is missing a value", said.stdout)
            with self.assertRaisesRegex(KeyError, name):
                filled(written(), {other: value for other, value in SECRETS.items() if other != name})

    def test_no_secret_is_in_the_file(self):
        plain = yaml.safe_load(loaded(written(), "-no-interpolation").stdout)["services"]
        for name, service in plain.items():
            for variable, value in service.get("environment", {}).items():
                if any(word in variable for word in ["PASSWORD", "SECRET", "KEY", "TOKEN", "DATABASE_URL"]) and variable != "RINGER_STORAGE_ACCESS_KEY_ID":
                    self.assertIn(":?", str(value), f"{name}: {variable}")

    def test_a_word_that_compose_does_not_know_is_found(self):
        self.assertIn("restrat", loaded("services: { a: { image: b, restrat: always } }\n", check=False).stdout)
        self.assertEqual(loaded("services: { a: { image: b, restart: always } }\n").returncode, 0)


if __name__ == "__main__":
    unittest.main()
