"""Deep kernel learning: a network and the Gaussian process on its outputs, trained together."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from distreduce.estimators._targets import read_known_labels, require_targets
from distreduce.gp._dirichlet import DirichletTargets
from distreduce_paper.baselines._gp_heads import ClassificationHead, RegressionHead
from distreduce_paper.baselines._networks import (
    FeatureNetwork,
    convolutional_network,
    multilayer_perceptron,
    read_image_shape,
)
from distreduce_paper.baselines._torch_training import (
    TorchRegressor,
    adam,
    as_tensor,
    own_random_numbers,
    predict_in_chunks,
)
from distreduce_paper.problems import Array


class BaseDKL(BaseEstimator):
    """Parameters and training of deep kernel learning."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_components": [Interval(Integral, 1, None, closed="left")],
        "hidden_layer_sizes": ["array-like"],
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither"), StrOptions({"auto"})],
        "network_learning_rate": [Interval(Real, 0, None, closed="neither")],
        "pretrained": ["boolean"],
        "pretraining_epochs": [Interval(Integral, 1, None, closed="left")],
        "pretraining_learning_rate": [Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_components: int = 2,
        *,
        hidden_layer_sizes: Any = (1000, 500, 50),
        n_epochs: int = 20,
        learning_rate: float | str = "auto",
        network_learning_rate: float = 0.01,
        pretrained: bool = False,
        pretraining_epochs: int = 75,
        pretraining_learning_rate: float = 1e-3,
        random_state: Any = None,
    ) -> None:
        self.n_components = n_components
        self.hidden_layer_sizes = hidden_layer_sizes
        self.n_epochs = n_epochs
        self.learning_rate = learning_rate
        self.network_learning_rate = network_learning_rate
        self.pretrained = pretrained
        self.pretraining_epochs = pretraining_epochs
        self.pretraining_learning_rate = pretraining_learning_rate
        self.random_state = random_state

    def _train(self, X: Tensor, features: FeatureNetwork, head: RegressionHead | ClassificationHead) -> None:
        """Train network and GP together on the marginal likelihood, and set the fitted attributes."""
        # The paper's rates, with and without pretraining.
        rate = (0.01 if self.pretrained else 0.1) if self.learning_rate == "auto" else float(self.learning_rate)
        rates: dict[nn.Module, float] = {features: self.network_learning_rate, head: rate}
        self.loss_curve_ = adam(lambda: head.loss(features(X)), rates, self.n_epochs)
        with torch.no_grad():
            # Training features moved with the network: fix them, and condition the GP on the final ones.
            head.condition_on(features.freeze(X))
        self.network_, self.gp_ = features, head

    def _pretrain(
        self, X: Tensor, y: Tensor, features: FeatureNetwork, n_outputs: int, loss: Callable[[Tensor, Tensor], Tensor]
    ) -> None:
        """Train the network alone under a linear output layer, which is then discarded."""
        output = nn.Linear(self.n_components, n_outputs, dtype=torch.float64)
        rates = dict.fromkeys((features, output), self.pretraining_learning_rate)
        # Unscaled outputs, because the linear layer has a scale of its own.
        adam(lambda: loss(output(features.raw(X)), y), rates, self.pretraining_epochs)


class DKLRegressor(BaseDKL, TorchRegressor):
    """Deep kernel learning [1]_: an exact GP on the outputs of a network, both trained on the marginal likelihood.

    The network d–1000–500–50–p has ReLU activations, and its outputs are scaled to [−1, 1]. The GP has an RBF-ARD
    kernel and Gaussian noise; with several targets it is a multi-task GP. Features are used on the scale they have:
    standardise them.

    Parameters
    ----------
    n_components : int, default=2
        Number p of outputs of the network.
    hidden_layer_sizes : sequence of int, default=(1000, 500, 50)
        Widths of the hidden layers.
    n_epochs : int, default=20
        Number of steps of Adam; each uses all samples.
    learning_rate : float or "auto", default="auto"
        Learning rate of the GP; "auto" is 0.1, or 0.01 on a pretrained network.
    network_learning_rate : float, default=0.01
        Learning rate of the network.
    pretrained : bool, default=False
        Train the network first, alone, under a linear output layer and the squared loss ("DKL-pretrained").
    pretraining_epochs : int, default=75
        Number of steps of Adam in the pretraining; each uses all samples.
    pretraining_learning_rate : float, default=1e-3
        Learning rate of the pretraining.
    random_state : int, RandomState or None, default=None
        Seed of the initial weights.

    Attributes
    ----------
    network_ : FeatureNetwork
        The trained network.
    gp_ : RegressionHead
        The trained GP (GPyTorch).
    loss_curve_ : list of float
        Negative log marginal likelihood per sample at each epoch of the joint training.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    Decision 13 says how the rates and the noise were chosen, and compares the results with the paper's.

    References
    ----------
    .. [1] Wilson, Hu, Salakhutdinov, Xing (2016). Deep kernel learning. AISTATS.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from distreduce_paper.baselines.dkl import DKLRegressor
    >>> X, y = make_friedman1(100, random_state=0)
    >>> mean, std = DKLRegressor(random_state=0).fit(X, y).predict(X[:3], return_std=True)
    >>> mean.shape, std.shape
    ((3,), (3,))
    """

    def _train_model(self, X: Tensor, targets: Tensor) -> None:
        features = FeatureNetwork(multilayer_perceptron(X.shape[1], self.hidden_layer_sizes, self.n_components))
        if self.pretrained:
            # The linear layer predicts a table, also for one target.
            table = targets.reshape(len(targets), -1)
            self._pretrain(X, table, features, table.shape[1], mse_loss)
        # Placeholders for the features, which `condition_on` sets after training.
        head = RegressionHead(torch.zeros(len(X), self.n_components, dtype=torch.float64), targets)
        self._train(X, features, head)

    def _mean_and_std(self, X: Tensor) -> tuple[Tensor, Tensor]:
        return self.gp_.mean_and_std(self.network_.features(X))


class DKLClassifier(ClassifierMixin, BaseDKL):
    """Deep kernel learning [1]_ with a Dirichlet-likelihood GP [2]_, both trained on the marginal likelihood by Adam.

    Images pass through convolutions (20 and 50 channels of 5 × 5, each with 2 × 2 max pooling) before the fully
    connected layers. The latent functions of the classes share one RBF-ARD kernel, so that a step costs one
    factorisation for any number of classes. Features are used on the scale they have.

    The other parameters and attributes are those of :class:`DKLRegressor`, with ``n_components=10`` and ``n_epochs=50``
    by default. The pretraining has the cross-entropy as its loss, and `loss_curve_` is summed over the classes.

    Parameters
    ----------
    image_shape : "auto", (height, width) or None, default="auto"
        Shape of the image in a row of X; None if rows are not images. "auto": rows are square images if their number of
        features is the square of a number of at least 16.
    alpha_epsilon : float, default=0.01
        Concentration of the Dirichlet likelihood for the other classes of a sample.
    n_draws : int, default=256
        Number of posterior draws that class probabilities average over.

    Attributes
    ----------
    classes_ : array
        Labels.
    draws_ : (n_draws, n_classes) array
        Standard normal draws that class probabilities average over.

    References
    ----------
    .. [1] Wilson, Hu, Salakhutdinov, Xing (2016). Deep kernel learning. AISTATS.
    .. [2] Milios et al. (2018). Dirichlet-based Gaussian processes for large-scale calibrated classification. NeurIPS.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from distreduce_paper.baselines.dkl import DKLClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> DKLClassifier(n_epochs=5, random_state=0).fit(X, y).predict_proba(X[:2]).shape
    (2, 3)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseDKL._parameter_constraints,
        "image_shape": [StrOptions({"auto"}), tuple, None],
        "alpha_epsilon": [Interval(Real, 0, None, closed="neither")],
        "n_draws": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_components: int = 10,
        *,
        hidden_layer_sizes: Any = (1000, 500, 50),
        image_shape: Any = "auto",
        n_epochs: int = 50,
        learning_rate: float | str = "auto",
        network_learning_rate: float = 0.01,
        pretrained: bool = False,
        pretraining_epochs: int = 75,
        pretraining_learning_rate: float = 1e-3,
        alpha_epsilon: float = 0.01,
        n_draws: int = 256,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_components, hidden_layer_sizes=hidden_layer_sizes, n_epochs=n_epochs, learning_rate=learning_rate,
            network_learning_rate=network_learning_rate, pretrained=pretrained, pretraining_epochs=pretraining_epochs,
            pretraining_learning_rate=pretraining_learning_rate, random_state=random_state,
        )  # fmt: skip
        self.image_shape = image_shape
        self.alpha_epsilon = alpha_epsilon
        self.n_draws = n_draws

    def fit(self, X: Any, y: Any) -> DKLClassifier:
        """Train network and GP on X (n_samples, n_features) and labels y; an image is a row of pixels, line by line."""
        self._validate_params()
        require_targets(self, y)
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        self.classes_, labels = read_known_labels(y, len(X))
        inputs, n_classes = as_tensor(X), len(self.classes_)
        with own_random_numbers(self.random_state):
            # Weights, then draws: they share one seeded stream, so their order is part of the result.
            features = FeatureNetwork(self._network(X.shape[1]))
            if self.pretrained:
                self._pretrain(inputs, as_tensor(labels), features, n_classes, cross_entropy)
            head = ClassificationHead(self.n_components, DirichletTargets.of(labels, n_classes, self.alpha_epsilon))
            self._train(inputs, features, head)
            self.draws_ = torch.randn(self.n_draws, n_classes, dtype=torch.float64).numpy()
        return self

    def _network(self, n_features: int) -> torch.nn.Module:
        shape = read_image_shape(self.image_shape, n_features)
        if shape is None:
            return multilayer_perceptron(n_features, self.hidden_layer_sizes, self.n_components)
        return convolutional_network(shape, self.hidden_layer_sizes, self.n_components)

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, in the order of `classes_`; no row depends on the rest of its batch."""
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        (found,) = predict_in_chunks(
            lambda rows: (self.gp_.probabilities(self.network_.features(rows), self.draws_),), X
        )
        return found

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class of each sample: (n_samples,)."""
        best = self.predict_proba(X).argmax(axis=1)  # first, because it checks that the model is fitted
        return np.asarray(self.classes_[best])
