"""What the tests of packages share: the program, a root of Debian to install into, packages that are made once."""

import atexit
import http.client
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TARGET = os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target")
PROGRAM = os.path.abspath(os.environ.get("RINGER_PROGRAM") or os.path.join(TARGET, "debug", "ringer"))
DEBIAN = os.path.abspath(os.path.join(TARGET, "packaging", "root"))
PACK = os.path.join(ROOT, "packaging", "pack.py")
sys.path.insert(0, os.path.dirname(PACK))

# The time in seconds in which everything must have happened.
PATIENCE = 60
# Values that stand for secrets; none of them may be in anything that is built.
PLANTED = [f"planted-{name}-4c1f0b7e" for name in ["environment", "dotenv", "data-key", "settings", "home", "chart"]]

AS_ROOT = [] if os.geteuid() == 0 else ["sudo"]
made = {}


def environment(**more):
    """Returns an environment with what a machine may have in its own, secrets among it, but no settings of a test run."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("RINGER_")}
    return {**plain, "XDG_DATA_HOME": "/nonexistent", **more}


def run(*command, check=True, cwd=None, env=None, timeout=PATIENCE):
    """Runs a command to its end; returns it with all that it printed in `stdout`. A failure shows what was printed."""
    ended = subprocess.run(command, cwd=cwd, env=env or environment(), timeout=timeout, text=True, errors="replace",
                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if check and ended.returncode != 0:
        raise AssertionError(f"{' '.join(command)} ended with {ended.returncode}:\n{ended.stdout}")
    return ended


def packed(*kinds, version=None):
    """Returns the folder with packages of the program, made once a version; the folder is shared by all tests."""
    if "folder" not in made:
        made["folder"] = tempfile.TemporaryDirectory(prefix="ringer-packages-")
        atexit.register(made["folder"].cleanup)
    missing = [kind for kind in kinds if (kind, version) not in made]
    if missing:
        named = ["--version", version] if version else []
        secrets = {"RINGER_SECRET_KEY": PLANTED[0], "RINGER_DATABASE_URL": f"postgres://u:{PLANTED[0]}@h/n"}
        with tempfile.TemporaryDirectory() as beside:
            for place, secret in [(".env", 1), ("secret.key", 2), ("ringer.toml", 3), (".pypirc", 4)]:
                with open(os.path.join(beside, place), "w", encoding="ascii") as file:
                    file.write(PLANTED[secret])
            run(PACK, PROGRAM, "--out", made["folder"].name, "--level", "1", *named, *missing, cwd=beside,
                env=environment(**secrets, HOME=beside, CARGO_HOME=os.environ.get("CARGO_HOME", os.path.expanduser("~/.cargo")),
                                RUSTUP_HOME=os.environ.get("RUSTUP_HOME", os.path.expanduser("~/.rustup"))))
        made.update(((kind, version), True) for kind in missing)
    return made["folder"].name


def file_in(folder, beginning, end):
    """Returns the path of the one file of a folder with this beginning and end."""
    found = [name for name in os.listdir(folder) if name.startswith(beginning) and name.endswith(end)]
    assert len(found) == 1, f"{beginning}*{end}: {found} of {sorted(os.listdir(folder))}"
    return os.path.join(folder, found[0])


def free_ports(count):
    """Returns ports of TCP and UDP that nobody used a moment ago."""
    kept, ports = [], []
    while len(ports) < count:
        stream = socket.socket()
        stream.bind(("127.0.0.1", 0))
        datagram = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        kept.extend([stream, datagram])
        try:
            datagram.bind(stream.getsockname())
            ports.append(stream.getsockname()[1])
        except OSError:
            continue
    for one in kept:
        one.close()
    return ports


def ask(port, path, key=None):
    """Returns the status of a GET on this machine; 0: nobody answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path, headers={"X-API-Key": key} if key else {})
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def await_answer(process, port, path="/health"):
    """Waits until a process answers; fails at once where it has ended."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if process.poll() is not None:
            raise AssertionError(f"it ended with {process.returncode}: {process.stdout.read()}")
        status = ask(port, path)
        if status:
            assert status == 200, f"{path} answers {status}"
            return
        time.sleep(0.05)
    raise AssertionError(f"nothing answers at port {port} within {PATIENCE} s")


class Debian:
    """A copy of a Debian 12, in which commands run as in a machine of its own; it shares network and processes."""

    def __init__(self):
        assert os.path.exists(f"{DEBIAN}.complete"), f"{DEBIAN} is not there: run tests/packaging/root.sh {DEBIAN}"
        self.folder = tempfile.mkdtemp(prefix="ringer-debian-", dir=os.path.dirname(DEBIAN))
        self.path = os.path.join(self.folder, "root")
        run(*AS_ROOT, "cp", "-a", DEBIAN, self.path)

    def close(self):
        """Removes the copy."""
        run(*AS_ROOT, "rm", "-rf", self.folder)
        shutil.rmtree(self.folder, ignore_errors=True)

    def command(self, *words):
        """Returns the command that runs `words` in it, with the environment of a bare machine."""
        bare = ["env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND=noninteractive", "LC_ALL=C.UTF-8"]
        return [*AS_ROOT, "chroot", self.path, *bare, *words]

    def run(self, *words, check=True, timeout=PATIENCE):
        """Runs a command in it to its end."""
        return run(*self.command(*words), check=check, timeout=timeout)

    def says(self, *words):
        """Returns what a command in it prints, without white space around it."""
        return self.run(*words).stdout.strip()

    def has(self, path):
        """True if there is a file or folder at this path in it."""
        return self.run("test", "-e", path, check=False).returncode == 0

    def bring(self, source, target):
        """Copies a file of this machine into it."""
        run(*AS_ROOT, "cp", source, self.path + target)
