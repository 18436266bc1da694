"""The chart: rendered over several files of values, against the schemas of Kubernetes and the program's own settings."""

import glob
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

import kubernetes_validate
import yaml

import checked
import house
import image

CHART = os.path.join(house.ROOT, "charts", "ringer")
VALUES = sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "values", "*.yaml")))
KUBERNETES = ["1.28", "1.31", "1.34"]
# Kinds that others define: no schema is at hand.
FOREIGN = {"ServiceMonitor", "PrometheusRule"}


def rendered(values, *more, version="1.31"):
    """Returns the objects that the chart makes of a file of values."""
    said = checked.tool("helm", "template", "calls", CHART, "--values", values, "--kube-version", version, *more)
    return [document for document in yaml.safe_load_all(said.stdout) if document]


def of_kind(objects, kind):
    return [found for found in objects if found["kind"] == kind]


def refused(*more):
    """Returns why the chart refuses values; `None`: it takes them."""
    said = checked.tool("helm", "template", "calls", CHART, "--kube-version", "1.31", *more, check=False)
    return None if said.returncode == 0 else said.stdout


class Rendered(unittest.TestCase):
    """What comes of each file of values."""

    def each(self):
        for path in VALUES:
            objects = rendered(path)
            yield os.path.basename(path), objects, of_kind(objects, "StatefulSet")[0]["spec"]

    def test_kubernetes_takes_it(self):
        self.assertGreaterEqual(len(VALUES), 4)
        checked.tool("helm", "lint", "--strict", CHART)
        for version in KUBERNETES:
            for path in VALUES:
                objects = rendered(path, version=f"{version}.0")
                names = [(found["kind"], found["metadata"]["name"]) for found in objects]
                self.assertEqual(len(names), len(set(names)))
                for found in objects:
                    if found["kind"] not in FOREIGN:
                        kubernetes_validate.validate(found, version, strict=True)

    def test_a_wrong_object_is_found(self):
        objects = rendered(VALUES[0])
        engine = of_kind(objects, "StatefulSet")[0]
        engine["spec"]["template"]["spec"]["containers"][0]["redinessProbe"] = {}
        with self.assertRaises(kubernetes_validate.ValidationError):
            kubernetes_validate.validate(engine, "1.31", strict=True)

    def test_nothing_runs_as_root_or_writes_to_its_image(self):
        for _, _, engine in self.each():
            pod = engine["template"]["spec"]
            self.assertEqual((pod["securityContext"]["runAsNonRoot"], pod["securityContext"]["runAsUser"]), (True, 10001))
            self.assertEqual(pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
            self.assertFalse(pod["automountServiceAccountToken"])
            for container in pod["containers"] + pod.get("initContainers", []):
                rights = container["securityContext"]
                self.assertTrue(rights["readOnlyRootFilesystem"])
                self.assertEqual((rights["allowPrivilegeEscalation"], rights["privileged"]), (False, False))
                self.assertEqual(rights["capabilities"], {"drop": ["ALL"]})

    def test_the_program_knows_every_setting(self):
        for name, objects, engine in self.each():
            settings = of_kind(objects, "ConfigMap")[0]["data"]["ringer.toml"]
            variables = {}
            for entry in engine["template"]["spec"]["containers"][0]["env"]:
                variable, field = entry["name"], entry.get("valueFrom", {})
                if variable.startswith("RINGER_"):
                    known = {"$(POD_NAME)": "calls-ringer-0", "http://$(POD_IP):8080": "http://10.0.0.5:8080"}
                    value = entry.get("value", "10.0.0.5" if "fieldRef" in field else checked.value_of(variable))
                    variables[variable] = known.get(value, value)
            if name == "ports.yaml":
                variables.update(self.listens(engine, 0))
            self.assertEqual(checked.problems(settings, variables), [], settings)
        self.assertIn("unknown setting", " ".join(checked.problems("[storage]\nuri = \"x\"\n", {})))
        self.assertIn("unknown", " ".join(checked.problems("", {"RINGER_STORAGE_URI": "x"})))

    def listens(self, engine, number):
        """Returns the variables that the start of engine `number` sets, with the program replaced by `env`."""
        container = engine["template"]["spec"]["containers"][0]
        script = container["args"][0].replace("exec /usr/bin/ringer", "exec env - LISTEN=\"$RINGER_SIP_LISTEN\" PORTS=\"$RINGER_SIP_RTP_PORTS\" env #")
        said = house.run(*container["command"], script, env=house.environment(ENGINE=str(number)))
        found = dict(line.split("=", 1) for line in said.stdout.splitlines())
        return {"RINGER_SIP_LISTEN": found["LISTEN"], "RINGER_SIP_RTP_PORTS": found["PORTS"]}

    def test_each_engine_listens_where_its_node_ports_are(self):
        objects = rendered(os.path.join(os.path.dirname(VALUES[0]), "ports.yaml"))
        engine = of_kind(objects, "StatefulSet")[0]
        services = [found for found in of_kind(objects, "Service") if found["spec"].get("type") == "NodePort"]
        self.assertEqual(len(services), 3)
        seen = set()
        for number, service in enumerate(services):
            pod = service["spec"]["selector"]["statefulset.kubernetes.io/pod-name"]
            self.assertEqual(pod, f"{engine['metadata']['name']}-{number}")
            said = self.listens(engine["spec"], number)
            ports = {(port["nodePort"], port["protocol"]) for port in service["spec"]["ports"]}
            self.assertEqual({port["port"] for port in service["spec"]["ports"]}, {port for port, _ in ports})
            first, last = (int(text) for text in said["RINGER_SIP_RTP_PORTS"].split("-"))
            sip = int(said["RINGER_SIP_LISTEN"].split(",")[0].rsplit(":", 1)[1])
            expected = {(port, "UDP") for port in range(first, last + 1)} | {(sip, "UDP"), (sip, "TCP")}
            self.assertEqual(ports, expected)
            self.assertTrue(all(30000 <= port <= 32767 for port, _ in ports))
            self.assertFalse(seen & ports)
            seen |= ports

    def test_commands_and_paths_are_those_of_the_program(self):
        free = checked.free_paths()
        self.assertIn("/health", free)
        for _, objects, engine in self.each():
            container = engine["template"]["spec"]["containers"][0]
            for kind in ["startupProbe", "livenessProbe", "readinessProbe"]:
                path = container[kind]["httpGet"]["path"]
                self.assertTrue(path in free, path)
            stop = container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", [])
            for words in re.findall(r"\bringer ((?:[a-z]+ ?)+)", " ".join(stop)):
                self.assertTrue(checked.is_command(*words.split()), words)
            grace = engine["template"]["spec"]["terminationGracePeriodSeconds"]
            self.assertEqual(grace, 960)

    def test_scaling_and_monitoring_can_be_switched(self):
        found = {name: {item["kind"] for item in objects} for name, objects, _ in self.each()}
        self.assertEqual(found["pods.yaml"] & {"PodDisruptionBudget", "HorizontalPodAutoscaler", "ServiceAccount", *FOREIGN}, set())
        self.assertTrue({"PodDisruptionBudget", "HorizontalPodAutoscaler", *FOREIGN} <= found["cluster.yaml"])
        for name, objects, engine in self.each():
            scaled = of_kind(objects, "HorizontalPodAutoscaler")
            self.assertEqual("replicas" in engine, not scaled, name)
            for item in scaled:
                self.assertEqual(item["spec"]["scaleTargetRef"]["name"], of_kind(objects, "StatefulSet")[0]["metadata"]["name"])


class Started(unittest.TestCase):
    """The container of a pod, started in the image's root as the chart says."""

    def test_it_starts_answers_its_probes_and_stops(self):
        made = image.made()
        objects = rendered(os.path.join(os.path.dirname(VALUES[0]), "default.yaml"))
        container = of_kind(objects, "StatefulSet")[0]["spec"]["template"]["spec"]["containers"][0]
        api, sip = house.free_ports(2)
        settings = {"RINGER_BOOTSTRAP_KEY": checked.STAND_IN}
        for entry in container["env"]:
            text = entry.get("value", "127.0.0.1").replace("$(POD_NAME)", "calls-ringer-0").replace("$(POD_IP)", "127.0.0.1")
            settings[entry["name"]] = text.replace("0.0.0.0:8080", f"127.0.0.1:{api}").replace("0.0.0.0:5060", f"127.0.0.1:{sip}")
        with tempfile.TemporaryDirectory() as folder:
            os.chmod(folder, 0o755)
            with open(os.path.join(folder, "ringer.toml"), "w", encoding="utf-8") as file:
                file.write(of_kind(objects, "ConfigMap")[0]["data"]["ringer.toml"])
            command = made.command("/usr/bin/ringer", *container["args"], files=folder, **settings)
            process = subprocess.Popen(command, env=house.environment(), text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT)
            try:
                house.await_answer(process, api)
                for kind in ["startupProbe", "livenessProbe", "readinessProbe"]:
                    path = container[kind]["httpGet"]["path"]
                    status = house.ask(api, path)
                    self.assertTrue(status == 200, f"{path}: {status}")
                self.check_stop(made, process, container, api, settings)
            finally:
                process.terminate()
                said, _ = process.communicate(timeout=house.PATIENCE)
        self.assertEqual(process.returncode, 0, said)
        unknown = [line for line in said.splitlines() if "unknown" in line]
        self.assertEqual(unknown, [])

    def check_stop(self, made, process, container, api, settings):
        """Runs what comes before the signal beside the engine: from then on it is not ready, and well."""
        command = container["lifecycle"]["preStop"]["exec"]["command"]
        said = house.run(*made.beside(process.pid, *command, **settings))
        self.assertIn("calls-ringer-0", said.stdout)
        self.assertEqual((house.ask(api, container["readinessProbe"]["httpGet"]["path"]), house.ask(api, "/health")), (503, 200))


class Secrets(unittest.TestCase):
    """Nothing that looks like a secret gets into the chart's values."""

    def test_every_secret_setting_of_the_program_is_refused(self):
        names = set()
        for path in glob.glob(os.path.join(house.ROOT, "src", "base", "config", "**", "*.rs"), recursive=True) + [
                os.path.join(house.ROOT, "src", "base", "config.rs")]:
            with open(path, encoding="utf-8") as file:
                names.update(re.findall(r'from\.secrets?\("([a-z_.0-9]+)"', file.read()))
        self.assertGreater(len(names), 12)
        names |= {"sip.trunks.a.password", "language_model.api_key", "language_models.careful.api_key", "adapters.P11.client_secret",
                  "websocket.dialects.desk.signing_key", "websocket.dialects.desk.headers.Authorization",
                  "websocket.dialects.desk.headers.X-API-Key", "storage.options.aws_secret_access_key"}
        for name in sorted(names):
            setting = name if "." in name else f"security.{name}"
            said = refused("--set-string", f"settings.{setting}=something")
            self.assertTrue(said, f"{name} is taken")
            self.assertIn("values don't meet the specifications of the schema", said)

    def test_what_looks_like_a_secret_is_refused_under_any_name(self):
        for place in ["settings.language_model.base_url", "publicUrl", "storage.endpoint", "bus.url", "podAnnotations.note", "image.tag"]:
            for value in [f"https://user:{house.PLANTED[5]}@host/", "sk-0123456789abcdef0123", "eyJhbGciOiJIUzI1NiJ9.eyJ",
                          f"https://host/?token={house.PLANTED[5]}", "Bearer 0123456789", "-----BEGIN PRIVATE KEY-----"]:
                said = refused("--set-string", f"{place}={value}")
                self.assertTrue(said and "of the schema" in said, f"{place}={value} is taken")

    def test_secrets_are_named_and_not_given(self):
        for place in ["secrets.database.url", "secrets.database.value", "secrets.sealing", "password", "apiKey", "env.RINGER_SECRET_KEY"]:
            self.assertTrue(refused("--set-string", f"{place}=something"), place)
        self.assertIsNone(refused("--set-string", "secrets.database.name=calls", "--set-string", "settings.sip.dtmf=info"))

    def test_values_that_do_not_go_together_are_refused(self):
        shared = ["--set", "secrets.database.name=a,secrets.sealing.name=b"]
        for more, why in [
            (["--set", "replicas=2"], "share one PostgreSQL database"),
            ([*shared, "--set", "autoscaling.enabled=true,autoscaling.minReplicas=9"], "above autoscaling.maxReplicas"),
            ([*shared, "--set", "autoscaling.enabled=true,autoscaling.kind=external"], "would be that of all releases"),
            (["--set", "media.rtpPorts.first=30000"], "not below"),
            (["--set", "media.network=cloud"], "media"),
            (["--set", "drain.secnods=3"], "drain"),
            (["--set", "secrets.bus.name=a,secrets.busCredentials.name=b"], "one of them"),
        ]:
            self.assertIn(why, refused(*more) or "it is taken", more)

    def test_the_packed_chart_has_nothing_that_lies_beside_it(self):
        with tempfile.TemporaryDirectory() as folder:
            copy = os.path.join(folder, "ringer")
            shutil.copytree(CHART, copy)
            for place in [".env", "prod.env", "server.key", "templates/server.pem"]:
                with open(os.path.join(copy, place), "w", encoding="ascii") as file:
                    file.write(house.PLANTED[5])
            checked.tool("helm", "package", copy, "--destination", folder)
            with tarfile.open(house.file_in(folder, "ringer-", ".tgz")) as tar:
                files = {entry.name: tar.extractfile(entry).read() for entry in tar.getmembers() if entry.isfile()}
        self.assertIn("ringer/values.schema.json", files)
        for name, content in files.items():
            for secret in house.PLANTED:
                self.assertFalse(secret.encode() in content, name)

    def test_versions_are_those_of_the_program(self):
        with open(os.path.join(CHART, "Chart.yaml"), encoding="utf-8") as file:
            chart = yaml.safe_load(file)
        self.assertEqual(f"ringer {chart['appVersion']}\n", house.run(house.PROGRAM, "--version").stdout)


if __name__ == "__main__":
    unittest.main()
