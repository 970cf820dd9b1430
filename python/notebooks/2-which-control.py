# %% [markdown]
# # Which congestion control for my network?
#
# A network is a file, or a dict. Take the nearest built-in scenario, change what is different, and compare: here a cell of
# 20 kbit/s with 10 to 100 sensors that all report at once, on a link that loses some packets.

# %%
import ebbtide
from ebbtide import figures

result = ebbtide.run(
    "nb-iot",
    set={
        "network.up.rate": "20 kbit/s",
        "network.down.rate": "20 kbit/s",
        "errors": "medium",
        "clients": [10, 30, 100],
        "exchanges": 20,
    },
    cc=["default", "cocoa", "fasor", "fasor-token", "ebb"],
    reps=5,
)
columns = ["cc", "clients", "fct_s.median", "unnecessary_retransmissions.median", "failed"]
result.summary()[columns].round(1)

# %% [markdown]
# Every row of `result.df()` is a client; settings are columns.

# %%
frame = result.df()
figures.line(frame, "clients", "fct_s", size="screen")

# %%
crowd = frame[frame["clients"] == 100]
figures.cdf(crowd, "fct_s", size="screen")

# %% [markdown]
# One of the 100 clients under the plain control, exchange by exchange:

# %%
events = ebbtide.replay(
    "nb-iot",
    cc="default",
    set={
        "network.up.rate": "20 kbit/s",
        "network.down.rate": "20 kbit/s",
        "clients": 100,
        "exchanges": 20,
    },
)
figures.timeline(events, client=7, size="screen")
