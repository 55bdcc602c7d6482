"""Python files of the user that register methods and data sets."""

from __future__ import annotations

import importlib.util
import sys
import threading
import traceback
from pathlib import Path
from zlib import crc32

from distreduce.exceptions import InvalidInputError

Plugins = tuple[str, ...]
_LOCK = threading.Lock()  # the threads of a Dask worker share the registries


def load_plugins(paths: Plugins) -> None:
    """Import each Python file once per process, for what it registers."""
    with _LOCK:
        for path in paths:
            _load_plugin(Path(path).resolve())


def _load_plugin(path: Path) -> None:
    name = f"distreduce_plugin_{path.stem}_{crc32(str(path).encode()):08x}"  # two folders may hold files of one name
    if name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise InvalidInputError(f"--plugin {path} is not a readable Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # before it runs, as an import does: its classes can be pickled
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a file that calls exit() must not end the run
        del sys.modules[name]  # a corrected file can be loaded again
        # The line in the user's file, not the one in a library that it called.
        lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        where = f"line {lines[-1]}: " if lines else ""
        raise InvalidInputError(
            f"--plugin {path} could not be loaded: {where}{type(error).__name__}: {error}"
        ) from error
