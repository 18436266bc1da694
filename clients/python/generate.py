#!/usr/bin/env python3
"""Makes operations and models from the OpenAPI document: `generate.py DOCUMENT OUT`.

openapi-python-client writes `api` and `models`, which are changed so that Python 3.9 runs them. `operations.py` has a method
for each operation, once to call and once to await.
"""

import ast
import json
import os
import re
import subprocess
import sys
import tempfile

METHODS = ["get", "put", "post", "delete", "patch"]
# Types that a method may name without an import of a model.
PLAIN = {"Any", "None", "UUID", "Unset", "UNSET", "File", "bool", "bytes", "datetime", "dict", "float", "int", "list", "str"}
HEAD = '''"""A method for each operation of the API, by its tag. Made from the OpenAPI document."""

from __future__ import annotations

import datetime
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any
from uuid import UUID

from .types import UNSET, Event, File, Unset

if TYPE_CHECKING:
    from .client import AsyncClient, Client
    from .models import (
{models}
    )

'''


class BadDocument(Exception):
    """A document of which the generator makes no whole client."""


def generate(document, out):
    """Writes the code below `out`; returns the names of what it has written there."""
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "config.yaml")
        with open(config, "w", encoding="ascii") as file:
            # The code is not formatted: nobody edits it.
            file.write("post_hooks: []\n")
        made = os.path.join(folder, "made")
        asked = subprocess.run(
            [sys.executable, "-m", "openapi_python_client", "generate", "--path", document, "--output-path", made,
             "--meta", "none", "--config", config], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        if asked.returncode != 0 or "will not be generated" in asked.stdout or "Unable to" in asked.stdout:
            raise BadDocument(f"openapi-python-client ended with {asked.returncode}:\n{asked.stdout}")
        for name in ["api", "models"]:
            for place, _, files in os.walk(os.path.join(made, name)):
                for one in files:
                    adapt(os.path.join(place, one))
            os.rename(os.path.join(made, name), os.path.join(out, name))
    with open(document, encoding="utf-8") as file:
        text = operations(json.load(file), os.path.join(out, "api"))
    with open(os.path.join(out, "operations.py"), "w", encoding="utf-8") as file:
        file.write(text)
    return ["api", "models", "operations.py"]


def adapt(path):
    """Changes a generated module so that Python 3.9 runs it: no unions, enumerations or times of later versions."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if path.endswith("__init__.py"):
        return
    text = quote_casts(text)
    text = text.replace("datetime.datetime.fromisoformat(", "parse_time(")
    dots = "..." if f"{os.sep}api{os.sep}" in path else ".."
    if "parse_time(" in text:
        text = f"from {dots}types import parse_time\n{text}"
    text = text.replace("from enum import StrEnum\n", f"from {dots}types import StrEnum\n")
    text = "from __future__ import annotations\n" + text.replace("from __future__ import annotations\n", "")
    ast.parse(text, filename=path, feature_version=(3, 9))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def quote_casts(text):
    """Returns a module whose casts name their types as texts, which are not evaluated."""
    lines = text.encode().splitlines(keepends=True)
    casts = [node.args[0] for node in ast.walk(ast.parse(text))
             if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "cast"]
    for node in sorted(casts, key=lambda node: (node.lineno, node.col_offset), reverse=True):
        if isinstance(node, ast.Constant):
            continue
        if node.lineno != node.end_lineno:
            raise BadDocument(f"a cast over several lines: {ast.unparse(node)}")
        line = lines[node.lineno - 1]
        named = json.dumps(ast.unparse(node)).encode()
        lines[node.lineno - 1] = line[:node.col_offset] + named + line[node.end_col_offset:]
    return b"".join(lines).decode()


def operations(document, api):
    """Returns the source of `operations.py`."""
    tags, models = {}, set()
    for path in document["paths"].values():
        for method in METHODS:
            if method in path:
                operation = path[method]
                name, tag = snake(operation["operationId"]), snake(operation["tags"][0])
                place = os.path.join(api, tag, f"{name}.py")
                if not os.path.exists(place):
                    raise BadDocument(f"{operation['operationId']} has no module {tag}/{name}.py")
                tags.setdefault(tag, {})[name] = Operation(name, tag, operation, place)
    made = sum(len(named) for named in tags.values())
    found = sum(not one.startswith("__") for _, _, files in os.walk(api) for one in files if one.endswith(".py"))
    if made != found:
        raise BadDocument(f"{found} modules for {made} operations")
    parts = []
    for is_async in [False, True]:
        for tag, named in sorted(tags.items()):
            parts.append(f"\nclass {class_of(tag, is_async)}:\n    \"\"\"Operations of {tag.replace('_', ' ')}.\"\"\"\n\n"
                         f"    def __init__(self, client: {client(is_async)}) -> None:\n        self._client = client\n\n"
                         + "\n".join(operation.source(is_async) for _, operation in sorted(named.items())))
        attributes = "".join(f"        self.{tag} = {class_of(tag, is_async)}(client)\n" for tag in sorted(tags))
        parts.append(f"\nclass {'AsyncOperations' if is_async else 'Operations'}:\n    \"\"\"All operations, by tag.\"\"\"\n\n"
                     f"    def bind(self, client: {client(is_async)}) -> None:\n"
                     f"        \"\"\"Gives every operation the client that sends it.\"\"\"\n{attributes}")
    for named in tags.values():
        for operation in named.values():
            models |= operation.models
    return HEAD.format(models="".join(f"        {name},\n" for name in sorted(models)).rstrip("\n")) + "\n".join(parts)


def snake(name):
    """Returns a name as a name of a module: `Digital Humans` as `digital_humans`, `addAgent` as `add_agent`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.replace(" ", "_")).lower()


def class_of(tag, is_async):
    """Returns the name of the class of a tag."""
    words = "".join(word.capitalize() for word in tag.split("_"))
    return f"{'Async' if is_async else ''}{words}Operations"


def client(is_async):
    """Returns the name of the client's class."""
    return "AsyncClient" if is_async else "Client"


class Operation:
    """An operation, with the signature that the generator has made of it."""

    def __init__(self, name, tag, operation, place):
        self.name, self.tag = name, tag
        self.about = operation.get("summary") or operation["operationId"]
        with open(place, encoding="utf-8") as file:
            tree = ast.parse(file.read())
        functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        self.arguments = functions["_get_kwargs"].args
        self.returned = returned(operation, functions["_parse_response"].returns)
        self.is_stream = self.returned == "Event"
        named = {node.id for part in [self.arguments, ast.parse(self.returned, mode="eval")] for node in ast.walk(part)
                 if isinstance(node, ast.Name)}
        self.models = {name for name in named - PLAIN - {"Event"} if name[0].isupper()}

    def source(self, is_async):
        """Returns the method that calls it, or that is awaited."""
        taken = ast.unparse(self.arguments)
        passed = [f'"{self.tag}.{self.name}"']
        passed += [f"{one.arg}={one.arg}" for one in self.arguments.args + self.arguments.kwonlyargs]
        separator = ", " if taken else ""
        kind = "async def" if is_async and not self.is_stream else "def"
        answer = f"{'AsyncIterator' if is_async else 'Iterator'}[Event]" if self.is_stream else self.returned
        call = f"self._client.{'stream' if self.is_stream else 'call'}({', '.join(passed)})"
        wait = "await " if is_async and not self.is_stream else ""
        return (f"    {kind} {self.name}(self{separator}{taken}) -> {answer}:\n        \"\"\"{self.about}.\"\"\"\n"
                f"        return {wait}{call}\n")


def returned(operation, union):
    """Returns the type of a successful answer, as text."""
    good = {code: answer for code, answer in operation["responses"].items() if code.startswith("2")}
    kinds = {kind for answer in good.values() for kind in answer.get("content", {})}
    if not kinds:
        return "None"
    if "text/event-stream" in kinds:
        return "Event"
    refusals = {answer["content"]["application/json"]["schema"].get("$ref", "").rsplit("/", 1)[-1]
                for code, answer in operation["responses"].items()
                if code not in good and "application/json" in answer.get("content", {})}
    plain = sorted({"str" if re.match("text/|application/(xml|openmetrics)", kind) else "bytes"
                    for kind in kinds if kind != "application/json"})
    parts = members(union)
    typed = [part for part in parts if part not in {"None", "File", *refusals}] if "application/json" in kinds else []
    if any(not answer.get("content") for answer in good.values()):
        typed = ["None" if part == "Any" else part for part in typed]
    if "application/json" in kinds and not typed:
        raise BadDocument(f"{operation['operationId']}: no type of its answer among {parts}")
    return " | ".join(dict.fromkeys([*typed, *plain]))


def members(union):
    """Returns the parts of a union as texts."""
    if isinstance(union, ast.BinOp):
        return members(union.left) + members(union.right)
    return [ast.unparse(union)]


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("generate.py DOCUMENT OUT")
    os.makedirs(sys.argv[2], exist_ok=True)
    generate(*sys.argv[1:])
