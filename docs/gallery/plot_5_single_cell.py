"""
Cell types in single-cell counts
================================

Counts of genes in cells, types annotated for most of them, and the question which cells stand for what. The function
:func:`distreduce.interop.anndata.sdr` works as scanpy's do: it writes into the AnnData object. scanpy itself is not
needed.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from anndata import AnnData
from sklearn.decomposition import PCA

from distreduce.interop.anndata import sdr

# %%
# Counts drawn at random, with what makes real ones hard: cells of different depth, overdispersion, a rare type, two
# types that share genes (T and NK), and every fifth cell without annotation.
rng = np.random.default_rng(0)
names = ["B", "NK", "T", "dendritic", "monocyte"]
truth = rng.choice(5, 900, p=[0.28, 0.2, 0.3, 0.03, 0.19])
markers = np.arange(100).reshape(5, 20)  # genes 0 … 19 mark B cells, and so on
profiles = np.tile(rng.lognormal(-1, 1, 300), (5, 1))  # a row a type, a column a gene
profiles[np.arange(5)[:, None], markers] *= 4
profiles[2, markers[1, :14]] *= 3  # T cells share most of what marks NK cells
counts = rng.poisson(rng.gamma(2, profiles[truth] * rng.lognormal(0, 0.4, (900, 1)) / 2))
hidden = rng.random(900) < 0.2
annotation = pd.DataFrame({"type": pd.Categorical.from_codes(np.where(hidden, -1, truth), names)})
cells = AnnData(counts.astype(float), obs=annotation.set_index(pd.Index([f"cell{i}" for i in range(900)])))

# %%
# The usual preparation, then one call. Places, prototypes and what belongs to them are now in the object.
cells.X = np.log1p(1000 * cells.X / cells.X.sum(axis=1, keepdims=True))
cells.obsm["X_pca"] = PCA(20, random_state=0).fit_transform(cells.X)
sdr(cells, "type", use_rep="X_pca", n_prototypes=30)
found = cells.uns["sdr"]
types = found["targets"].argmax(axis=1)  # of the prototypes, in the order of the categories

figure, axes = plt.subplots(1, 2, figsize=(10, 4.8), layout="constrained")
colours = np.array(["#E69F00", "#56B4E9", "#009E73", "#D55E00", "#0072B2"])
axes[1].scatter(*found["prototypes"].T, s=6000 * found["weights"], c=colours[types], alpha=0.35, linewidth=0)
for ax, key in zip(axes, ("X_pca", "X_sdr"), strict=True):
    for kind, name in enumerate(names):
        ax.scatter(*cells.obsm[key][truth == kind, :2].T, s=9, color=colours[kind], linewidth=0, label=name)
    ax.scatter(*cells.obsm[key][hidden, :2].T, s=16, color="none", edgecolor="black", linewidth=0.5, label="hidden")
    ax.set(title=key, xticks=[], yticks=[])
axes[0].legend(frameon=False, markerscale=1.5)

# %%
# Rings are cells whose type the fit did not know. Does the type of a cell's prototype say what it is?
said = types[cells.obs["sdr_prototype"].cat.codes]
right = pd.DataFrame({"type": np.array(names)[truth], "right": said == truth})[hidden]
print(right.groupby("type").agg(["mean", "size"]).round(2))
print("cells that stand for the heaviest prototypes:", *found["medoids"][np.argsort(-found["weights"])[:5]])

# %%
# The common types are told from each other where two principal components mix them (T and NK). Of the six hidden
# dendritic cells half are found: a type of 3 % is easily swallowed by its neighbours. Clean islands of *annotated*
# cells prove nothing.
