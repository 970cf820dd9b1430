# %% [markdown]
# # A campaign on a Dask cluster
#
# The same lines on a laptop, on this local cluster, and on Slurm (`dask_jobqueue.SLURMCluster`): workers need only see the folder.
# A worker that is killed loses one piece of work, which is done again; a driver that is killed is called again.

# %%
import tempfile

import ebbtide
from distributed import Client
from ebbtide import figures

folder = tempfile.mkdtemp(prefix="ebbtide-")
campaign = ebbtide.Campaign(
    "nb-iot",
    {"clients": [10, 20, 40, 80], "buffer": [1410, 14100, "infinite"], "exchanges": 10},
    ["default", "cocoa", "fasor-token"],
    reps=5,
    folder=folder,
)
print(campaign.missing())

# %%
with Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
    campaign.run(client.get_executor(pure=False))
print(campaign.missing(), campaign.failed())

# %% [markdown]
# One more axis value, and only that is computed. Then questions, in SQL over the files:

# %%
campaign.sql("""
    SELECT cc, clients, median(fct_ns) / 1e9 AS fct_s, sum(failed) AS failed
    FROM runs WHERE buffer > 1e9 GROUP BY ALL ORDER BY clients, fct_s
""").round(1).head(6)

# %%
crowd = campaign.df()
figures.heatmap(crowd[crowd["cc"] == "default"], "clients", "buffer", size="screen")

# %%
compared = campaign.compare("default", "fasor-token")
compared[["clients", "buffer", "difference", "low", "high", "better"]].round(1)

# %%
import shutil

path = campaign.package(f"{folder}.zip")
print(
    f"{path.stat().st_size / 1e6:.1f} MB to hand on; rerun.py in it computes it again and compares"
)
path.unlink()
shutil.rmtree(folder)
