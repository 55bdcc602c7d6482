"""The prototypes Z: Gromov-Wasserstein and dependence terms of the Z-step, and its optimizers."""
