"""Ringer: a client of its API, engines to test with, and suites that are run.

`Client(base_url, api_key)` calls, `AsyncClient` is awaited. Models of requests and answers are in `ringer_client.models`. The
plugin of pytest is `ringer_client.pytest_plugin`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .engine import Engine
from .errors import (
    ApiError,
    BadAnswer,
    BadSuite,
    EngineError,
    NotTested,
    ProgramMissing,
    RingerError,
    Unreachable,
)
from .suites import Call, Run, Scenario, run_suites

if TYPE_CHECKING:
    from .client import AsyncClient, Client

__all__ = [
    "ApiError",
    "AsyncClient",
    "BadAnswer",
    "BadSuite",
    "Call",
    "Client",
    "Engine",
    "EngineError",
    "NotTested",
    "ProgramMissing",
    "RingerError",
    "Run",
    "Scenario",
    "Unreachable",
    "run_suites",
]


def __getattr__(name: str) -> Any:
    """Returns a client, whose modules are read at its first use: a test run that only runs suites needs none of them."""
    if name in ("AsyncClient", "Client"):
        from . import client

        return getattr(client, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
