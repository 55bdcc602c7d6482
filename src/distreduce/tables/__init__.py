"""People's own tables: read a file into typed columns, then encode these as X and y.

The pipeline is `reading` (file -> features and targets), `columns` (what each column holds), `recipe` (learn, apply and
save the encoding), `target` (y) and `prepare` (all of it). docs/command-line.md states the rules.
"""
