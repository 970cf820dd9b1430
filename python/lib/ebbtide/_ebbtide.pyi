"""The native half of the package; see the modules that use it."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, final

VERSION: str

class EbbtideError(Exception): ...
class ProtocolError(EbbtideError): ...
class TooLargeError(EbbtideError): ...
class RunError(RuntimeError): ...
class NoAnswer(TimeoutError): ...
class ResetError(ConnectionError): ...
class ConnectionLost(ConnectionError): ...

_Figures = tuple[str, str, str | None, int]
_Work = Sequence[tuple[Sequence[tuple[str, str]], str, Sequence[int]]]
_How = Mapping[str, object]

@final
class Cancel:
    def __new__(cls) -> Cancel: ...
    def cancel(self) -> None: ...
    @property
    def finished(self) -> int: ...

@final
class Plan:
    def __new__(
        cls,
        place: str,
        text: str,
        axes: Sequence[tuple[str, Sequence[str]]],
        cc: Sequence[str],
        controls: Sequence[PythonControl],
        reps: int | None = None,
        seed: int | None = None,
    ) -> Plan: ...
    @staticmethod
    def of_papers(
        papers: Sequence[str], reps: int | None = None, seed: int | None = None
    ) -> Plan: ...
    @staticmethod
    def of_folder(folder: str | PathLike[str], controls: Sequence[PythonControl]) -> Plan: ...
    def with_reps(self, reps: Sequence[int]) -> Plan: ...
    def with_options(self, percentile: int, exchanges: bool) -> Plan: ...
    @property
    def place(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def seed(self) -> int: ...
    @property
    def runs(self) -> int: ...
    @property
    def command(self) -> str: ...
    @property
    def papers(self) -> list[str]: ...
    def swept(self) -> list[str]: ...
    def cells(self) -> list[tuple[str, list[tuple[str, str]], int, int]]: ...
    def replay_command(self, cell: int, replication: int) -> str: ...
    def manifest(self) -> str: ...
    def save_manifest(self, folder: str | PathLike[str]) -> None: ...
    def missing(self, folder: str | PathLike[str]) -> list[tuple[int, int]]: ...
    def keys(self) -> list[list[str]]: ...
    def run(
        self,
        folder: str | PathLike[str],
        jobs: int | None = None,
        shard: tuple[int, int] | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> _Figures: ...
    def read(self, folder: str | PathLike[str], jobs: int | None = None) -> _Figures: ...
    def compact(self, folder: str | PathLike[str], most_rows: int) -> int: ...
    def differing(self, one: str | PathLike[str], other: str | PathLike[str]) -> list[str]: ...
    def replay(
        self,
        cell: int,
        replication: int,
        trace: str | PathLike[str] | None = None,
        pcap: str | PathLike[str] | None = None,
    ) -> None: ...

def run_chunk(
    scenario: tuple[str, str],
    seed: int,
    work: _Work,
    controls: Sequence[PythonControl],
    folder: str | PathLike[str],
    cancel: Cancel | None = None,
) -> tuple[list[str], list[tuple[str, str, int, str, str]], float]: ...
def scenario_of_name(name: str) -> tuple[str, str]: ...
def scenario_of_json(place: str, json: str) -> str: ...
def scenarios() -> list[tuple[str, str, list[str]]]: ...
def controls() -> list[tuple[str, str, str]]: ...
def quantity(text: str) -> tuple[float, str] | None: ...
def fit(path: str | PathLike[str], port: int, taken_at: str | None, name: str) -> str: ...

@final
class MapPlan:
    def __new__(
        cls,
        preset: str,
        ranges: Sequence[str],
        cc: Sequence[str],
        against: Sequence[str] | None,
        draw: tuple[int, int, int, int | None],
        controls: Sequence[PythonControl],
    ) -> MapPlan: ...
    def run(
        self,
        folder: str | PathLike[str] | None = None,
        within: float | None = None,
        jobs: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> tuple[str, str]: ...

@final
class PythonControl:
    def __new__(
        cls,
        build: Callable[[Sequence[tuple[str, str]]], object],
        name: str,
        keys: Sequence[tuple[str, str]],
        version: str,
        methods: Sequence[str],
        marking: str,
    ) -> PythonControl: ...

@final
class Context:
    """The arguments common to all calls to a control."""

    @property
    def now(self) -> float:
        """The time of the call, s since the simulation began."""

    @property
    def ack_timeout(self) -> float:
        """ACK_TIMEOUT as it applies to this control, s."""

    @property
    def ack_random_factor(self) -> float:
        """ACK_RANDOM_FACTOR."""

    @property
    def max_retransmit(self) -> int:
        """MAX_RETRANSMIT."""

    @property
    def nstart(self) -> int:
        """NSTART as it applies to this control."""

    @staticmethod
    def uniform(low: float, high: float) -> float:
        """Draw a number of seconds from ``low`` to ``high``, both included.

        Raises ValueError for numbers below 0, RuntimeError outside of a call.
        """

@final
class Slot:
    """The state of one exchange, kept from one transmission to the next."""

    @property
    def armed(self) -> float:
        """The timeout that was armed last, s; 0 before the first transmission."""
    base: float
    """The timeout of the original transmission, or the base of the series, s: yours to define."""
    tag: int
    """A number from 0 to 255 that the control defines."""

@final
class Transmission:
    """A transmission that is about to leave."""

    @property
    def kind(self) -> str:
        """``"message"``, ``"probe"`` (a CoAP ping) or ``"unprobed"``, for which none may leave."""

    @property
    def ordinal(self) -> int:
        """0 for the original, 1 for the first retransmission; probes have a count of their own."""

    @property
    def beside(self) -> int:
        """The number of other Confirmable exchanges that are open with the peer."""

    @property
    def remaining(self) -> float:
        """The seconds within which copies of the message may still leave (EXCHANGE_LIFETIME)."""

@final
class OutgoingMessage:
    """A message that is ready to leave and asks for admission."""

    @property
    def confirmable(self) -> bool:
        """Whether it is Confirmable and therefore opens an exchange."""

    @property
    def bytes(self) -> int:
        """Its length, CoAP header included."""

@final
class Load:
    """The traffic that is under way when a message asks for admission."""

    @property
    def open(self) -> int:
        """Open Confirmable exchanges."""

    @property
    def last_non(self) -> float | None:
        """When the last Non-confirmable message left, s; None if none has."""

    @property
    def nons_since_con(self) -> int:
        """Non-confirmable messages since the last Confirmable one."""

    @property
    def unanswered_bytes(self) -> int:
        """Bytes of Non-confirmable messages since the peer last responded."""

    @property
    def unanswered_since(self) -> float | None:
        """When the first of these bytes left, s."""

    @property
    def probes(self) -> int:
        """Unanswered probes for the message that asks."""

@final
class Sample:
    """The measurements of an acknowledgement; all times end when it arrives."""

    @property
    def since_first(self) -> float:
        """The time since the original transmission, s."""

    @property
    def since_last(self) -> float:
        """The time since the last transmission, s."""

    @property
    def transmissions(self) -> int:
        """Transmissions, at least 1."""

    @property
    def retransmissions(self) -> int:
        """Retransmissions: one less."""

    @property
    def answered(self) -> tuple[int, float] | None:
        """The ordinal of the transmission that was answered and the time since, if a mark tells."""

@final
class ProbeReply:
    """The measurements of an answer to a probe."""

    @property
    def since(self) -> float:
        """The time since the probe left, s."""

    @property
    def since_last(self) -> float:
        """The time since the last transmission of the message, s; 0 before the first one."""

    @property
    def transmissions(self) -> int:
        """Transmissions of the message; 0 if it waits for admission."""

@final
class Response:
    """A response: what a client receives. A response with an error code is not an exception.

    It can be pickled, and made for tests: ``Response("2.05", b"21.5")``.
    """

    def __new__(
        cls, code: str, payload: bytes = b"", options: Sequence[tuple[int, bytes]] = ()
    ) -> Response: ...
    @property
    def code(self) -> str:
        """The code, such as ``"2.05"``."""

    @property
    def is_success(self) -> bool:
        """Whether the code is of class 2."""

    @property
    def payload(self) -> bytes:
        """The payload; after a block-wise transfer the whole body."""

    @property
    def text(self) -> str:
        """The payload as text; what is not UTF-8 is replaced."""

    @property
    def content_format(self) -> int | None:
        """The number of the payload's format, if the response has one."""

    @property
    def options(self) -> list[tuple[int, bytes]]:
        """The options: number and value."""

    def json(self) -> Any:
        """Read the payload as JSON. Raises ``json.JSONDecodeError`` if it is not JSON."""

@final
class Call:
    def cancel(self) -> None: ...

@final
class Queue:
    def __new__(cls) -> Queue: ...
    def fileno(self) -> int: ...
    def take(self) -> list[Incoming]: ...

@final
class Observation:
    def next(self) -> Response | None: ...
    def submit_next(self, queue: Queue, future: object) -> Call: ...
    def close(self) -> None: ...

@final
class Client:
    def __new__(cls, settings: Mapping[str, object]) -> Client: ...
    def request(
        self, method: str, uri: str, payload: bytes, how: _How | None = None
    ) -> Response: ...
    def submit(
        self,
        queue: Queue,
        future: object,
        method: str,
        uri: str,
        payload: bytes,
        how: _How | None = None,
    ) -> Call: ...
    def ping(self, uri: str) -> float | None: ...
    def submit_ping(self, queue: Queue, future: object, uri: str) -> Call: ...
    def observe(
        self, method: str, uri: str, payload: bytes, how: _How | None = None
    ) -> Observation: ...
    def open_exchanges(self) -> int: ...
    def close(self) -> None: ...

@final
class Subject:
    """Whom to tell when a resource changes (RFC 7641)."""

    def __new__(cls, confirmable: bool = True) -> Subject: ...
    def changed(self) -> None:
        """Say that the state changed: every observer is sent what the GET handler then says."""

    @property
    def observers(self) -> int:
        """How many observe it."""

@final
class Incoming:
    @property
    def route(self) -> int: ...
    @property
    def method(self) -> str: ...
    @property
    def remote(self) -> tuple[str, int]: ...
    @property
    def payload(self) -> bytes: ...
    @property
    def identity(self) -> bytes | None: ...
    @property
    def options(self) -> list[tuple[int, bytes]]: ...
    def param(self, name: str) -> str | None: ...
    def reply(self, code: str, payload: bytes, options: Sequence[tuple[int, bytes]]) -> None: ...

@final
class Server:
    def __new__(
        cls,
        queue: Queue,
        routes: Sequence[tuple[str, Sequence[str], Sequence[tuple[str, str]], Subject | None]],
        addresses: Sequence[tuple[str, str, int]],
        settings: Mapping[str, object],
        serving: Mapping[str, object],
        keys: Mapping[bytes, bytes] | Callable[[bytes], bytes | None] | None = None,
    ) -> Server: ...
    @property
    def addresses(self) -> list[tuple[str, str, int]]: ...
    def close(self) -> None: ...
