"""A CoAP server for programs without an asyncio loop."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import Any

from ebbtide import aio
from ebbtide._coap import Router


class Server:
    """A CoAP server on a thread of its own, for programs without an asyncio loop.

    Handlers run one after the other on that thread; coroutines run in its loop. ``bind``: addresses
    such as ``"127.0.0.1:5683"`` or ``"coaps://0.0.0.0:5684"``; port 0 takes a free one
    (:attr:`addresses`). ``psk``, for ``coaps``: the keys of the clients, a dict of identities and
    keys, or a function from an identity (bytes) to its key or None. The function must return
    quickly and must not use the server: the socket waits for it. ``ca``: clients have to show a
    certificate of these authorities. ``raw_key`` shows the public key of a private key (PEM)
    instead of a certificate; with ``peer_keys`` clients have to show one of these. ``oscore``:
    contexts of clients whose messages are protected end to end (:class:`OscoreContext`); with
    ``oscore_required`` all others are refused. ``workers``: the number of sockets and threads for
    each address, on Linux; handlers still run on
    one thread. ``state``: a file with what survives a restart: observers, verified addresses and
    message IDs; it is written a tenth of a second after a change. The other arguments are those of
    :class:`Client`. Use it in a ``with`` statement, or call :meth:`close`.

    Raises OSError if an address cannot be bound, ValueError for what is not possible.
    """

    def __init__(self, router: Router, *bind: str, **settings: Any) -> None:
        self._loop = asyncio.new_event_loop()
        started: Future[Any] = Future()

        def serve() -> None:
            asyncio.set_event_loop(self._loop)

            async def start() -> Any:
                return aio.Server(router, *bind, **settings)

            try:
                started.set_result(self._loop.run_until_complete(start()))
            except BaseException as error:
                started.set_exception(error)
                self._loop.close()
                return
            self._loop.run_forever()
            # Handlers that were cancelled end in their own way.
            open_tasks = asyncio.all_tasks(self._loop)
            self._loop.run_until_complete(asyncio.gather(*open_tasks, return_exceptions=True))
            self._loop.close()

        self._thread = threading.Thread(target=serve, name="ebbtide-server", daemon=True)
        self._thread.start()
        self._server: aio.Server = started.result()

    @property
    def addresses(self) -> list[str]:
        """The addresses that are served, as URIs without a path."""
        return self._server.addresses

    def close(self) -> None:
        """Stop serving; requests in progress are not answered any more."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._server.close)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def __enter__(self) -> Server:
        """Return self."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop serving."""
        self.close()
