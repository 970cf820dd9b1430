# %% [markdown]
# # Reproduce a figure of a paper
#
# This page repeats the experiments of a paper and compares their figures with the published ones: the cell of ANRW'18 with
# NB-IoT devices, with two replications instead of the paper's twenty, so that the page is built within seconds.

# %%
import ebbtide
from ebbtide import figures

result = ebbtide.reproduce("anrw18", reps=2)
table = result.compared()
table[["cell", "cc", "quantity", "published", "measured"]].head(8).round(2)

# %% [markdown]
# How far each measured value is from the published one, in percent:

# %%
table["off"] = 100 * table["relative"]
print(
    f"{(table['off'].abs() <= 5).mean():.0%} of {len(table)} values are within 5 % of the paper's"
)
axis = figures.box(table, "off", size="screen")
axis.set_ylim(table["off"].min() - 1, table["off"].max() + 1)
axis.set_ylabel("measured against published (%)")
axis.set_xlabel("congestion control")
axis.axhline(0, color="black", linewidth=0.8)

# %% [markdown]
# The report with all figures of the paper is one HTML file, `result.report`.
