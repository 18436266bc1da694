"""Types that operations and models share."""

from __future__ import annotations

import datetime
import enum
import re
import sys
from collections.abc import MutableMapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, BinaryIO, Generic, List, Optional, Tuple, TypeVar, Union

from attrs import define


class Unset:
    """A value that is not sent."""

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Unset = Unset()

if sys.version_info >= (3, 11):
    from enum import StrEnum
else:

    class StrEnum(str, enum.Enum):
        """Enumeration of texts, as Python has it from 3.11 on."""

        def __str__(self) -> str:
            return str(self.value)


FileTypes = Tuple[Optional[str], Union[BinaryIO, bytes], Optional[str]]
RequestFiles = List[Tuple[str, FileTypes]]


@define
class File:
    """A file that is sent."""

    payload: BinaryIO
    file_name: str | None = None
    mime_type: str | None = None

    def to_tuple(self) -> FileTypes:
        """Returns it as httpx takes it."""
        return self.file_name, self.payload, self.mime_type


T = TypeVar("T")


@define
class Response(Generic[T]):
    """An answer of an operation with its status and headers."""

    status_code: HTTPStatus
    content: bytes
    headers: MutableMapping[str, str]
    parsed: T | None


@dataclass(frozen=True)
class Event:
    """A server-sent event: its name, its data (JSON where they are JSON, else text) and its id."""

    name: str
    data: Any
    id: str


TIME = re.compile(r"(\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)?")


def parse_time(text: str) -> datetime.datetime:
    """Returns a time of RFC 3339. Python before 3.11 reads neither `Z` nor decimals other than three or six."""
    found = TIME.fullmatch(text)
    if not found:
        raise ValueError(f"{text!r} is no time of RFC 3339")
    whole, decimals, zone = found.groups()
    part = f".{(decimals + '000000')[:6]}" if decimals else ""
    return datetime.datetime.fromisoformat(f"{whole}{part}{'+00:00' if zone in ('Z', 'z') else zone or ''}")
