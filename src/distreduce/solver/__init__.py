"""The solver: from a weighted sample to prototypes, coupling and map.

Read in this order: ``problem`` (what is given, and what the loop asks about the samples; ``dense`` and ``sharded``
answer), ``objective`` (J, the T-step and the Z-step), ``loop`` (all of it in order) and ``checkpoint``.
"""
