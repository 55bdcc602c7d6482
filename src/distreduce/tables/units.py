"""Texts that are a number with a unit, such as "€ 1,250", "15.5 °C" or "80 m2"."""

from __future__ import annotations

import re

CURRENCY = "[$€£¥₹]|EUR|USD|GBP|CHF|JPY|SEK|NOK|DKK|CAD|AUD"
# What may stand behind the number. Digits and second words only in units that are known, and letters without a blank,
# too: "12A" and "12 B2" are codes, "12 Main Street" is an address.
UNITS = (
    rf"\s*(?:{CURRENCY}|[%‰℃℉]|[°º](?:\s?[CFK])?)",
    r"\s+[^\W\d_][^\s\d]{0,9}",  # any single word
    r"\s*(?:[^\W\d_]{1,6}/)?(?:[kcdmµn]?m|ft|in|yd|mi)\^?[23](?:/[^\W\d_]{1,5})?|\s*m/s\^?[2²]",  # m2, kg/m3, m3/h
    r"\s+(?:sq|cu|square|cubic|fl)\.?\s+[^\W\d_]{1,7}\.?",  # sq m, fl oz
    r"\s+(?:[kmµ]?g|t|lbs?|tons?|tonnes?)(?:/[^\W\d_]{1,4})?\s+CO[2₂](?:-?eq?)?(?:/[^\W\d_]{1,4})?",  # g CO2
    r"(?:[kmµ]g|lbs?|oz|[kcmµn]m|[mcd]l|ft|[kMG]?Hz|[kMGT]W|[kMG]?Wh|[kMGT]B|[hkM]Pa|m²|m³|km/h|mph|ms|dB|ppm|rpm|bpm)",
)
MEASURE = re.compile(
    rf"(?:(?P<sign>[+-]?)(?P<before>{CURRENCY})\s*)?(?P<number>[+-]?[\d,'.]*\d)(?P<after>{'|'.join(UNITS)})?"
)
THOUSANDS = re.compile(r"[+-]?\d{1,3}([,'])\d{3}(\1\d{3})*(\.\d+)?")
CONTINENTAL = re.compile(r"[+-]?(?:\d{1,3}(?:\.\d{3})+(?:,\d+)?|\d*,\d+)")  # 1.250 or 1.250,5 or 0,5


def strip_unit(text: str) -> tuple[str, str]:
    """Return the number in a text such as "€ 1,250" or "12%" without marks of thousands, and its unit ("" if none).

    The text itself is returned if it is not a number with a unit: "12 kg 5", "1,5" or "A7".
    """
    found = MEASURE.fullmatch(text)
    if found is None:
        return text, ""
    number = found["number"]
    if "," in number or "'" in number:
        if not THOUSANDS.fullmatch(number):
            return text, ""
        number = re.sub("[,']", "", number)
    unit = " ".join(((found["before"] or "") + (found["after"] or "")).split())
    return (found["sign"] or "") + number, re.sub("([°º]) ", r"\1", unit)  # "° C" is "°C"


def use_point(text: str) -> str:
    """Return a number of a file with decimal commas, with or without a unit, with a point: "1.250,5 €" is "1250.5 €".

    Other texts are returned as they are.
    """
    found = MEASURE.fullmatch(text)
    if found is None or not CONTINENTAL.fullmatch(found["number"]):
        return text
    start, stop = found.span("number")
    return text[:start] + found["number"].replace(".", "").replace(",", ".") + text[stop:]
