"""An assistant with the official client of the Model Context Protocol: a plan as JSON on standard input, what it saw as JSON.

The plan: `url` with `headers`, or `command` with `args` and `env`; `mode` (auto, legacy); `answer` to every question
(accept, decline, cancel; absent: it cannot ask); `steps`: ["tools"], ["resources"], ["templates"], ["call", NAME, ARGUMENTS],
["resource", URI]. A text "$STEP.NAME" in arguments is a value of an earlier call, `{STEP.NAME}` in a URI too.
"""

import asyncio
import json
import re
import sys

import httpx2
from mcp import Client, StdioServerParameters, types
from mcp.client.streamable_http import streamable_http_client


def filled(value, seen):
    """Returns a value with those of earlier steps in it."""
    if isinstance(value, dict):
        return {name: filled(one, seen) for name, one in value.items()}
    if not isinstance(value, str):
        return value
    step, _, path = value[1:].partition(".")
    if value.startswith("$") and step.isdigit():
        found = seen[int(step)]["value"]
        for name in path.split("."):
            found = found[int(name)] if name.isdigit() else found[name]
        return found
    return re.sub(r"\{(\d+\.[\w.]+)\}", lambda match: str(filled("$" + match[1], seen)), value)


async def step(client, what, seen):
    """Performs one step, and returns what was seen."""
    told = []

    async def progress(done, total, message):
        told.append([done, total, message])

    if what[0] == "tools":
        return {"tools": [tool.model_dump(mode="json", by_alias=True) for tool in (await client.list_tools()).tools]}
    if what[0] == "resources":
        return {"uris": [str(one.uri) for one in (await client.list_resources()).resources]}
    if what[0] == "templates":
        found = (await client.list_resource_templates()).resource_templates
        return {"templates": [[one.uri_template, one.description] for one in found]}
    if what[0] == "resource":
        found = (await client.read_resource(filled(what[1], seen))).contents[0]
        return found.model_dump(mode="json", by_alias=True)
    result = await client.call_tool(what[1], filled(what[2], seen), progress_callback=progress)
    texts = [one.text for one in result.content if one.type == "text"]
    return {"error": result.is_error, "text": "\n".join(texts), "value": result.structured_content, "progress": told}


def reason(error):
    """Returns an error as text; that of a group is its first."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


async def run(plan):
    """Carries out a plan."""
    seen, asked = [], []

    async def answer(context, params):
        asked.append(params.message)
        content = {} if plan["answer"] == "accept" else None
        return types.ElicitResult(action=plan["answer"], content=content)

    options = {"mode": plan.get("mode", "auto"), "elicitation_callback": answer if plan.get("answer") else None}
    async with httpx2.AsyncClient(headers=plan.get("headers", {}), timeout=120) as http:
        if "url" in plan:
            server = streamable_http_client(plan["url"], http_client=http)
        else:
            server = StdioServerParameters(command=plan["command"], args=plan["args"], env=plan["env"], cwd=plan["cwd"])
        try:
            async with Client(server, **options) as client:
                for what in plan["steps"]:
                    try:
                        seen.append(await step(client, what, seen))
                    except Exception as error:
                        seen.append({"raised": reason(error)})
        except BaseException as error:
            return {"seen": seen, "asked": asked, "raised": reason(error)}
    return {"seen": seen, "asked": asked}


print(json.dumps(asyncio.run(run(json.load(sys.stdin)))))
