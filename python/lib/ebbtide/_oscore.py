"""Security contexts of OSCORE (RFC 8613)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass(frozen=True)
class OscoreContext:
    """What this program shares with one peer: a secret, and the IDs of both, of at most 7 bytes.

    On the other side the IDs are the other way round. ``algorithm``: ``AES-CCM-16-64-128`` or
    ``A128GCM``. ``server``: the only server for whose requests a client uses the context, as
    ``"192.0.2.7"`` or ``"example.org:5683"``. ``name``: the peer's identity for handlers
    (:attr:`ebbtide.Call.identity`); by default its ID. ``state``: the file of the sequence numbers.
    Without one the secret must be a new one at each start of the program, since numbers may not be
    used twice; the file must not be removed, copied or restored while the secret is in use.
    ``renewed``: in place of such a file, both sides make new keys of the secret at each start, with
    one exchange more (RFC 8613 appendix B.2).
    """

    secret: bytes = field(repr=False)
    sender_id: bytes
    recipient_id: bytes
    salt: bytes = field(default=b"", repr=False)
    id_context: bytes | None = None
    algorithm: str = "AES-CCM-16-64-128"
    server: str | None = None
    name: str | None = None
    state: str | os.PathLike[str] | None = None
    renewed: bool = field(default=False, kw_only=True)

    def parameters(self) -> dict[str, object]:
        """Return the parameters as the native half takes them."""
        server = None
        if self.server is not None:
            parts = urlsplit(f"coap://{self.server}")
            if parts.hostname is None:
                raise ValueError(f"server: takes a host, and a port, not {self.server!r}")
            server = (parts.hostname, parts.port)
        if self.renewed and not (self.state is None and self.id_context is None):
            raise ValueError("renewed: such a context has no state, and draws its id_context")
        return {
            "secret": self.secret,
            "sender_id": self.sender_id,
            "recipient_id": self.recipient_id,
            "salt": self.salt,
            "id_context": self.id_context,
            "algorithm": self.algorithm,
            "server": server,
            "name": self.name,
            "state": None if self.state is None else os.fspath(self.state),
            "renewed": self.renewed,
        }


def parameters_of(
    contexts: OscoreContext | Sequence[OscoreContext] | None,
) -> list[dict[str, object]] | None:
    """Return the contexts as the native half takes them."""
    if contexts is None:
        return None
    if isinstance(contexts, OscoreContext):
        contexts = [contexts]
    return [context.parameters() for context in contexts]
