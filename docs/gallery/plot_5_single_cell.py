"""
Cell types in single-cell counts
================================

You have gene counts of cells, most of them with an annotated type. Which cells represent which type? The function
:func:`distreduce.interop.anndata.sdr` follows scanpy's conventions and writes into the AnnData object.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from anndata import AnnData
from sklearn.decomposition import PCA

from distreduce.interop.anndata import sdr

# %%
# Random counts with the difficulties of real ones: different depths, overdispersion, a rare type, two types that share
# genes (T and NK), and every fifth cell without annotation.
rng = np.random.default_rng(0)
names = ["B", "NK", "T", "dendritic", "monocyte"]
truth = rng.choice(5, 900, p=[0.28, 0.2, 0.3, 0.03, 0.19])
markers = np.arange(100).reshape(5, 20)  # genes 0 … 19 mark B cells, and so on
profiles = np.tile(rng.lognormal(-1, 1, 300), (5, 1))  # one row per type, one column per gene
profiles[np.arange(5)[:, None], markers] *= 4
profiles[2, markers[1, :14]] *= 3  # T cells share most of what marks NK cells
counts = rng.poisson(rng.gamma(2, profiles[truth] * rng.lognormal(0, 0.4, (900, 1)) / 2))
hidden = rng.random(900) < 0.2
annotation = pd.DataFrame({"type": pd.Categorical.from_codes(np.where(hidden, -1, truth), names)})
cells = AnnData(counts.astype(float), obs=annotation.set_index(pd.Index([f"cell{i}" for i in range(900)])))

# %%
# The usual preparation, then one call. The object then contains positions, prototypes and their attributes.
cells.X = np.log1p(1000 * cells.X / cells.X.sum(axis=1, keepdims=True))
cells.obsm["X_pca"] = PCA(20, random_state=0).fit_transform(cells.X)
sdr(cells, "type", use_rep="X_pca", n_prototypes=30)
found = cells.uns["sdr"]
types = found["targets"].argmax(axis=1)  # of the prototypes, in the order of the categories

figure, axes = plt.subplots(1, 2, figsize=(10, 4.8), layout="constrained")
colours = np.array(["#E69F00", "#56B4E9", "#009E73", "#D55E00", "#0072B2"])
axes[1].scatter(*found["prototypes"].T, s=6000 * found["weights"], c=colours[types], alpha=0.35, linewidth=0)
for ax, key in zip(axes, ("X_pca", "X_sdr_left_out"), strict=True):
    for kind, name in enumerate(names):
        ax.scatter(*cells.obsm[key][truth == kind, :2].T, s=9, color=colours[kind], linewidth=0, label=name)
    ax.scatter(*cells.obsm[key][hidden, :2].T, s=16, color="none", edgecolor="black", linewidth=0.5, label="hidden")
    ax.set(title=key, xticks=[], yticks=[])
axes[0].legend(frameon=False, markerscale=1.5)

# %%
# Rings are cells whose type the fit did not know. Does the type of the prototype predict the type of the cell?
predicted = types[cells.obs["sdr_prototype"].cat.codes]
right = pd.DataFrame({"type": np.array(names)[truth], "right": predicted == truth})[hidden]
print(right.groupby("type").agg(["mean", "size"]).round(2))
print("cells that represent the heaviest prototypes:", *found["medoids"][np.argsort(-found["weights"])[:5]])

# %%
# The common types are separated where two principal components mix them (T and NK), also at the places that cells would
# have had they not been in the fit. Of the six hidden dendritic cells two are found: a type of 3 % is easily absorbed
# by its neighbours.
