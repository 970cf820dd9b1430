# %% [markdown]
# # Write a control in 30 lines
#
# A congestion control is a class. The simulator builds one object of it for each peer and calls it where it would call a control of
# its own; the class decides how long to wait for an answer, and learns from the answers. This one is thirty lines with its comments:
# a smoothed round trip with a margin, as TCP has it (RFC 6298), and a backoff that grows by half rather than by doubling.

# %%
import ebbtide
from ebbtide import figures


class Gentle(ebbtide.Control):
    """A smoothed round trip, and a backoff that grows by `growth`."""

    def __init__(self, growth: float = 1.5, margin: float = 4.0):
        self.growth, self.margin = growth, margin
        self.mean = self.deviation = None

    def on_transmit(self, transmission, slot, cx):
        if transmission.ordinal > 0:
            return slot.armed * self.growth
        if self.mean is None:
            timeout = cx.ack_timeout
        else:
            timeout = self.mean + max(self.margin * self.deviation, 0.1)
        # Spread, so that clients that began together do not stay synchronised.
        return cx.uniform(timeout, 1.5 * timeout)

    def on_feedback(self, slot, sample, cx):
        if sample.retransmissions > 0:
            return  # It is not known which transmission was answered (Karn's algorithm).
        if self.mean is None:
            self.mean, self.deviation = sample.since_first, sample.since_first / 2
        else:
            error = sample.since_first - self.mean
            self.deviation += (abs(error) - self.deviation) / 4
            self.mean += error / 8


# %% [markdown]
# The class stands beside the names of the built-in controls, and its parameters are settings. The same seed gives the same result
# with any number of threads: all randomness comes from `cx.uniform`, and the clock is `cx.now`.

# %%
result = ebbtide.run(
    "nb-iot",
    set={"clients": [20, 60], "exchanges": 10, "errors": "medium"},
    cc=["default", "cocoa", "fasor-token", Gentle, Gentle(growth=2.0)],
    reps=3,
)
columns = ["cc", "clients", "fct_s.median", "unnecessary_retransmissions.median", "failed"]
result.summary()[columns].round(1)

# %%
frame = result.df()
figures.cdf(frame[frame["clients"] == 60], "fct_s", size="screen")

# %% [markdown]
# One client of the larger cell, exchange by exchange. Each mark is a datagram of the control that was written above.

# %%
events = ebbtide.replay(
    "nb-iot", cc=Gentle, set={"clients": 60, "exchanges": 10, "errors": "medium"}
)
figures.timeline(events, client=7, size="screen")

# %% [markdown]
# An idea that holds becomes a Rust crate of the same shape (`examples/custom-control`), which clients and servers accept as well. In
# Python a decision costs some microseconds, so the simulation is slower than with a built-in control.
