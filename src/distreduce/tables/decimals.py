"""Whether numbers are written with a decimal comma."""

from __future__ import annotations

import re
from itertools import zip_longest

from distreduce.exceptions import InvalidInputError
from distreduce.tables.header import Header

POINT, COMMA = re.compile(r"[+-]?\d*\.\d+"), re.compile(r"[+-]?\d*,\d+")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")  # 1,250 may be either; 0,250 is a fraction


def decimal_sign(header: Header, where: str) -> str:
    """The comma, if it does not separate cells, some number has one and none has a point.

    A single number that is no count of thousands tells for all columns: no program writes both.
    """
    columns = [[cell.strip() for cell in column] for column in zip_longest(*header.rows, fillvalue="")]
    if header.separator == "," or any(POINT.fullmatch(cell) for column in columns for cell in column):
        return "."
    doubtful = None
    for name, column in zip(header.names, columns, strict=False):
        commas = [cell for cell in column if COMMA.fullmatch(cell) or THOUSANDS.fullmatch(cell)]
        if any(not THOUSANDS.fullmatch(cell) for cell in commas):
            return ","
        if commas and doubtful is None:
            doubtful = name, commas[0]
    if doubtful is None:
        return "."
    raise InvalidInputError(
        f"Column {doubtful[0]!r} of {where} has {doubtful[1]!r}, which may mean thousands or a fraction, and no other "
        "number of the file tells. Write thousands without a sign (1250), fractions with a point (1.25)."
    )
