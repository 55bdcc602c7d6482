"""
Two data sets: two fits in one plane, or one set of prototypes for both
=======================================================================

A reduction has no orientation, origin or scale of its own, so two fits cannot be compared as they are.
``align_embedding`` lays a later fit over an earlier one, and ``drift`` measures the change that is left. If both data
sets are at hand, a single fit gives them common prototypes.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from distreduce import SDR, align_embedding
from distreduce.metrics import drift

# %%
# Two samples of wines. In the later one the second grower's wines have changed: their features are those of random
# wines. Nothing else has.
X, y = load_wine(return_X_y=True)
X, rng = StandardScaler().fit_transform(X), np.random.default_rng(0)
half = rng.permutation(len(X)) % 2 == 0
changed = np.where((y == 1)[:, None], rng.permutation(X), X)
earlier, same, later = (
    SDR(random_state=0).fit(table[rows], y[rows]) for table, rows in ((X, half), (X, ~half), (changed, ~half))
)

# %%
# How far apart are fits to two halves of the same wines? That much is chance. With 89 wines in each half it is as much
# as the change of a whole grower brings about: this drift would prove nothing. Always compute both numbers.
print(f"drift by chance {drift(earlier, same, X):.2f}, after the change {drift(earlier, later, X):.2f}")

# %%
# All wines in the earlier plane, by the earlier fit and by the two others: the growers lie in the same places, and can
# be compared by eye. The second grower's wines reach into the others' after the change.
figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), sharex=True, sharey=True, layout="constrained")
places = {
    "earlier fit": earlier.transform(X),
    "other half, nothing changed": align_embedding(same, earlier, X),
    "later fit, second grower changed": align_embedding(later, earlier, X),
}
for ax, (title, Z) in zip(axes, places.items(), strict=True):
    ax.scatter(*Z.T, c=y, cmap="tab10", vmax=9.5, s=14)
    ax.set(title=title, xticks=[], yticks=[])


# %%
# One fit to both samples. A prototype is then the same thing in both, and its weight in each of them says what has
# become rarer or more frequent. Again chance comes first: the same fit to two halves in which nothing has changed.
def differ(first, second):
    """Fit 12 prototypes to both samples, and return half of the sum of the differences of their weights."""
    model = SDR(n_prototypes=12, random_state=0).fit(np.vstack([first, second]), np.r_[y[half], y[~half]])
    shares = model.coupling_.toarray()
    return 0.5 * np.abs(shares[: len(first)].mean(axis=0) - shares[len(first) :].mean(axis=0)).sum()


by_chance, after = differ(X[half], X[~half]), differ(X[half], changed[~half])
print(f"weight that differs by chance {by_chance:.2f}, after the change {after:.2f}")
