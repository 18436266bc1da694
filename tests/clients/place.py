"""What the tests of the clients share: folders, the tools, and how a program is run to its end."""

import os
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TARGET = os.path.abspath(os.environ.get("CARGO_TARGET_DIR") or os.path.join(ROOT, "target"))
TOOLS = os.path.join(TARGET, "clients")
HERE = os.path.join(ROOT, "tests", "clients")
PROGRAM = os.path.abspath(os.environ.get("RINGER_PROGRAM") or os.path.join(TARGET, "debug", "ringer"))
DOCUMENT = os.path.join(ROOT, "fixtures", "api", "openapi.json")
# Seconds in which everything must have ended.
PATIENCE = 240


def environment(**more):
    """Returns the environment of this process without settings of a test run, and with `more`."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("RINGER_", "PYTEST_", "AGENT_PORT"))}
    return {**plain, "XDG_DATA_HOME": "/nonexistent", "RINGER_PROGRAM": PROGRAM, **more}


def start(*command, cwd=None, env=None):
    """Starts a program; what it prints is kept together."""
    return subprocess.Popen(command, cwd=cwd, env=env or environment(), text=True, errors="replace", stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def ended(process):
    """Returns exit code and output of a program that was started."""
    try:
        printed, _ = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        printed, _ = process.communicate()
        raise AssertionError(f"{' '.join(process.args)} did not end within {PATIENCE} s:\n{printed}") from None
    return process.returncode, printed


def run(*command, cwd=None, env=None):
    """Returns what a program prints, which must succeed."""
    code, printed = ended(start(*command, cwd=cwd, env=env))
    assert code == 0, f"{' '.join(command)} ended with {code}:\n{printed}"
    return printed
