"""Affinities C_X of the samples and C̄_Z of the prototypes, which the Gromov-Wasserstein term compares."""

from distreduce._utils.numerics import squared_distances
from distreduce.affinity.student import student_affinity
from distreduce.affinity.symmetric import SymmetricAffinity, symmetric_entropic_affinity

__all__ = ["SymmetricAffinity", "squared_distances", "student_affinity", "symmetric_entropic_affinity"]
