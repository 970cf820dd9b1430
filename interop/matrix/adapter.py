"""The contract between the runner and an adapter, which README.md describes."""

import os
import queue
import shutil
import signal
import subprocess
import threading
import time
import tomllib
from pathlib import Path
from typing import NamedTuple, TextIO

from features import Answer

UNSUPPORTED = 127
MOST_LINES = 1000  # that wait to be read; an adapter that prints more is held up
LONGEST_LINE = 4 << 20  # characters; an answer of 1 MiB has two for each byte
MOST_ERRORS = 1 << 20  # characters of an adapter's standard error in the log


class AdapterError(Exception):
    """An adapter that does not keep the contract; its text is shown in the matrix."""


class Unsupported(Exception):
    """An adapter without this scheme or call."""


class Limits(NamedTuple):
    """How long the runner waits, in seconds."""

    start: float = 30.0  # until an adapter must say `ready`
    request: float = 8.0  # for a request that does not set its own
    more: float = 5.0  # beyond that, until the adapter must have said so


class Endpoint(NamedTuple):
    """Where the server is."""

    scheme: str
    host: str
    port: int

    def uri(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


class Adapter(NamedTuple):
    """An entry of adapters.toml."""

    name: str
    title: str
    extensions: frozenset[str]
    server: list[str]
    client: list[str]
    image: str | None

    def program(self, role: str, endpoint: Endpoint, settings: dict[str, str], log: TextIO, limits: Limits) -> "Program":
        """Starts the adapter as `server` or `client`, and waits until it is ready."""
        environment = settings | {
            "INTEROP_ROLE": role, "INTEROP_SCHEME": endpoint.scheme, "INTEROP_HOST": endpoint.host,
            "INTEROP_PORT": str(endpoint.port), "INTEROP_URI": endpoint.uri(),
        }
        if self.image:
            return Container(self.image, environment, log, limits)
        places = {"host": endpoint.host, "port": endpoint.port, "scheme": endpoint.scheme, "uri": endpoint.uri()}
        command = [word.format(**places) for word in (self.server if role == "server" else self.client)]
        return Program(command, environment, log, limits)


def read_adapters(file: Path, target: Path) -> dict[str, Adapter]:
    """The entries of a file. A ValueError names the file, the entry and what is wrong with it."""
    places = {name: f"{{{name}}}" for name in ("host", "port", "scheme", "uri")}
    adapters = {}
    try:
        entries = tomllib.loads(file.read_text())
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{file}: {error}") from error
    for name, entry in entries.items():
        if not isinstance(entry, dict):
            raise ValueError(f"{file}: {name} must be a table, [{name}]")
        unknown = set(entry) - {"title", "extensions", "server", "client", "image"}
        if unknown:
            raise ValueError(f"{file}, [{name}]: no key {', '.join(sorted(unknown))}; there are title, extensions, server, client, image")
        if ("image" in entry) == ("server" in entry and "client" in entry):
            raise ValueError(f"{file}, [{name}]: needs either `image`, or `server` and `client`")
        try:
            server, client = (
                [word.format(target=target, here=file.resolve().parent, **places) for word in entry.get(role, [])]
                for role in ("server", "client")
            )
        except (KeyError, IndexError, ValueError, AttributeError) as error:
            raise ValueError(f"{file}, [{name}]: a command is a list of texts, with {{target}}, {{here}}, "
                             f"{{{'}, {'.join(places)}}} as the only places") from error
        adapters[name] = Adapter(name, entry.get("title", name), frozenset(entry.get("extensions", [])), server, client, entry.get("image"))
    return adapters


class Program:
    """An adapter that runs. Its lines are read by a thread, so that a wait can end."""

    def __init__(self, command: list[str], environment: dict[str, str], log: TextIO, limits: Limits) -> None:
        self.lines: queue.Queue[str | None] = queue.Queue(MOST_LINES)
        self.log, self.limits = log, limits
        self.stopped = threading.Event()
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                errors="replace", env=os.environ | environment, start_new_session=True,
            )
        except OSError as error:
            raise AdapterError(f"the adapter cannot be started: {error.strerror}") from error
        self.readers = [threading.Thread(target=each, daemon=True) for each in (self.read, self.read_errors)]
        for reader in self.readers:
            reader.start()
        deadline = time.monotonic() + limits.start
        while (line := self.line(deadline)) is not None:
            if line == "ready":
                return
        ended = self.process.poll() is not None or self.has_ended(0.2)
        code = self.stop()
        if ended and code == UNSUPPORTED:
            raise Unsupported("not supported")
        raise AdapterError(f"the adapter did not start (exit code {code})" if ended else
                           f"the adapter did not say `ready` within {limits.start:.0f} s")

    def put(self, line: str | None) -> bool:
        while not self.stopped.is_set():
            try:
                self.lines.put(line, timeout=0.2)
                return True
            except queue.Full:
                continue
        return False

    def read(self) -> None:
        assert self.process.stdout is not None
        while line := self.process.stdout.readline(LONGEST_LINE):
            if not self.put(line.rstrip("\n")) or (len(line) == LONGEST_LINE and not line.endswith("\n")):
                break
        self.put(None)

    def read_errors(self) -> None:
        assert self.process.stderr is not None
        left = MOST_ERRORS
        while text := self.process.stderr.readline(MOST_ERRORS):
            if left > 0 and not self.stopped.is_set():
                print(text[:left].rstrip("\n"), file=self.log)
            left -= len(text)

    def line(self, deadline: float) -> str | None:
        try:
            return self.lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            return None

    def ask(self, request: str, wait: float) -> list[Answer]:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(request + "\n")
            self.process.stdin.flush()
        except OSError as error:
            raise AdapterError("the client has ended") from error
        answers: list[Answer] = []
        deadline = time.monotonic() + wait + self.limits.more
        while (line := self.line(deadline)) != ".":
            if line is None:
                raise AdapterError("the client has ended" if self.has_ended(0.2) else "the client does not come back")
            print(f"  < {line[:200]}", file=self.log, flush=True)
            if len(answers) == MOST_LINES:
                raise AdapterError(f"the client printed more than {MOST_LINES} answers to one request")
            if answer := parsed(line):
                answers.append(answer)
        if unsupported := [answer for answer in answers if answer.code == "unsupported"]:
            raise Unsupported(unsupported[0].payload.decode())
        return answers or [Answer("error", {}, b"no answer")]

    def has_ended(self, wait: float) -> bool:
        try:
            self.process.wait(wait)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self) -> int | None:
        if self.process.poll() is None:
            self.kill()
            self.process.wait()
        self.stopped.set()
        for reader in self.readers:
            reader.join(1)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            try:
                pipe.close()
            except OSError:
                pass  # what was left to write to a program that has ended
        return self.process.returncode

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)


class Container(Program):
    """An adapter in a container image, which shares the network of the machine."""

    def __init__(self, image: str, environment: dict[str, str], log: TextIO, limits: Limits) -> None:
        self.engine = os.environ.get("INTEROP_ENGINE") or ("docker" if shutil.which("docker") else "podman")
        self.name = f"interop-{os.getpid()}-{time.monotonic_ns()}"
        command = [self.engine, "run", "--rm", "--interactive", "--network", "host", "--name", self.name]
        for name in sorted(environment):
            command += ["--env", name]
        if folder := environment.get("INTEROP_CERTIFICATES"):
            command += ["--volume", f"{folder}:{folder}:ro"]
        super().__init__([*command, image], environment, log, limits)

    def kill(self) -> None:
        # The death of the engine's command would leave the container.
        subprocess.run([self.engine, "kill", self.name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=30, check=False)
        super().kill()


def parsed(line: str) -> Answer | None:
    """An answer of the contract; nothing for lines that libraries print for people."""
    kind, _, rest = line.partition(" ")
    if kind in ("unsupported", "error"):
        return Answer(kind, {}, rest.encode())
    words = line.split(" ")
    if len(words) != 3:
        return None
    code, options, payload = words
    held = {}
    try:
        for option in options.split(",") if options != "-" else []:
            number, _, value = option.partition(":")
            held[int(number)] = bytes.fromhex(value)
        return Answer(code, held, bytes.fromhex(payload) if payload != "-" else b"")
    except ValueError as error:
        raise AdapterError(f"the client printed a line that is no answer: {line[:60]!r}") from error
