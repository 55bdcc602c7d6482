"""The Z-step's objective in PyTorch, on any device: the equations of `plain`, with gradients by autograd."""

from __future__ import annotations

from typing import TYPE_CHECKING

from distreduce._utils.typing import Array
from distreduce._utils.versions import import_optional
from distreduce.embedding.plain import EmbeddingProblem, Terms
from distreduce.exceptions import InvalidInputError
from distreduce.kernels import RBF, RationalQuadratic

if TYPE_CHECKING:
    from torch import Tensor


class TorchObjective:
    """``objective(Z) -> (Terms, gradient)`` with everything of size m² kept on the device in float64."""

    def __init__(self, problem: EmbeddingProblem, device: str | None = None) -> None:
        self.torch = torch = import_optional("torch", "backend='torch' needs PyTorch: pip install 'distreduce[gp]'.")
        self.problem = problem
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        try:
            torch.empty(0, device=self.device)  # fail here, not in the middle of a fit
        except (RuntimeError, AssertionError) as error:
            raise InvalidInputError(
                f"backend='torch:{self.device}' cannot be used ({str(error).splitlines()[0]}); name a device that this "
                "torch has, such as 'torch:cpu', or give 'torch' for the GPU if there is one."
            ) from error
        # Copied to the device once; each call sends Z and gets the gradient.
        self._q, self._r = self._tensor(problem.mass), self._tensor(problem.reference)
        self._A = self._tensor(problem.transported)
        if problem.supervised:
            self._B, self._omega = self._tensor(problem.target), self._tensor(problem.target_weights)
        if problem.quadratic is not None:
            self._R = self._tensor(problem.quadratic)

    def __call__(self, Z: Array) -> tuple[Terms, Array]:
        problem, z = self.problem, self._tensor(Z).requires_grad_(True)
        sq_distances = ((z[:, None, :] - z[None, :, :]) ** 2).sum(dim=2)
        structure = self._gromov_wasserstein(1.0 / (1.0 + sq_distances))
        total = problem.alpha * structure
        terms = [float(structure.detach()), 0.0, 0.0]
        if problem.supervised:
            aligned = self._dependence(self._kernel(z, sq_distances))
            total, terms[1] = total - problem.eta * aligned, float(aligned.detach())
        if problem.quadratic is not None:
            projected = 0.5 * (z * (self._R @ z)).sum()
            total, terms[2] = total + projected, float(projected.detach())
        (gradient,) = self.torch.autograd.grad(total, z)
        return Terms(*terms), gradient.cpu().numpy()

    def _tensor(self, array: Array | None) -> Tensor:
        tensor: Tensor = self.torch.tensor(array, dtype=self.torch.float64, device=self.device)
        return tensor

    def _gromov_wasserstein(self, w: Tensor) -> Tensor:
        S = self._r @ w @ self._r
        if self.problem.loss == "kl":
            return self._q @ w @ self._q / S - (self._A * w.log()).sum() + self._A.sum() * S.log()
        return self._q @ w**2 @ self._q / S**2 - 2 * (self._A * w).sum() / S

    def _kernel(self, z: Tensor, sq_distances: Tensor) -> Tensor:
        kernel = self.problem.kernel
        if isinstance(kernel, RationalQuadratic):
            return (1 + sq_distances / (2 * kernel.alpha * kernel.length_scale**2)) ** -kernel.alpha
        if isinstance(kernel, RBF):
            return self.torch.exp(-sq_distances / (2 * float(kernel.length_scale) ** 2))  # type: ignore[arg-type]
        return z @ z.T  # Linear, the only other kernel that EmbeddingProblem allows

    def _dependence(self, K: Tensor) -> Tensor:
        numerator = (K * self._B).sum()
        if self.problem.dependence == "hsic":
            return numerator
        mass = self._omega.sum()
        if self.problem.dependence == "cka":
            row = K @ self._omega / mass
            K = K - row[:, None] - row[None, :] + self._omega @ row / mass
        norm = (self._omega @ K**2 @ self._omega).sqrt()
        if float(norm.detach()) <= 1e-14 * float(mass):
            return 0.0 * numerator  # not a constant: autograd needs a graph to find the gradient zero
        return numerator / norm
