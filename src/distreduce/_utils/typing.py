"""Aliases for the arrays and paths that every room passes around, and `Self`, which Python 3.10 does not have."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Array: TypeAlias = NDArray[Any]
Index: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]
FilePath: TypeAlias = str | os.PathLike[str]
# A coupling T (n, m): row i holds the mass that sample i sends to each prototype.
Plan: TypeAlias = sparse.csr_array

if TYPE_CHECKING:
    from typing_extensions import Self as Self
else:
    Self = Any
