"""What a reader did besides reading: the interpreter reports it, wherever in a library it happens."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# Running something, loading code or objects, talking to others, changing the disk.
FORBIDDEN = {
    "exec", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "subprocess.Popen", "pickle.find_class",
    "marshal.loads", "socket.connect", "socket.bind", "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.chmod",
    "os.symlink", "os.link", "os.truncate", "shutil.rmtree",
}  # fmt: skip
OWN = ("/typing.py", "/inspect.py", "/jinja2/environment.py")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_watching: list[tuple[Path | None, list[str]]] = []  # an audit hook cannot be taken out again, so it asks here


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watching:
        return
    folder, seen = _watching[-1]
    if event == "open":
        path, mode, flags = arguments
        writes = (flags or 0) & WRITING if mode is None else set(str(mode)) & set("wax+")
        if writes and not _inside(path, folder):
            seen.append(f"wrote {path!r:.200}")
    elif event == "import" and arguments[0].partition(".")[0] not in sys.modules.keys() | sys.stdlib_module_names:
        seen.append(f"imported {arguments[0]!r}")
    elif event in FORBIDDEN and not _inside(arguments[0] if arguments else None, folder) and not _our_own_code(event):
        seen.append(f"{event} {arguments!r:.200}")


def _inside(path: Any, folder: Path | None) -> bool:
    known = folder is not None and isinstance(path, str | os.PathLike)
    return known and folder in Path(os.path.abspath(path)).parents


def _our_own_code(event: str) -> bool:
    """Imports, which are judged by their name; annotations of our commands; the templates of our pages."""
    frame: Any = sys._getframe() if event in ("exec", "marshal.loads") else None
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith("<frozen importlib") or file.endswith(
            ("/typing.py", "/inspect.py", "/jinja2/environment.py")
        ):
            return True
        frame = frame.f_back
    return False


sys.addaudithook(_hook)


@contextmanager
def watching(folder: Path | None) -> Iterator[list[str]]:
    """A list that fills with whatever is done that a reader must not do; writing is allowed inside `folder` only."""
    seen: list[str] = []
    _watching.append((folder, seen))
    try:
        yield seen
    finally:
        _watching.pop()
