"""
Nodes of a graph, with and without features
===========================================

A graph says who is near whom. Given as ``affinity``, it takes the place of the neighbourhoods in X: the prototypes
summarise the graph, and the features, if there are any, drive the map.
"""

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
from sklearn.cluster import SpectralClustering
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import KNeighborsClassifier

from distreduce import SDR, DistR

# %%
# Zachary's karate club: 34 members, who met outside of the club, and split into two. The graph is all there is:
# ``affinity="precomputed"`` takes the matrix of its edges as X. DistR does not know of the split.
club = nx.karate_club_graph()
edges = nx.to_numpy_array(club)
side = np.array([club.nodes[node]["club"] == "Officer" for node in club]).astype(int)
model = DistR(affinity="precomputed", random_state=0).fit(edges)
found = SpectralClustering(2, affinity="precomputed", random_state=0).fit_predict(edges)
few = DistR(n_prototypes=2, affinity="precomputed", random_state=1).fit(edges)
print(f"agreement with the split, two prototypes: {adjusted_rand_score(side, few.labels_):.2f}")
print(f"agreement with the split, spectral clustering: {adjusted_rand_score(side, found):.2f}")

figure, ax = plt.subplots(figsize=(6, 5), layout="constrained")
for one, other in club.edges:
    ax.plot(*model.embedding_[[one, other]].T, color="#DDDDDD", linewidth=0.7, zorder=0)
ax.scatter(*model.embedding_.T, c=side, cmap="coolwarm", s=20 + 8 * edges.astype(bool).sum(axis=0), edgecolor="white")
ax.set(title="the karate club by its edges alone; colours are the later sides", xticks=[], yticks=[])


# %%
# A stochastic block model: 300 nodes in four blocks. A node knows 10 % of its own block and 3 % of the others, and has
# eight features, of which four say a little about the block. Eight nodes of each block have a label. Direct edges are
# too few to tell blocks apart, so we count random walks instead, as DeepWalk and node2vec do: their word-vector loss
# factorises the logarithm below (Qiu et al., 2018), which makes it a similarity, and its leading vectors coordinates.
def walk_similarity(A, window=5):
    degree = A.sum(axis=1)
    step = A / degree[:, None]
    walks = sum(np.linalg.matrix_power(step, length) for length in range(1, window + 1))
    return np.log(np.maximum(A.sum() / window * walks / degree, 1.0))


def walk_vectors(S, dimension=16):
    vectors, sizes, _ = np.linalg.svd(S)
    return vectors[:, :dimension] * np.sqrt(sizes[:dimension])


rng, block = np.random.default_rng(1), np.repeat(np.arange(4), 75)
A = nx.to_numpy_array(nx.stochastic_block_model([75] * 4, np.full((4, 4), 0.03) + 0.07 * np.eye(4), seed=1))
X = rng.normal(size=(300, 8)) + 1.2 * np.eye(4, 8)[block]
labelled = np.concatenate([rng.choice(np.flatnonzero(block == b), 8, replace=False) for b in range(4)])
known, rest = np.full(300, np.nan), np.setdiff1d(np.arange(300), labelled)
known[labelled] = block[labelled]

S = walk_similarity(A)
N = walk_vectors(S)
sdr = SDR(affinity=S, task="classification", random_state=0).fit(np.hstack([X, N]), known)
nearest = KNeighborsClassifier(5)
figure, axes = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
for ax, places, name in zip(axes, (N[:, :2], sdr.embedding_), ("walk vectors", "SDR, graph and features"), strict=True):
    inputs = N if name == "walk vectors" else places
    score = nearest.fit(inputs[labelled], block[labelled]).score(inputs[rest], block[rest])
    ax.scatter(*places[rest].T, c=block[rest], cmap="tab10", vmax=9.5, s=12, alpha=0.6, linewidth=0)
    ax.scatter(*places[labelled].T, c=block[labelled], cmap="tab10", vmax=9.5, s=50, edgecolor="black")
    ax.set(title=f"{name}: accuracy {score:.2f}", xticks=[], yticks=[])

# %%
# Large marks are the labelled nodes, and the score is that of the five nearest of them for the other nodes (for walk
# vectors in all 16 dimensions).
