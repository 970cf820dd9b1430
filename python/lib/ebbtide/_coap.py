"""Blocking CoAP: a client, and a server on a thread of its own."""

from __future__ import annotations

import logging
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias
from urllib.parse import urlsplit

from ebbtide import _ebbtide
from ebbtide._ebbtide import Response, Subject
from ebbtide._oscore import OscoreContext, parameters_of

Method: TypeAlias = Literal["GET", "POST", "PUT", "DELETE", "FETCH", "PATCH", "iPATCH"]
METHODS: tuple[Method, ...] = ("GET", "POST", "PUT", "DELETE", "FETCH", "PATCH", "iPATCH")

_log = logging.getLogger("ebbtide")

CONTENT_FORMAT = 12
URI_QUERY = 15
MAX_AGE = 14
ETAG = 4


#: The default ports of RFC 7252 section 6 and RFC 8323 section 8.
PORTS = {"coap": 5683, "coaps": 5684, "coap+tcp": 5683, "coaps+tcp": 5684}
PORTS |= {"coap+ws": 80, "coaps+ws": 443}

#: The keys of a server's clients by identity: a table, or a function that returns None for an
#: identity that it does not know.
Keys: TypeAlias = "Mapping[str | bytes, str | bytes] | Callable[[bytes], bytes | str | None]"

#: One context of OSCORE, or several, each of them for another peer.
OscoreContexts: TypeAlias = "OscoreContext | Sequence[OscoreContext] | None"


def settings_of(
    control: str | None = None,
    nstart: int | None = None,
    busy_poll: float = 0.0,
    ca: bytes | str | None = None,
    insecure: bool = False,
    certificate: bytes | str | None = None,
    key: bytes | str | None = None,
    identity: str | bytes | None = None,
    psk: str | bytes | None = None,
    cid: bool | int = True,
    oscore: OscoreContexts = None,
    oscore_required: bool = False,
    raw_key: bytes | str | None = None,
    peer_keys: bytes | str | None = None,
) -> dict[str, object]:
    """Return settings as the native half takes them."""
    if control is not None and not isinstance(control, str):
        takes = "a name; controls written in Python run in the testbed only"
        raise TypeError(f"control: takes {takes}, not {type(control).__name__}")
    if not isinstance(cid, int) or (cid is not True and not 0 <= cid <= 8):
        raise ValueError(f"cid: takes True, False, or a length from 0 to 8 bytes, not {cid!r}")
    if (identity is None) != (psk is None):
        missing = "psk" if psk is None else "identity"
        raise ValueError(f"{missing}: identity and psk belong together")
    raw = {name: one for name, one in (("raw_key", raw_key), ("peer_keys", peer_keys)) if one}
    if raw and (certificate is not None or ca is not None):
        raise ValueError(f"{next(iter(raw))}: raw public keys take the place of certificates")
    credentials = None
    if identity is not None and psk is not None:
        credentials = (bytes_of(identity, "identity"), bytes_of(psk, "psk"))
    security = {
        "ca": None if ca is None else bytes_of(ca, "ca"),
        "insecure": insecure,
        "certificate": None if certificate is None else bytes_of(certificate, "certificate"),
        "key": None if key is None else bytes_of(key, "key"),
        "raw_key": None if raw_key is None else bytes_of(raw_key, "raw_key"),
        "peer_keys": None if peer_keys is None else bytes_of(peer_keys, "peer_keys").decode(),
        "credentials": credentials,
        "cid": cid,
        "oscore": parameters_of(oscore),
        "oscore_required": oscore_required,
    }
    return {
        "control": control,
        "nstart": nstart,
        "busy_poll": float(busy_poll),
        "security": security,
    }


RawKeys: TypeAlias = "tuple[bytes | str | None, bytes | str | None]"


def raw_keys_of(raw_key: bytes | str | None, peer_keys: bytes | str | None) -> RawKeys:
    """Return a client's raw key and those that it trusts."""
    if raw_key is not None and peer_keys is None:
        raise ValueError("raw_key: peer_keys, the servers that are trusted, belongs to it")
    return raw_key, peer_keys


def keys_of(psk: Keys | None) -> dict[bytes, bytes] | Callable[[bytes], bytes | None] | None:
    """Return the keys of clients as the native half takes them."""
    if psk is None:
        return None
    if isinstance(psk, Mapping):
        return {bytes_of(name, "psk"): bytes_of(key, "psk") for name, key in psk.items()}
    if not callable(psk):
        takes = "a dict of identities and keys, or a function from an identity to a key"
        raise TypeError(f"psk: takes {takes}, not {type(psk).__name__}")

    def look_up(identity: bytes) -> bytes | None:
        try:
            key = psk(identity)
            return None if key is None else bytes_of(key, "psk")
        except Exception:
            _log.exception("psk: the function failed, so %r is not known", identity)
            return None

    return look_up


def bytes_of(payload: bytes | bytearray | memoryview | str, name: str = "payload") -> bytes:
    """Return an argument's bytes; text as UTF-8. Raises TypeError for anything else."""
    if isinstance(payload, bytes):
        return payload
    if isinstance(payload, str):
        return payload.encode()
    if isinstance(payload, (bytearray, memoryview)):
        return bytes(payload)
    raise TypeError(f"{name}: takes bytes or text, not {type(payload).__name__}")


def how_of(how: Mapping[str, Any]) -> dict[str, object] | None:
    """Return how a request is sent, as the native half takes it; None for the usual way."""
    if not how:
        return None
    known: dict[str, object] = {
        "options": [],
        "format": None,
        "accept": None,
        "confirmable": True,
        "timeout": None,
        "block_size": None,
        "q_block": False,
    }
    for name, value in how.items():
        if name not in known:
            raise TypeError(f"'{name}' is not one of {', '.join(known)}")
        known[name] = str(value) if name in ("format", "accept") and value is not None else value
    return known


class Client:
    """A CoAP client that waits for each answer.

    It may be used by any number of threads at once; all share sockets, connections and what
    congestion control has learnt. In a forked process it begins anew, with sockets of its own. They
    close with :meth:`close`, at the end of a ``with`` statement, or with the last reference.

    ``control``: congestion control as ``--cc`` has it, such as ``"ebb"`` (the default).
    ``nstart``: how many exchanges with one peer may be open at once (RFC 7252 section 4.7),
    default 1. ``busy_poll``: seconds that a socket goes on asking for datagrams before it sleeps.
    For ``coaps``: ``identity`` and ``psk``, the pre-shared key (text or bytes, a key of at most 64
    bytes), and ``cid``: the length of this endpoint's connection IDs (RFC 9146), 0 to 8 bytes; True
    for the default, False to do without them. For ``coaps+tcp`` and ``coaps+ws``, and for ``coaps``
    if there is no ``psk``: ``ca`` (PEM) instead of the system's authorities, ``insecure`` to trust
    anybody, ``certificate`` and ``key`` (PEM) of our own; ``coaps`` needs a key on the curve P-256.
    For ``coaps`` with raw public keys (RFC 7250) instead of certificates: ``peer_keys``, those of
    the servers that are trusted, as PEM or lines of fingerprints (``ni:///sha-256;...``), and
    ``raw_key``, a private key (PEM) of our own.
    ``oscore``: a context, or several, that protect all requests end to end
    (:class:`OscoreContext`); a forked process needs a client with contexts of its own.

    Raises ValueError for settings that are not possible.
    """

    def __init__(
        self,
        *,
        control: str | None = None,
        nstart: int | None = None,
        busy_poll: float = 0.0,
        ca: bytes | str | None = None,
        insecure: bool = False,
        certificate: bytes | str | None = None,
        key: bytes | str | None = None,
        identity: str | bytes | None = None,
        psk: str | bytes | None = None,
        cid: bool | int = True,
        oscore: OscoreContexts = None,
        raw_key: bytes | str | None = None,
        peer_keys: bytes | str | None = None,
    ) -> None:
        tls = (ca, insecure, certificate, key)
        dtls = (identity, psk, cid)
        raw = raw_keys_of(raw_key, peer_keys)
        settings = settings_of(control, nstart, busy_poll, *tls, *dtls, oscore, False, *raw)
        self._native = _ebbtide.Client(settings)

    def request(self, method: Method, uri: str, payload: bytes | str = b"", **how: Any) -> Response:
        """Send a request and wait for its response.

        ``how``: ``format`` and ``accept`` (names such as ``"application/json"`` or numbers),
        ``timeout`` (seconds, all retransmissions and blocks included; by default the message layer
        decides), ``confirmable=False``, ``block_size`` (bytes), ``q_block=True`` (RFC 9177), and
        ``options``, pairs of number and bytes.

        A response with an error code is not an exception: see ``Response.is_success``.

        Raises ValueError for what is not possible, TimeoutError (NoAnswer) if nothing answers,
        ConnectionRefusedError if no program listens at that port, ConnectionError otherwise (such
        as ConnectionLost if the server does not know the key), and OSError if a name has no
        address.
        """
        return self._native.request(method, uri, bytes_of(payload), how_of(how))

    def get(self, uri: str, **how: Any) -> Response:
        """Send a GET; see :meth:`request`."""
        return self._native.request("GET", uri, b"", how_of(how))

    def put(self, uri: str, payload: bytes | str = b"", **how: Any) -> Response:
        """Send a PUT; see :meth:`request`."""
        return self.request("PUT", uri, payload, **how)

    def post(self, uri: str, payload: bytes | str = b"", **how: Any) -> Response:
        """Send a POST; see :meth:`request`."""
        return self.request("POST", uri, payload, **how)

    def delete(self, uri: str, **how: Any) -> Response:
        """Send a DELETE; see :meth:`request`."""
        return self.request("DELETE", uri, **how)

    def fetch(self, uri: str, payload: bytes | str = b"", **how: Any) -> Response:
        """Send a FETCH (RFC 8132); see :meth:`request`."""
        return self.request("FETCH", uri, payload, **how)

    def observe(self, uri: str, **how: Any) -> Observation:
        """Observe a resource (RFC 7641): iterate over its states, now and whenever it changes."""
        return Observation(self._native.observe("GET", uri, b"", how_of(how)))

    def ping(self, uri: str) -> float | None:
        """Send a CoAP ping, and return the round trip in seconds, if the answer gave one."""
        return self._native.ping(uri)

    def close(self) -> None:
        """Close its sockets and connections once the open requests have ended."""
        self._native.close()

    def __enter__(self) -> Client:
        """Return self."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()


class Observation:
    """An observed resource: an iterator over its states."""

    def __init__(self, native: _ebbtide.Observation) -> None:
        self._native = native

    def __iter__(self) -> Iterator[Response]:
        """Return self."""
        return self

    def __next__(self) -> Response:
        """Wait for the next state. The iteration ends when the server ends the observation."""
        state = self._native.next()
        if state is None:
            raise StopIteration
        return state

    def __enter__(self) -> Observation:
        """Return self."""
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.close()

    def close(self) -> None:
        """End it: the server learns of that with its next notification."""
        self._native.close()


_shared: Client | None = None
_sharing = threading.Lock()


def shared() -> Client:
    """Return the client that :func:`get`, :func:`put` and :func:`post` use."""
    global _shared
    with _sharing:
        if _shared is None:
            _shared = Client()
        return _shared


def get(uri: str, **how: Any) -> Response:
    """Send a GET and wait; see :meth:`Client.request`."""
    return shared().get(uri, **how)


def put(uri: str, payload: bytes | str = b"", **how: Any) -> Response:
    """Send a PUT and wait; see :meth:`Client.request`."""
    return shared().put(uri, payload, **how)


def post(uri: str, payload: bytes | str = b"", **how: Any) -> Response:
    """Send a POST and wait; see :meth:`Client.request`."""
    return shared().post(uri, payload, **how)


@dataclass(frozen=True)
class Reply:
    """The response of a handler: a code, a payload, options."""

    #: None for that of success: 2.05 of GET and FETCH, 2.04 of the others.
    code: str | None = None
    payload: bytes = b""
    options: list[tuple[int, bytes]] = field(default_factory=list)


def uint(value: int) -> bytes:
    """Return an option's value of an unsigned integer (RFC 7252 section 3.2)."""
    return value.to_bytes((value.bit_length() + 7) // 8, "big")


def reply(
    payload: bytes | str = b"",
    *,
    code: str | None = None,
    format: int | None = None,
    max_age: int | None = None,
    etag: bytes | None = None,
    options: Sequence[tuple[int, bytes]] = (),
) -> Reply:
    """Return the response of a handler.

    ``code`` such as ``"4.04"``, None for success; ``format`` a number of a content format;
    ``max_age`` seconds; ``etag`` 1 to 8 bytes; ``options`` pairs of number and bytes.
    """
    extra = list(options)
    if format is not None:
        extra.append((CONTENT_FORMAT, uint(format)))
    if max_age is not None:
        extra.append((MAX_AGE, uint(max_age)))
    if etag is not None:
        extra.append((ETAG, etag))
    return Reply(code, bytes_of(payload), extra)


class Call:
    """A request as a handler sees it."""

    __slots__ = ("_native",)

    def __init__(self, native: _ebbtide.Incoming) -> None:
        self._native = native

    @property
    def method(self) -> str:
        """The method, such as ``"GET"``."""
        return self._native.method

    @property
    def payload(self) -> bytes:
        """The payload; of a block-wise transfer the whole body."""
        return self._native.payload

    @property
    def text(self) -> str:
        """The payload as text; what is not UTF-8 is replaced."""
        return self._native.payload.decode(errors="replace")

    @property
    def remote(self) -> tuple[str, int]:
        """The client's address and port."""
        return self._native.remote

    @property
    def identity(self) -> bytes | None:
        """Whom the client has proved to be: by its pre-shared key, or by its certificate."""
        return self._native.identity

    @property
    def options(self) -> list[tuple[int, bytes]]:
        """The options: number and value."""
        return self._native.options

    @property
    def query(self) -> dict[str, str]:
        """The arguments of the query; one without a value has an empty one."""
        found = (v.decode(errors="replace") for n, v in self.options if n == URI_QUERY)
        return {name: value for name, _, value in (one.partition("=") for one in found)}

    def param(self, name: str) -> str:
        """Return the segment that stood for ``{name}`` in the route. Raises KeyError for others."""
        value = self._native.param(name)
        if value is None:
            raise KeyError(name)
        return value


#: What a handler may give: a payload, a reply with code and options, or nothing, an empty success.
Answer: TypeAlias = "Reply | bytes | str | None"
#: A function or a coroutine function.
Handler: TypeAlias = "Callable[[Call], Answer | Awaitable[Answer]]"


@dataclass
class Resource:
    """A resource: its handlers by method, and what ``/.well-known/core`` says of it."""

    path: str
    handlers: dict[str, Handler] = field(default_factory=dict)
    attributes: list[tuple[str, str]] = field(default_factory=list)
    subject: Subject | None = None

    def changed(self) -> None:
        """Notify every observer with the present response of the GET handler.

        Raises ValueError if the resource is not observable.
        """
        if self.subject is None:
            raise ValueError(f"{self.path}: is not observable; say so where it is routed")
        self.subject.changed()


class Router:
    """The resources of a server, by path.

    A segment ``{name}`` stands for any one segment, a last one ``{*name}`` for any number.
    """

    def __init__(self) -> None:
        self.resources: dict[str, Resource] = {}

    def resource(
        self,
        path: str,
        *,
        observable: bool = False,
        confirmable: bool = True,
        attributes: Mapping[str, str] | None = None,
    ) -> Resource:
        """Return the resource at a path, made if need be.

        ``observable``: clients may observe it. ``confirmable``: whether notifications are.
        ``attributes``: for ``/.well-known/core``, such as ``{"rt": "temperature"}``.
        """
        resource = self.resources.setdefault(path, Resource(path))
        if observable and resource.subject is None:
            resource.subject = Subject(confirmable)
        resource.attributes += list((attributes or {}).items())
        return resource

    def route(
        self, path: str, *methods: Method, observable: bool = False
    ) -> Callable[[Handler], Handler]:
        """Decorate a handler, a function or a coroutine function, of these methods (GET).

        Raises ValueError for a method that does not exist.
        """
        for method in methods:
            if method not in METHODS:
                raise ValueError(f"method: '{method}' is not one of {', '.join(METHODS)}")

        def add(handler: Handler) -> Handler:
            resource = self.resource(path, observable=observable)
            for method in methods or ("GET",):
                resource.handlers[method] = handler
            return handler

        return add


def address_of(bind: str) -> tuple[str, str, int]:
    """Parse an address: ``"127.0.0.1:5683"``, ``"[::]:5683"``, ``"coap+tcp://..."``.

    Raises ValueError for what is not one.
    """
    scheme, _, rest = bind.rpartition("://")
    try:
        parts = urlsplit(f"//{rest}")
        if not parts.hostname or parts.path:
            raise ValueError
        port = parts.port if parts.port is not None else PORTS.get(scheme or "coap", 5683)
    except ValueError:
        example = "'127.0.0.1:5683' or 'coap+tcp://[::]:5683'"
        raise ValueError(f"bind: '{bind}' is not an address such as {example}") from None
    return scheme or "coap", parts.hostname, port
