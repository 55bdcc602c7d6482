"""The outer loop: T-steps and Z-steps in turn, from a problem to a result."""
