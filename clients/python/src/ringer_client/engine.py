"""The program `ringer`, and engines that it runs for tests."""

from __future__ import annotations

import os
import queue
import re
import secrets
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import EngineError, ProgramMissing

if TYPE_CHECKING:
    from .client import AsyncClient, Client

# Seconds in which an engine is ready, and in which it has ended.
READY_S = 60.0
ENDED_S = 30.0
# Settings of this process that would change an engine of a test.
NOT_INHERITED = ("RINGER_API_KEY", "RINGER_BOOTSTRAP_KEY", "RINGER_CONFIG", "RINGER_DATABASE_URL", "RINGER_SERVER_LISTEN",
                 "RINGER_SERVER_PUBLIC_URL", "RINGER_SIP_LISTEN")
READY = re.compile(r"ringer is ready: API (http://\S+?)(?: .*?)?, SIP (\S+?)/")


def find_program(named: str | None = None) -> str:
    """Returns the path of `ringer`: the one that is named, RINGER_PROGRAM, the one beside this Python, or one of PATH."""
    asked = named or os.environ.get("RINGER_PROGRAM")
    if asked:
        found = shutil.which(asked)
        if not found:
            raise ProgramMissing(f"{asked} is no program that can be run; `pip install ringer-engine` brings `ringer`")
        return os.path.abspath(found)
    beside = os.path.join(os.path.dirname(sys.executable), "ringer")
    found = shutil.which(beside) or shutil.which("ringer")
    if not found:
        raise ProgramMissing("the program `ringer` is not found, neither beside this Python nor in PATH: "
                             "`pip install ringer-engine`, or name it in RINGER_PROGRAM")
    return found


def free_ports(count: int) -> list[int]:
    """Returns ports of TCP and UDP on loopback that nobody used a moment ago."""
    kept: list[socket.socket] = []
    ports: list[int] = []
    try:
        while len(ports) < count:
            stream, datagram = socket.socket(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            kept += [stream, datagram]
            stream.bind(("127.0.0.1", 0))
            try:
                datagram.bind(stream.getsockname())
            except OSError:
                continue
            ports.append(stream.getsockname()[1])
    finally:
        for one in kept:
            one.close()
    return ports


class Engine:
    """An engine: one that `start` runs in this machine's loopback, or one at an address. Its `repr` has no key."""

    def __init__(self, base_url: str, api_key: str, process: subprocess.Popen[str] | None = None, sip: str | None = None,
                 log: Path | None = None) -> None:
        self.base_url = base_url
        self.api_key = api_key
        self.sip = sip
        self.log = log
        self._process = process
        self._reader: threading.Thread | None = None
        self._clients: list[Client] = []

    def __repr__(self) -> str:
        return f"Engine({self.base_url!r})"

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @classmethod
    def start(cls, folder: str | os.PathLike[str], *, program: str | None = None, flags: list[str] | None = None,
              settings: dict[str, str] | None = None) -> Engine:
        """Starts `ringer up` on free ports, with data below `folder`; returns when it answers.

        `flags` are further ones of `ringer up`, `settings` variables of its environment. The engine calls agents on loopback.
        """
        folder = Path(folder).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        key = secrets.token_hex(24)
        plain = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
        env = {**plain, "RINGER_SECURITY_ALLOW_PRIVATE_AGENTS": "true", "RINGER_SECURITY_ALLOW_PRIVATE_TARGETS": "true",
               **(settings or {}), "RINGER_BOOTSTRAP_KEY": key}
        command = [find_program(program), "up", "--data", str(folder / "data"), "--listen", "127.0.0.1:0", "--sip",
                   "127.0.0.1:0", "--no-page-link", *(flags or [])]
        process = subprocess.Popen(command, cwd=folder, env=env, text=True, errors="replace", stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        engine = cls("", key, process, log=folder / "engine.log")
        try:
            engine._await_ready()
        except BaseException:
            engine.stop()
            raise
        return engine

    def client(self, **options: Any) -> Client:
        """Returns a client, which ends with the engine."""
        from .client import Client

        client = Client(self.base_url, self.api_key, **options)
        self._clients.append(client)
        return client

    def async_client(self, **options: Any) -> AsyncClient:
        """Returns a client whose operations are awaited; whoever asks for it closes it."""
        from .client import AsyncClient

        return AsyncClient(self.base_url, self.api_key, **options)

    def stop(self) -> None:
        """Ends the engine that `start` has started, and the clients of it."""
        while self._clients:
            self._clients.pop().close()
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(ENDED_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._reader is not None:
            self._reader.join(ENDED_S)
        self._process = None

    def _await_ready(self) -> None:
        lines: queue.Queue[str | None] = queue.Queue()
        kept = (self._process, self.log, lines)
        self._reader = threading.Thread(target=keep, args=kept, name="ringer engine", daemon=True)
        self._reader.start()
        end = time.monotonic() + READY_S
        said: list[str] = []
        while True:
            try:
                line = lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise EngineError(f"the engine was not ready within {READY_S:.0f} s: see {self.log}") from None
            if line is None:
                raise EngineError("the engine ended before it was ready: " + "".join(said[-5:]).strip())
            said.append(line)
            found = READY.search(line)
            if found:
                self.base_url, self.sip = found.groups()
                return


def keep(process: subprocess.Popen[str], path: Path, lines: queue.Queue[str | None]) -> None:
    """Writes what an engine prints into its log, and tells each line, until it ends; `None` is told last."""
    assert process.stdout is not None
    with process.stdout as printed, open(path, "w", encoding="utf-8") as log:
        for line in printed:
            log.write(line)
            log.flush()
            lines.put(line)
    lines.put(None)
