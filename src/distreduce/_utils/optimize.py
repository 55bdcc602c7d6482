"""Adam with its usual constants, the optimiser of the paper."""

from __future__ import annotations

import numpy as np

from distreduce._utils.typing import Array


class Adam:
    r"""The moving averages of Kingma & Ba (2015), with :math:`\beta_1 = 0.9, \beta_2 = 0.999`.

    .. math:: x \leftarrow x - \gamma\,\frac{m_t/(1-\beta_1^t)}{\sqrt{v_t/(1-\beta_2^t)} + 10^{-8}}
    """

    def __init__(self, learning_rate: float) -> None:
        self.learning_rate, self.n_steps = learning_rate, 0
        self.first: Array | float = 0.0
        self.second: Array | float = 0.0

    def step(self, x: Array, gradient: Array) -> Array:
        """The next point."""
        self.n_steps += 1
        self.first = 0.9 * self.first + 0.1 * gradient
        self.second = 0.999 * self.second + 0.001 * gradient**2
        mean, square = self.first / (1 - 0.9**self.n_steps), self.second / (1 - 0.999**self.n_steps)
        return np.asarray(x - self.learning_rate * mean / (np.sqrt(square) + 1e-8))
