# %% [markdown]
# # Make a control yours
#
# A control's settings are found by trials that use the same random numbers as its defaults. This example shows how `default`'s
# ACK_TIMEOUT and its bound trade completion time against unnecessary retransmissions with 60 devices.

# %%
import ebbtide
from ebbtide import figures

tuning = ebbtide.tune(
    "default",
    [("nb-iot", {"clients": 60, "exchanges": 10})],
    objective=["fct_s.median", "unnecessary_retransmissions.median"],
    trials=40,
)
tuning.front().round(3).head(8)

# %% [markdown]
# Figures are multiples of what the defaults reach: below 1 is better. To paste into a scenario file:

# %%
print(tuning.toml())

# %%
for key, share in tuning.sensitivity().items():
    print(f"{key}: explains {share:.0%} of the differences")

# %% [markdown]
# Both are compared pairwise with the same random numbers, so ten replications say more than a hundred of two samples.

# %%
import tempfile

with tempfile.TemporaryDirectory() as folder:
    campaign = ebbtide.Campaign(
        "nb-iot", {"clients": 60, "exchanges": 10}, ["default", tuning.best], 10, folder=folder
    ).run()
    compared = campaign.compare("default", tuning.best)
    frame = campaign.df()
compared[["pairs", "a", "b", "difference", "low", "high"]].round(2)

# %%
axis = figures.cdf(frame, size="screen")
