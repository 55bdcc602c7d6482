"""Ways to spoil a file, all drawn from one generator: a seed says which input it was."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import numpy as np

Rng = np.random.Generator
Spoil = Callable[[bytes, Rng], bytes]

# Texts that mean something to somebody: paths, code, formulas, NaN and infinity, marks of other formats.
TEXTS = (
    "../../outside", "/tmp/outside", "..\\outside", "file:///etc/passwd", "a\x00b", "", " ", "\n", '"', "'", "\\",
    ",,,,",
    "__import__('os').system('touch outside')", "{{7*7}}", "${HOME}", "=cmd|' /C calc'!A0", "</script><script>",
    "cos\nsystem\n(S'touch outside'\ntR.", "!!python/object/apply:os.system", "%s%n", "%", "(?P<", "\ud83d\ude00",
    "NaN", "Infinity", "-inf", "1e999", "-1", "0", "1e-320", "9" * 400, "1" * 5000, "0x7f", "1_0", "٣", "NA", "null",
    "true", "1970-01-01", "9999-99-99", "31.02.2020", "\ufeff", "\u202e", "A" * 70_000, "[" * 3000, '{"a":' * 3000,
)  # fmt: skip
NUMBERS = (0, 1, 7, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1)
NODES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**70, 10**400, -(10**400), 0.5, 1e308, -1e308, 1e-320, [], {}, [[]],
    [0], [None], ["x"], [1, 2], [-1, 2**62], {"kind": "array"}, {"kind": "csr"}, {"kind": "kernel", "class": "RBF"},
    {"__class__": "os.system"}, "array", "csr", "text", "float64", "object", "|O", "F",
)  # fmt: skip
DEPTH = 40_000  # far beyond what Python's own recursion allows


def spoil_bytes(raw: bytes, rng: Rng) -> bytes:
    """One to four damages that know nothing of the format."""
    for _ in range(int(rng.integers(1, 5))):
        raw = bytes(_DAMAGES[rng.integers(len(_DAMAGES))](bytearray(raw), rng))
    return raw


def _place(raw: bytearray, rng: Rng) -> int:
    """Anywhere, though half of the time near the start or the end, where headers and directories stand."""
    where = rng.integers(4)
    near = int(rng.integers(0, 64))
    return (
        min(len(raw), near)
        if where == 0
        else max(0, len(raw) - near)
        if where == 1
        else int(rng.integers(len(raw) + 1))
    )


def _flip(raw: bytearray, rng: Rng) -> bytearray:
    place = _place(raw, rng)
    if place < len(raw):
        raw[place] ^= 1 << int(rng.integers(8))
    return raw


def _cut(raw: bytearray, rng: Rng) -> bytearray:
    return raw[: _place(raw, rng)]


def _drop(raw: bytearray, rng: Rng) -> bytearray:
    place = _place(raw, rng)
    del raw[place : place + int(rng.integers(1, 64))]
    return raw


def _repeat(raw: bytearray, rng: Rng) -> bytearray:
    start, to = _place(raw, rng), _place(raw, rng)
    raw[to:to] = raw[start : start + int(rng.integers(1, 512))]
    return raw


def _number(raw: bytearray, rng: Rng) -> bytearray:
    """A length, a count or an offset that lies."""
    place, size = _place(raw, rng), int(rng.choice([1, 2, 4, 8]))
    lie = NUMBERS[rng.integers(len(NUMBERS))] % 256**size
    raw[place : place + size] = lie.to_bytes(size, "little")
    return raw


def _noise(raw: bytearray, rng: Rng) -> bytearray:
    place = _place(raw, rng)
    raw[place : place + int(rng.integers(0, 16))] = rng.bytes(int(rng.integers(1, 32)))
    return raw


def _text(raw: bytearray, rng: Rng) -> bytearray:
    place = _place(raw, rng)
    raw[place : place + int(rng.integers(0, 8))] = text(rng).encode("utf-8", "surrogatepass")
    return raw


_DAMAGES = (_flip, _flip, _cut, _drop, _repeat, _number, _noise, _text)


def text(rng: Rng) -> str:
    """One of `TEXTS`."""
    return TEXTS[rng.integers(len(TEXTS))]


def node(rng: Rng) -> Any:
    """A value of JSON where another was expected."""
    return text(rng) if rng.random() < 0.3 else copy.deepcopy(NODES[rng.integers(len(NODES))])


def spoil_tree(document: Any, rng: Rng) -> Any:
    """Put another value, or none, in one to three places of a tree, or something very deep."""
    for _ in range(int(rng.integers(1, 4))):
        places = _places(document)
        if not places:
            return node(rng)
        holder, key = places[rng.integers(len(places))]
        if rng.random() < 0.2:
            del holder[key]
        elif rng.random() < 0.1 and isinstance(holder, dict):
            holder[text(rng)] = holder.pop(key)
        else:
            holder[key] = node(rng)
    return document


def _places(tree: Any) -> list[tuple[Any, Any]]:
    items = list(tree.items()) if isinstance(tree, dict) else list(enumerate(tree)) if isinstance(tree, list) else []
    return [(tree, key) for key, _ in items] + [place for _, part in items for place in _places(part)]


def spoil_json(raw: bytes, rng: Rng) -> bytes:
    """A file of JSON whose tree is another, or that is nested very deep."""
    if rng.random() < 0.02:
        return b"[" * DEPTH + b"]" * DEPTH
    return json.dumps(spoil_tree(json.loads(raw), rng)).encode()


def spoil_json_lines(raw: bytes, rng: Rng) -> bytes:
    """One of the lines spoilt."""
    lines = raw.splitlines()
    chosen = rng.integers(len(lines))
    lines[chosen] = spoil_json(lines[chosen], rng)
    return b"\n".join(lines) + b"\n"


def spoil_cells(raw: bytes, rng: Rng) -> bytes:
    """Cells, names, separators and quotes of a text table."""
    lines = raw.decode().splitlines()
    separator = "\t" if "\t" in lines[0] else ","
    for _ in range(int(rng.integers(1, 6))):
        row = 0 if rng.random() < 0.3 else int(rng.integers(len(lines)))
        cells = lines[row].split(separator)
        kind, chosen = rng.integers(6), rng.integers(len(cells))
        if kind < 3:
            cells[chosen] = text(rng)
        elif kind == 3:
            cells = cells * int(rng.integers(0, 4))
        elif kind == 4:
            cells[chosen] = cells[rng.integers(len(cells))]
        else:
            separator = str(rng.choice([",", ";", "\t", "|", " "]))
        lines[row] = separator.join(cells)
    encoding = str(rng.choice(["utf-8", "utf-8", "utf-16", "cp1252", "utf-8-sig"]))
    return str(rng.choice(["\n", "\n", "\r\n", "\r"])).join(lines).encode(encoding, "replace")
