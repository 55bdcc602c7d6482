"""The commands ``distreduce reproduce`` and ``distreduce bench``, found through entry points; cheap to import."""
