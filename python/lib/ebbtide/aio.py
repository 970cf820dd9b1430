"""CoAP for asyncio: a client with any number of requests under way, and a server.

::

    import asyncio
    from ebbtide import aio

    async def main():
        client = aio.Client()
        print((await client.get("coap://192.0.2.7/temperature")).text)
        async for state in client.observe("coap://192.0.2.7/temperature"):
            print(state.text)

    asyncio.run(main())
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from ebbtide import _ebbtide
from ebbtide._coap import (
    Answer,
    Call,
    Handler,
    Keys,
    Method,
    OscoreContexts,
    Reply,
    Router,
    address_of,
    bytes_of,
    how_of,
    keys_of,
    raw_keys_of,
    settings_of,
)
from ebbtide._ebbtide import Response
from ebbtide._scenario import count_of

__all__ = ["Client", "Observation", "Server"]

_log = logging.getLogger("ebbtide")

Dispatch = Callable[[_ebbtide.Incoming], None]


class _Bridge:
    """The events of the sockets' thread, which one loop takes when it is notified."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.queue = _ebbtide.Queue()
        self.dispatch: Dispatch | None = None
        loop.add_reader(self.queue.fileno(), self._take)

    def _take(self) -> None:
        for incoming in self.queue.take():
            if self.dispatch is not None:
                self.dispatch(incoming)


_bridges: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Bridge] = (
    weakref.WeakKeyDictionary()
)


def _bridge(loop: asyncio.AbstractEventLoop) -> _Bridge:
    found = _bridges.get(loop)
    if found is None:
        found = _bridges[loop] = _Bridge(loop)
    return found


class Client:
    """A CoAP client for asyncio.

    The arguments are those of :class:`ebbtide.Client`. All coroutines of one loop share sockets,
    connections and what congestion control has learnt. Cancelling a request ends its exchange.
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

    async def request(
        self, method: Method, uri: str, payload: bytes | str = b"", **how: Any
    ) -> Response:
        """Send a request and wait for its response. As :meth:`ebbtide.Client.request`."""
        return await self._send(method, uri, bytes_of(payload), how_of(how) if how else None)

    def _send(
        self, method: str, uri: str, payload: bytes, how: dict[str, object] | None
    ) -> asyncio.Future[Response]:
        loop = asyncio.get_running_loop()
        future = _Pending(loop=loop)
        future.call = self._native.submit(_bridge(loop).queue, future, method, uri, payload, how)
        return future

    async def get(self, uri: str, **how: Any) -> Response:
        """Send a GET; see :meth:`request`."""
        return await self._send("GET", uri, b"", how_of(how) if how else None)

    async def put(self, uri: str, payload: bytes | str = b"", **how: Any) -> Response:
        """Send a PUT; see :meth:`request`."""
        return await self.request("PUT", uri, payload, **how)

    async def post(self, uri: str, payload: bytes | str = b"", **how: Any) -> Response:
        """Send a POST; see :meth:`request`."""
        return await self.request("POST", uri, payload, **how)

    async def delete(self, uri: str, **how: Any) -> Response:
        """Send a DELETE; see :meth:`request`."""
        return await self.request("DELETE", uri, **how)

    async def fetch(self, uri: str, payload: bytes | str = b"", **how: Any) -> Response:
        """Send a FETCH (RFC 8132); see :meth:`request`."""
        return await self.request("FETCH", uri, payload, **how)

    def observe(self, uri: str, **how: Any) -> Observation:
        """Observe a resource (RFC 7641): an asynchronous iterator over its states.

        States that are not fetched in time are replaced by newer ones; the last one always arrives.
        """
        return Observation(self._native.observe("GET", uri, b"", how_of(how)))

    async def ping(self, uri: str) -> float | None:
        """Send a CoAP ping; return the round trip in seconds, if the answer gave one."""
        loop = asyncio.get_running_loop()
        future = _Pending(loop=loop)
        future.call = self._native.submit_ping(_bridge(loop).queue, future, uri)
        round_trip: float | None = await future
        return round_trip

    def close(self) -> None:
        """Close its sockets and connections once the open requests have ended."""
        self._native.close()

    async def __aenter__(self) -> Client:
        """Return self."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        self.close()


class _Pending(asyncio.Future[Any]):
    """A future whose cancellation ends the exchange."""

    call: _ebbtide.Call | None = None

    def cancel(self, msg: Any | None = None) -> bool:
        """Cancel it, and what it waits for."""
        cancelled = super().cancel(msg)
        if cancelled and self.call is not None:
            self.call.cancel()
        return cancelled


class Observation(AsyncIterator[Response]):
    """An observed resource: an asynchronous iterator over its states."""

    def __init__(self, native: _ebbtide.Observation) -> None:
        self._native = native

    def __aiter__(self) -> Observation:
        """Return self."""
        return self

    async def __anext__(self) -> Response:
        """Wait for the next state. The iteration ends when the server ends the observation."""
        loop = asyncio.get_running_loop()
        future = _Pending(loop=loop)
        future.call = self._native.submit_next(_bridge(loop).queue, future)
        state: Response | None = await future
        if state is None:
            raise StopAsyncIteration
        return state

    async def __aenter__(self) -> Observation:
        """Return self."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """End it."""
        self.close()

    def close(self) -> None:
        """End it: the server learns of that with its next notification."""
        self._native.close()


class Server:
    """A CoAP server in the running loop.

    Handlers are functions, which must not block, or coroutine functions. What a handler raises is
    logged and answered 5.00. The arguments are those of :class:`ebbtide.Server`.

    Raises OSError if an address cannot be bound, ValueError for what is not possible.
    """

    def __init__(
        self,
        router: Router,
        *bind: str,
        control: str | None = None,
        nstart: int | None = None,
        busy_poll: float = 0.0,
        ca: bytes | str | None = None,
        certificate: bytes | str | None = None,
        key: bytes | str | None = None,
        psk: Keys | None = None,
        cid: bool | int = True,
        oscore: OscoreContexts = None,
        oscore_required: bool = False,
        workers: int = 1,
        state: str | os.PathLike[str] | None = None,
        raw_key: bytes | str | None = None,
        peer_keys: bytes | str | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        # A server's queue is its own: what it is asked is not the client's.
        self._bridge = _Bridge(self._loop)
        self._bridge.dispatch = self._dispatch
        self._handlers: list[dict[str, Handler]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        routes = []
        for path, resource in router.resources.items():
            self._handlers.append(resource.handlers)
            methods = list(resource.handlers)
            routes.append((path, methods, resource.attributes, resource.subject))
        settings = settings_of(
            control,
            nstart,
            busy_poll,
            ca,
            certificate=certificate,
            key=key,
            cid=cid,
            oscore=oscore,
            oscore_required=oscore_required,
            raw_key=raw_key,
            peer_keys=peer_keys,
        )
        addresses = [address_of(one) for one in bind or ("0.0.0.0:5683", "[::]:5683")]
        keys = keys_of(psk)
        serving = {
            "workers": count_of("workers", workers) or 1,
            "state": None if state is None else os.fspath(state),
        }
        self._native = _ebbtide.Server(
            self._bridge.queue, routes, addresses, settings, serving, keys
        )
        self._closed = self._loop.create_future()

    @property
    def addresses(self) -> list[str]:
        """The addresses that are served, as URIs without a path."""
        return [
            f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
            for scheme, host, port in self._native.addresses
        ]

    async def serve(self) -> None:
        """Wait until it is closed."""
        await asyncio.shield(self._closed)

    def close(self) -> None:
        """Stop serving; requests in progress are not answered any more."""
        if self._closed.done():
            return
        self._native.close()
        self._loop.remove_reader(self._bridge.queue.fileno())
        for task in self._tasks:
            task.cancel()
        self._closed.set_result(None)

    async def __aenter__(self) -> Server:
        """Return self."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop serving."""
        self.close()

    def _dispatch(self, incoming: _ebbtide.Incoming) -> None:
        method = incoming.method
        try:
            answer = self._handlers[incoming.route][method](Call(incoming))
        except Exception:
            self._failed(incoming)
            return
        if inspect.isawaitable(answer):
            task = self._loop.create_task(self._later(incoming, answer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._answer(incoming, answer)

    async def _later(self, incoming: _ebbtide.Incoming, answer: Awaitable[Answer]) -> None:
        try:
            value = await answer
        except Exception:
            self._failed(incoming)
        else:
            self._answer(incoming, value)

    def _answer(self, incoming: _ebbtide.Incoming, answer: Any) -> None:
        try:
            success = "2.05" if incoming.method in ("GET", "FETCH") else "2.04"
            if isinstance(answer, Reply):
                incoming.reply(answer.code or success, answer.payload, answer.options)
            else:
                incoming.reply(success, b"" if answer is None else bytes_of(answer), ())
        except (TypeError, ValueError, OverflowError):
            self._failed(incoming)

    @staticmethod
    def _failed(incoming: _ebbtide.Incoming) -> None:
        _log.exception("a handler of %s failed", incoming.method)
        incoming.reply("5.00", b"", ())
