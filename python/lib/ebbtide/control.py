"""Congestion controls written in Python, for the testbed.

A control is a class that the simulator calls where it would call one of its own::

    import ebbtide

    class Doubling(ebbtide.Control):
        def __init__(self, factor: float = 3.0):
            self.factor = factor
            self.round_trip = None

        def on_transmit(self, transmission, slot, cx):
            first = self.factor * (self.round_trip or cx.ack_timeout)
            return cx.uniform(first, 1.5 * first) * 2**transmission.ordinal

        def on_feedback(self, slot, sample, cx):
            if sample.retransmissions == 0:
                self.round_trip = sample.since_first

    ebbtide.run("nb-iot", cc=["default", Doubling, Doubling(factor=6)])

All times are seconds, with a resolution of a microsecond.
"""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from types import CodeType, FunctionType
from typing import Any, ClassVar, Literal, TypeAlias
from weakref import WeakKeyDictionary

from ebbtide import _ebbtide
from ebbtide._ebbtide import Context, Load, OutgoingMessage, ProbeReply, Sample, Slot, Transmission

__all__ = [
    "Admission",
    "Context",
    "Control",
    "ControlLike",
    "Load",
    "OutgoingMessage",
    "ProbeReply",
    "Sample",
    "Slot",
    "Transmission",
]

#: Whether a message may leave: ``None`` now, a number not before that time on the clock of
#: ``cx.now``, ``"blocked"`` not before an open exchange ends, ``"confirmable"`` now if it is made
#: Confirmable, ``("probe", time)`` a probe first, and ``"give-up"`` never.
Admission: TypeAlias = (
    'Literal["blocked", "confirmable", "give-up"] | tuple[Literal["probe"], float] | float | None'
)


class Control:
    """A congestion control written in Python. Subclass it, and pass the class as ``cc``.

    One object is built for each peer of each endpoint. For every Confirmable message the order of
    calls is: :meth:`admit`; then :meth:`on_transmit` for each transmission, with :meth:`on_expire`
    or :meth:`on_probe` between two of them; then at most one :meth:`on_feedback`; and finally
    exactly one :meth:`on_close`. Calls for several exchanges with the peer interleave if NSTART is
    above one. Every decision is bounded as those of the built-in controls are: timeouts are from
    10 ms to 900 s, NSTART and MAX_RETRANSMIT hold, and no exchange is given up too early.

    The parameters of ``__init__``, which need defaults that are numbers, booleans or text, are the
    control's settings: ``Doubling(factor=6)``, or ``"doubling:factor=6"`` beside the class.

    Results are the same for the same seed only if the control itself is deterministic: the clock is
    ``cx.now``, and :meth:`Context.uniform` is the only randomness that it may use. Results in a
    folder carry a hash of the class and its base classes; a function elsewhere that it calls is not
    included, so change :attr:`version` when such a function changes.

    An exception of a method ends the run, and is raised with its traceback.
    """

    #: The name in ``cc`` and in results; that of the class in lower case by default.
    name: ClassVar[str] = ""
    #: Anything that distinguishes versions of the control beyond the code of its class.
    version: ClassVar[str] = ""
    #: How transmissions are marked on the wire: ``"none"``, ``"token"``, ``"copy-token"`` or
    #: ``"option"``. With a mark, ``Sample.answered`` tells which of them was answered.
    marking: ClassVar[Literal["none", "token", "copy-token", "option"]] = "none"

    _settings: dict[str, Any]

    def __new__(cls, *arguments: Any, **settings: Any) -> Control:
        """Remember the settings, so that the object can stand for its class in ``cc``."""
        made = super().__new__(cls)
        made._settings = dict(_signature(cls).bind(*arguments, **settings).arguments)
        return made

    def admit(self, message: OutgoingMessage, load: Load, cx: Context) -> Admission:
        """Decide whether a message may leave now. By default every message may."""
        return None

    def on_transmit(self, transmission: Transmission, slot: Slot, cx: Context) -> float:
        """Return how long to wait for the answer to a transmission that leaves now."""
        raise NotImplementedError(f"{type(self).__name__}: a control defines on_transmit")

    def on_expire(self, slot: Slot, cx: Context) -> Literal["repeat", "probe"] | None:
        """Decide what leaves when a timeout has expired: the message, or a CoAP ping."""
        return None

    def on_probe(self, slot: Slot, reply: ProbeReply, cx: Context) -> float | None:
        """Return after how long the message is repeated when a probe was answered before it.

        None leaves the timeout as it is.
        """
        return None

    def on_feedback(self, slot: Slot, sample: Sample, cx: Context) -> None:
        """Learn from the first acknowledgement of an exchange."""

    def on_close(self, slot: Slot, outcome: str, retransmissions: int, cx: Context) -> None:
        """Learn that an exchange ended.

        ``outcome`` is ``"acknowledged"``, ``"reset"``, ``"gave-up"`` or ``"cancelled"``.
        """

    def poll_timeout(self) -> float | None:
        """Return the next time, on the clock of ``cx.now``, at which to call handle_timeout."""
        return None

    def handle_timeout(self, cx: Context) -> None:
        """Act at the time that poll_timeout returned. Waiting messages ask again afterwards."""


_signatures: WeakKeyDictionary[type, inspect.Signature] = WeakKeyDictionary()


def _signature(kind: type) -> inspect.Signature:
    """Return the parameters of ``__init__``, without the object."""
    known = _signatures.get(kind)
    if known is None:
        init = inspect.getattr_static(kind, "__init__")
        own = [] if init is object.__init__ else inspect.signature(init).parameters.values()
        known = _signatures[kind] = inspect.Signature(list(own)[1:])
    return known


#: A control by name, as a class, or as an object with settings.
ControlLike: TypeAlias = "str | type[Control] | Control"

#: Methods that are called only if the class defines them.
_OPTIONAL = ("admit", "on_expire", "on_probe", "on_close", "poll_timeout", "handle_timeout")
_MARKINGS = ("none", "token", "copy-token", "option")


@dataclass(frozen=True)
class Written:
    """What the native half, perhaps on another machine, must know of a class."""

    kind: type[Control]
    name: str
    #: Settings, and the text of their defaults.
    keys: list[tuple[str, str]]
    version: str
    #: The optional methods that the class defines.
    methods: list[str]

    def native(self) -> _ebbtide.PythonControl:
        """Return it as the native half takes it."""
        build, marking = partial(built, self.kind), self.kind.marking
        return _ebbtide.PythonControl(
            build, self.name, self.keys, self.version, self.methods, marking
        )


def named(controls: Iterable[ControlLike]) -> tuple[list[str], list[Written]]:
    """Return the names of controls, and the classes among them, each once."""
    names: list[str] = []
    classes: dict[type[Control], Written] = {}
    for one in controls:
        if isinstance(one, str):
            names.append(one.strip())
            continue
        kind = one if isinstance(one, type) else type(one)
        if not issubclass(kind, Control):
            takes = "names of congestion controls, and classes or objects of ebbtide.Control"
            raise TypeError(f"cc: takes {takes}, not {kind.__name__}")
        written = classes.setdefault(kind, _written(kind))
        own = {} if isinstance(one, type) else one._settings
        texts = {key.replace("_", "-"): _text(value) for key, value in own.items()}
        settings = [
            f":{key}={texts[key]}"
            for key, default in written.keys
            if texts.get(key, default) != default
        ]
        names.append(written.name + "".join(settings))
    return names, list(classes.values())


def built(kind: type[Control], settings: Sequence[tuple[str, str]]) -> Control:
    """Build a control with settings that are given as text. Raises ValueError that names one."""
    parameters = _signature(kind).parameters
    values = {}
    for key, text in settings:
        name = key.replace("-", "_")
        values[name] = _value(f"{_name(kind)}: {key}", text, parameters[name].default)
    return kind(**values)


def _written(kind: type[Control]) -> Written:
    keys = []
    for name, parameter in _signature(kind).parameters.items():
        default = parameter.default
        if isinstance(default, (bool, int, float, str)):
            keys.append((name.replace("_", "-"), _text(default)))
        elif default is parameter.empty:
            raise TypeError(
                f"cc: {kind.__name__}: the parameter '{name}' of __init__ needs a default: "
                "a number, a boolean or a text"
            )
    if kind.marking not in _MARKINGS:
        known = ", ".join(_MARKINGS)
        raise ValueError(f"cc: {kind.__name__}.marking: '{kind.marking}' is not one of {known}")
    methods = [name for name in _OPTIONAL if getattr(kind, name) is not getattr(Control, name)]
    return Written(kind, _name(kind), keys, _digest(kind), methods)


def _name(kind: type[Control]) -> str:
    return kind.name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", kind.__name__).lower()


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return repr(value) if isinstance(value, float) else str(value)


def _value(place: str, text: str, default: object) -> object:
    """Read a setting as a value of the type of its default."""
    if isinstance(default, bool):
        if text in ("on", "off"):
            return text == "on"
        raise ValueError(f"{place}: takes on or off, not '{text}'")
    try:
        if isinstance(default, int):
            return int(text)
        if isinstance(default, float):
            quantity = _ebbtide.quantity(text)
            return quantity[0] if quantity else float(text)
    except ValueError:
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise ValueError(f"{place}: takes {kind}, not '{text}'") from None
    return text


def _digest(kind: type[Control]) -> str:
    """Return a hash of the code of a class and of its bases."""
    hashed = hashlib.sha256(kind.version.encode())
    for each in kind.__mro__:
        if each in (Control, object):
            continue
        for name, value in sorted(vars(each).items()):
            if not (name.startswith("__") and name != "__init__"):
                hashed.update(f"{name}={_described(value)};".encode())
    return hashed.hexdigest()[:16]


def _described(value: object) -> str:
    """Describe an attribute of a class, the same in every process."""
    inner = getattr(value, "__func__", None) or getattr(value, "fget", None) or value
    if isinstance(inner, FunctionType):
        return f"{inner.__defaults__} {inner.__kwdefaults__} {_code(inner.__code__)}"
    if isinstance(inner, CodeType):
        return _code(inner)
    if isinstance(inner, (tuple, list)):
        return f"({','.join(_described(one) for one in inner)})"
    if isinstance(inner, (set, frozenset)):
        return f"{{{','.join(sorted(_described(one) for one in inner))}}}"
    if isinstance(inner, dict):
        return ",".join(f"{_described(key)}:{_described(item)}" for key, item in inner.items())
    if inner is None or isinstance(inner, (bool, int, float, str, bytes)):
        return repr(inner)
    return type(inner).__qualname__


def _code(code: CodeType) -> str:
    return f"{code.co_code.hex()} {code.co_names} {_described(code.co_consts)}"
