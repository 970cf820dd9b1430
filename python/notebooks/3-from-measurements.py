# %% [markdown]
# # From measurements to a decision
#
# Round trips measured in a real network (with `ebbtide ping`, or out of a capture) say what the scenario's parameters are;
# then the testbed says which control to use. The measurements here come from the testbed itself, so that the truth is known:
# 45 kbit/s towards the clients.

# %%
import ebbtide
from ebbtide import figures

truth = {"clients": 20, "exchanges": 20, "network.down.rate": "45 kbit/s"}
events = ebbtide.replay("nb-iot", cc="default", set=truth, seed=7)
answered = events[events["event"] == "answered"]
begun = events[(events["event"] == "sent") & (events["ordinal"] == 0)]
pair = ["client", "exchange"]
both = answered.merge(begun, on=pair, suffixes=("", "_sent"))
measured = (both["t"] - both["t_sent"]).to_list()
print(f"{len(measured)} exchanges took {min(measured):.2f} to {max(measured):.2f} s")

# %%
found = ebbtide.calibrate(
    "nb-iot",
    measured,
    free={"network.down.rate": (10, 200, "kbit/s")},
    figure="exchange_duration_s",
    set={"clients": 20, "exchanges": 20},
    trials=40,
)
low, high = found.interval["network.down.rate"]
print(
    f"{found.best['network.down.rate']}, 90 % of samples: {low:.1f} to {high:.1f} kbit/s; off by {found.error:.1%}"
)

# %% [markdown]
# With the calibrated network, the decision, for five times as many devices:

# %%
result = ebbtide.run(
    "nb-iot",
    set={**found.best, "clients": 100, "exchanges": 20},
    cc=["default", "cocoa", "fasor-token", "ebb"],
    reps=5,
)
figures.box(result.df(), size="screen")
