"""Warnings that point at the user's line."""

from __future__ import annotations

import os
import sys
import warnings
from functools import cache
from importlib.util import find_spec

PACKAGES = ("distreduce", "sklearn")


def warn_user(message: str, category: type[Warning]) -> None:
    """Warn at the innermost line of code outside this package and scikit-learn: the one that the user wrote."""
    if sys.version_info >= (3, 12):
        warnings.warn(message, category, skip_file_prefixes=_folders())
        return
    # Level 2 is the caller of this function, frame 1 from here.
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_folders()):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


@cache
def _folders() -> tuple[str, ...]:
    """The folders of the packages whose frames are skipped, each with a separator at its end."""
    specs = [find_spec(name) for name in PACKAGES]
    return tuple(os.path.dirname(spec.origin) + os.sep for spec in specs if spec is not None and spec.origin)
