"""The sub-commands of ``distreduce``; files with an underscore hold what they share."""
