"""Clients of the API: `Client` calls, `AsyncClient` is awaited. No request is sent twice."""

from __future__ import annotations

import importlib
import json
from collections.abc import AsyncIterator, Iterator
from types import ModuleType
from typing import Any

import httpx

from .errors import ApiError, BadAnswer
from .operations import AsyncOperations, Operations
from .types import Event, Unset

# Seconds until a request is given up.
TIMEOUT_S = 60.0


class Connection:
    """Address and key of an engine; modules in `api` take it too."""

    raise_on_unexpected_status = False

    def __init__(self, base_url: str, api_key: str, *, timeout: float = TIMEOUT_S, headers: dict[str, str] | None = None,
                 verify: Any = True) -> None:
        self.base_url = base_url.rstrip("/")
        self._options = {"base_url": self.base_url, "headers": {**(headers or {}), "X-API-Key": api_key}, "timeout": timeout,
                         "verify": verify}
        self._sync: httpx.Client | None = None
        self._async: httpx.AsyncClient | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_url!r})"

    def get_httpx_client(self) -> httpx.Client:
        """Returns what sends requests."""
        if self._sync is None:
            self._sync = httpx.Client(**self._options)
        return self._sync

    def get_async_httpx_client(self) -> httpx.AsyncClient:
        """Returns what sends requests that are awaited."""
        if self._async is None:
            self._async = httpx.AsyncClient(**self._options)
        return self._async


class Client(Connection, Operations):
    """Client of an engine: `Client(base_url, api_key).agents.list_agents()`. Threads may share it."""

    def __init__(self, base_url: str, api_key: str, **options: Any) -> None:
        super().__init__(base_url, api_key, **options)
        self.bind(self)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        if self._sync is not None:
            self._sync.close()

    def call(self, name: str, /, **arguments: Any) -> Any:
        """Calls an operation, `tag.name`; returns its answer. Raises `ApiError` where it is refused."""
        operation = module(name)
        response = self.get_httpx_client().request(**request_of(operation, arguments))
        moved = moved_to(response)
        if moved:
            response = httpx.get(moved, timeout=self._options["timeout"], verify=self._options["verify"])
        return answer(self, name, operation, response)

    def stream(self, name: str, /, **arguments: Any) -> Iterator[Event]:
        """Returns the events of an operation until the engine ends them. Raises `ApiError` where it is refused."""
        request = {**request_of(module(name), arguments), "timeout": httpx.Timeout(self._options["timeout"], read=None)}
        with self.get_httpx_client().stream(**request) as response:
            if response.status_code != 200:
                response.read()
                raise refusal(name, response)
            parts = EventParts()
            for line in response.iter_lines():
                yield from parts.take(line)


class AsyncClient(Connection, AsyncOperations):
    """Client of an engine whose operations are awaited: `await AsyncClient(base_url, api_key).agents.list_agents()`."""

    def __init__(self, base_url: str, api_key: str, **options: Any) -> None:
        super().__init__(base_url, api_key, **options)
        self.bind(self)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections."""
        if self._async is not None:
            await self._async.aclose()

    async def call(self, name: str, /, **arguments: Any) -> Any:
        """Calls an operation, `tag.name`; returns its answer. Raises `ApiError` where it is refused."""
        operation = module(name)
        response = await self.get_async_httpx_client().request(**request_of(operation, arguments))
        moved = moved_to(response)
        if moved:
            async with httpx.AsyncClient(timeout=self._options["timeout"], verify=self._options["verify"]) as other:
                response = await other.get(moved)
        return answer(self, name, operation, response)

    async def stream(self, name: str, /, **arguments: Any) -> AsyncIterator[Event]:
        """Returns the events of an operation until the engine ends them. Raises `ApiError` where it is refused."""
        request = {**request_of(module(name), arguments), "timeout": httpx.Timeout(self._options["timeout"], read=None)}
        async with self.get_async_httpx_client().stream(**request) as response:
            if response.status_code != 200:
                await response.aread()
                raise refusal(name, response)
            parts = EventParts()
            async for line in response.aiter_lines():
                for event in parts.take(line):
                    yield event


# The names under which modules in `api` know it.
AuthenticatedClient = Connection


def module(name: str) -> ModuleType:
    """Returns the module of an operation."""
    return importlib.import_module(f"{__package__}.api.{name}")


def request_of(operation: ModuleType, arguments: dict[str, Any]) -> dict[str, Any]:
    """Returns a request as httpx takes it; a body that is left out is none."""
    request = operation._get_kwargs(**arguments)
    if isinstance(request.get("json"), Unset):
        del request["json"]
        request["headers"].pop("Content-Type", None)
    return request


def moved_to(response: httpx.Response) -> str | None:
    """Returns the address of a file in an object store, which is asked without the key."""
    return response.headers.get("location") if response.status_code == 307 else None


def answer(client: Connection, name: str, operation: ModuleType, response: httpx.Response) -> Any:
    """Returns the answer of an operation: a model, text, bytes or nothing. Raises `ApiError` where it is refused."""
    if not response.is_success:
        raise refusal(name, response)
    if response.status_code == 204:
        return None
    kind = response.headers.get("content-type", "").split(";")[0].strip()
    if kind != "application/json":
        is_text = kind.startswith("text/") or kind in ("application/xml", "application/openmetrics-text", "application/x-ndjson")
        return response.text if is_text else response.content
    try:
        return operation._parse_response(client=client, response=response)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadAnswer(f"{name}: the answer is not as the API describes it: {type(error).__name__}: {error}") from error


def refusal(name: str, response: httpx.Response) -> ApiError:
    """Returns the error for an answer that is no success."""
    try:
        body = response.json()
    except ValueError:
        body = response.text or response.reason_phrase
    detail = body.get("detail", body) if isinstance(body, dict) else body
    return ApiError(name.split(".", 1)[1], response.status_code, detail)


class EventParts:
    """Lines of a stream of server-sent events, of which events are made."""

    def __init__(self) -> None:
        self.name, self.id = "", ""
        self.lines: list[str] = []

    def take(self, line: str) -> list[Event]:
        """Takes a line without its end; returns the event that it completes."""
        if not line:
            text, name = "\n".join(self.lines), self.name
            is_event, self.name, self.lines = bool(self.lines), "", []
            return [Event(name or "message", data(text), self.id)] if is_event else []
        field, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if field == "event":
            self.name = value
        elif field == "data":
            self.lines.append(value)
        elif field == "id":
            self.id = value
        return []


def data(text: str) -> Any:
    """Returns the data of an event: JSON where they are JSON, else the text."""
    try:
        return json.loads(text)
    except ValueError:
        return text
