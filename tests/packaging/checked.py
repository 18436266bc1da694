"""What the checks of container, compose file and chart share: the tools, and what the program says of settings."""

import os
import re
import tempfile

import house

TOOLS = os.path.abspath(os.environ.get("RINGER_CHART_TOOLS") or os.path.join(house.TARGET, "packaging", "tools"))
# Stands for the value of a secret that a Secret or the environment brings: long enough for every kind.
STAND_IN = "stand-in-0123456789-0123456789-0123456789"


def tool(name, *words, **more):
    """Runs a tool that Go built; returns what `house.run` does."""
    return house.run(os.path.join(TOOLS, "bin", name), *words, **more)


def installed(name, *words, **more):
    """Runs a tool that pip installed."""
    path = os.path.join(TOOLS, "venv", "bin")
    env = house.environment(PATH=f"{path}:{os.environ['PATH']}")
    return house.run(os.path.join(path, name), *words, env=env, **more)


def value_of(variable):
    """Returns a value that the program takes for a variable whose value is a secret."""
    return f"postgres://ringer:{STAND_IN}@postgres/ringer" if variable.endswith("DATABASE_URL") else STAND_IN


def problems(settings, variables):
    """Returns what the program says against a settings file and variables of the environment; empty: it takes them."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml", encoding="utf-8") as file:
        file.write(settings)
        file.flush()
        said = house.run(house.PROGRAM, "config", "check", "--config", file.name, check=False,
                         env=house.environment(RINGER_LOG="off", **variables))
    lines = [line for line in said.stdout.splitlines() if not line.startswith("The settings are good")]
    assert lines or said.returncode == 0, said.stdout
    return [line for line in lines if re.search("unknown|must|refused|missing|cannot|is no|is not|needs|set ", line)]


def is_command(*words):
    """True if the program has this command."""
    return house.run(house.PROGRAM, *words, "--help", check=False).returncode == 0


def free_paths():
    """Returns the paths that the program's own description of its API lets everybody GET."""
    import json

    document = json.loads(house.run(house.PROGRAM, "openapi").stdout)
    return {path for path, operations in document["paths"].items() if "get" in operations and not operations["get"].get("security")}
