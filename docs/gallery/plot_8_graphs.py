"""
Nodes of a graph, with and without features
===========================================

A graph says who is near whom. Given as ``affinity``, it takes the place of the neighbourhoods in X: the prototypes
summarise the graph, and the features, if there are any, drive the map.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from sklearn.neighbors import KNeighborsClassifier

from distreduce import SDR, DistR

# %%
# Zachary's karate club: 34 members, who met outside of the club, and split into two. The graph is all there is:
# ``affinity="precomputed"`` takes the matrix of its edges as X. DistR does not know of the split.
club = nx.karate_club_graph()
edges = nx.to_numpy_array(club)
side = np.array([club.nodes[node]["club"] == "Officer" for node in club]).astype(int)
model = DistR(affinity="precomputed", random_state=0).fit(edges)
figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
for one, other in club.edges:
    ax.plot(*model.embedding_[[one, other]].T, color="#DDDDDD", linewidth=0.7, zorder=0)
ax.scatter(*model.embedding_.T, c=side, cmap="coolwarm", s=20 + 8 * edges.astype(bool).sum(axis=0), edgecolor="white")
ax.set(title="the karate club by its edges alone; colours are the later sides", xticks=[], yticks=[])


# %%
# A stochastic block model: 300 nodes in four blocks. A node knows 10 % of its own block and 3 % of the others, and has
# eight features, of which four say a little about the block. Eight nodes of each block have a label. Direct edges are
# too few to tell blocks apart, so we count random walks instead, as DeepWalk and node2vec do (Qiu et al., 2018).
def walk_similarity(A, window=5):
    degree = A.sum(axis=1)
    step = A / degree[:, None]
    walks = sum(np.linalg.matrix_power(step, length) for length in range(1, window + 1))
    return np.log(np.maximum(A.sum() / window * walks / degree, 1.0))


rng, block = np.random.default_rng(1), np.repeat(np.arange(4), 75)
S = walk_similarity(nx.to_numpy_array(nx.stochastic_block_model([75] * 4, 0.03 + 0.07 * np.eye(4), seed=1)))
vectors, sizes, _ = np.linalg.svd(S)
X = np.hstack([rng.normal(size=(300, 8)) + 1.2 * np.eye(4, 8)[block], vectors[:, :16] * np.sqrt(sizes[:16])])
labelled = np.concatenate([rng.choice(np.flatnonzero(block == b), 8, replace=False) for b in range(4)])
known, rest = np.full(300, np.nan), np.setdiff1d(np.arange(300), labelled)
known[labelled] = block[labelled]
sdr = SDR(affinity=S, task="classification", random_state=0).fit(X, known)

# %%
# Large marks are the labelled nodes. The scores are those of the five nearest of them, for the other nodes.
scores = [
    KNeighborsClassifier(5).fit(Z[labelled], block[labelled]).score(Z[rest], block[rest]) for Z in (sdr.embedding_, X)
]
figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
for rows, style in ((rest, {"s": 12, "alpha": 0.6, "linewidth": 0}), (labelled, {"s": 50, "edgecolor": "black"})):
    ax.scatter(*sdr.embedding_[rows].T, c=block[rows], cmap="tab10", vmax=9.5, **style)
ax.set(title=f"accuracy {scores[0]:.2f} in the plane, {scores[1]:.2f} with all features", xticks=[], yticks=[])
