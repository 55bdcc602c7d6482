"""Sub-commands that `distreduce` finds through its entry points: reproduce and bench."""
