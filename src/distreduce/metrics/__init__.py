"""How good a reduction is: scores of prototypes against labels, as DistR defines them, and the dependence measures."""

from distreduce.dependence import cka, hsic
from distreduce.metrics.clustering import homogeneity, kmeans_nmi, weighted_silhouette
from distreduce.metrics.reduction import reduction_scores

__all__ = ["cka", "homogeneity", "hsic", "kmeans_nmi", "reduction_scores", "weighted_silhouette"]
