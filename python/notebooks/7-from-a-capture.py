# %% [markdown]
# # From a capture to a decision
#
# Forty meters report through one slow cell, and 200 are planned. Do they need another congestion control? The only source is
# a packet capture of today's traffic, as `tcpdump` or `ebbtide emulate --pcap` write it. This one comes from the testbed, so that the
# end of this page can compare the decision with the truth; nothing before that looks at it.

# %%
import tempfile
from pathlib import Path

import ebbtide
from ebbtide import figures

truth = {
    "clients": 40,
    "exchanges": 20,
    "network.down.rate": "20 kbit/s",
    "buffer": "14100",
    "errors": "low",
}
capture = Path(tempfile.mkdtemp()) / "meters.pcapng"
ebbtide.replay("nb-iot", cc="default", set=truth, seed=7, pcap=capture)
print(f"{capture.name}: {capture.stat().st_size / 1000:.0f} kB")

# %% [markdown]
# ## What the capture says
#
# `fit` estimates the network and the workload, with ranges of 95 %:

# %%
found = ebbtide.fit(capture)
print(f"{found.messages} messages, {found.exchanges} exchanges in {found.duration_s:.0f} s")
for key, figure in found.figures.items():
    known = "" if figure.known else "not known, "
    bounds = "" if figure.low is None else f"at least {figure.low:.4g}"
    if figure.high is not None:
        bounds = f"{figure.low:.4g} to {figure.high:.4g}"
    value = "no limit" if figure.value is None else f"{figure.value:.4g} {figure.unit}"
    print(f"{key:20} {known}{value:15} {bounds}")

# %% [markdown]
# It also says what a capture cannot tell. The meters' firmware sends a message up to 20 times more, which its owner knows:

# %%
for sentence in found.unknown:
    print("*", sentence)
known = {"coap.max_retransmit": 20}

# %% [markdown]
# ## What would happen
#
# The fitted scenario runs like any other, with as many meters as are planned:

# %%
controls = ["default", "cocoa", "fasor-token", "ebb"]
today = ebbtide.run(found.scenario, set=known, cc=controls, reps=5)
planned = ebbtide.run(found.scenario, set={**known, "clients": 200}, cc=controls, reps=5)
columns = ["cc", "judgement", "delivered", "unnecessary_share"]
planned.summary()[columns].round(3)

# %%
figures.box(planned.df(), size="screen")

# %%
for name, result in [("today", today), ("200 meters", planned)]:
    print(f"{name}: {result.json()['settings'][0]['verdict']['sentence']}\n")

# %% [markdown]
# The buffer was not full in the capture, so its size is one more unknown. The decision should not hang on it:

# %%
choices = {}
for buffer in ["4000", "14100", "100000", "infinite"]:
    result = ebbtide.run(
        found.scenario, set={**known, "clients": 200, "buffer": buffer}, cc=controls, reps=5
    )
    frame = result.summary().set_index("cc")["judgement"]
    choices[buffer] = frame.to_dict()
    print(f"buffer {buffer:>8}: {choices[buffer]}")

# %% [markdown]
# ## The decision
#
# Today nothing is wrong with the plain control of RFC 7252. With 200 meters it is slower in a small buffer, and in a large one three of four
# transmissions are copies of messages that only wait in the queue. With the smallest buffer `cocoa` is best, with all others `fasor-token`, and
# `ebb` is level with it. So the firmware changes before the meters are added. The true network, which no step above has seen, agrees that the
# plain control must go, and that `fasor-token` and `ebb` are the best ones:

# %%
real = ebbtide.run("nb-iot", set={**truth, "clients": 200}, cc=controls, reps=5)
judgement = real.summary().set_index("cc")["judgement"].to_dict()
print(judgement)
assert {judgement["ebb"], judgement["fasor-token"]} <= {"best", "level"}
assert judgement["default"] not in ("best", "level")
