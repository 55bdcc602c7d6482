"""The sub-commands of ``distreduce``, a file each."""
