"""Errors of the client, of engines that it starts, and of suites that it runs."""

from __future__ import annotations

from typing import Any


class RingerError(Exception):
    """Every error of this package."""


class ApiError(RingerError):
    """An answer that refuses a request: HTTP status, and the detail that the engine gives."""

    def __init__(self, operation: str, status: int, detail: Any) -> None:
        super().__init__(f"{operation}: {status}: {told(detail)}")
        self.operation = operation
        self.status = status
        self.detail = detail


class BadAnswer(RingerError):
    """An answer that the document of the API does not describe."""


class UnexpectedStatus(RingerError):
    """A status that the document of the API does not describe."""

    def __init__(self, status_code: int, content: bytes) -> None:
        super().__init__(f"status {status_code}")
        self.status_code = status_code
        self.content = content


class NotTested(RingerError):
    """Nothing was tested: an error of a test run, and no failure of the agent."""


class ProgramMissing(NotTested):
    """The program `ringer` is not found."""


class BadSuite(NotTested):
    """A file, flag or setting that `ringer run` refuses."""


class Unreachable(NotTested):
    """The agent or the server was not reached, or refused the credentials."""


class EngineError(NotTested):
    """An engine or a run ended without what was asked of it."""


def told(detail: Any) -> str:
    """Returns a detail as a line: problems of fields with their places, else the text."""
    if isinstance(detail, list):
        return "; ".join(problem(one) for one in detail)
    return str(detail)


def problem(one: Any) -> str:
    """Returns a problem of a field as `body.name: must not be empty`."""
    if not isinstance(one, dict) or "msg" not in one:
        return str(one)
    place = ".".join(str(part) for part in one.get("loc", []))
    return f"{place}: {one['msg']}" if place else str(one["msg"])
