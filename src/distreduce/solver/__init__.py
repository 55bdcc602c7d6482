"""The solver: from a weighted sample to prototypes, coupling and map.

Read in this order: ``problem`` (what is given), ``objective`` (J), ``steps`` (the T-step and the Z-step), ``loop``
(their alternation), ``oracle`` (what the loop asks about the samples; ``dense`` and ``sharded`` answer), ``fit`` (all
of it in order), ``result`` (what is found) and ``checkpoint``.
"""
