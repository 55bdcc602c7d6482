"""People's own tables: a file read into typed columns, and the recipe that turns these into X and y.

The rules are stated in docs/command-line.md; ``distreduce fit`` says which of them it used for each column.
"""
