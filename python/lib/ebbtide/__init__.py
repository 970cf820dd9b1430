"""Congestion-safe CoAP: clients, servers, and a deterministic testbed.

The testbed runs the same endpoints as the clients and servers, under a virtual clock::

    import ebbtide

    result = ebbtide.run("nb-iot", set={"clients": [50, 100]}, cc=["default", "fasor"], reps=5)
    print(result.summary())

A client::

    print(ebbtide.get("coap://192.0.2.7/temperature").text)

Modules: :mod:`ebbtide.aio` (asyncio), :mod:`ebbtide.control` (congestion controls in Python),
:mod:`ebbtide.figures` (matplotlib).
"""

from __future__ import annotations

from ebbtide import control
from ebbtide._campaign import Campaign, Failed, Missing
from ebbtide._coap import (
    Call,
    Client,
    Observation,
    Reply,
    Resource,
    Router,
    get,
    post,
    put,
    reply,
)
from ebbtide._ebbtide import (
    VERSION,
    ConnectionLost,
    EbbtideError,
    NoAnswer,
    ProtocolError,
    ResetError,
    Response,
    RunError,
    Subject,
    TooLargeError,
)
from ebbtide._fit import Figure, Fit, fit
from ebbtide._map import Map, map
from ebbtide._oscore import OscoreContext
from ebbtide._results import Result, replay, reproduce, run
from ebbtide._scenario import Scenario, controls, scenario, scenarios
from ebbtide._server import Server
from ebbtide._tuning import Calibration, Tuning, calibrate, tune
from ebbtide.control import Control

#: The version; results carry it, since another one may compute others.
__version__ = VERSION

__all__ = [
    "Calibration",
    "Call",
    "Campaign",
    "Client",
    "ConnectionLost",
    "Control",
    "EbbtideError",
    "Failed",
    "Figure",
    "Fit",
    "Map",
    "Missing",
    "NoAnswer",
    "Observation",
    "OscoreContext",
    "ProtocolError",
    "Reply",
    "ResetError",
    "Resource",
    "Response",
    "Result",
    "Router",
    "RunError",
    "Scenario",
    "Server",
    "Subject",
    "TooLargeError",
    "Tuning",
    "__version__",
    "calibrate",
    "control",
    "controls",
    "fit",
    "get",
    "map",
    "post",
    "put",
    "replay",
    "reply",
    "reproduce",
    "run",
    "scenario",
    "scenarios",
    "tune",
]
