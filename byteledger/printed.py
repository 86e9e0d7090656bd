"""Numbers as they are printed: rounding happens here and nowhere else. Pages, tables and the command line share it."""

from decimal import ROUND_HALF_UP, Context, Decimal

_EXACT = Context(prec=60)
_UNITS = {"GB": 10**9, "GiB": 2**30, "MB": 10**6, "MiB": 2**20, "B": 1}


def number(value, places):
    """value with at most `places` decimals, half away from zero, thousands separated, no trailing or negative zero."""
    exact = _decimal(value)
    rounded = exact.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP, context=_EXACT)
    if rounded == 0:
        rounded = abs(rounded)
    text = "{:,f}".format(rounded)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _decimal(value):
    # repr, so that 2.675 rounds as it is written and not as the nearest binary fraction.
    return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)


def amount(value, unit):
    """Bytes as a bare number in a unit: 140000000000 in GB is '140'.

    No decimals from 1,000 on, one from 10, two from 1, else three significant digits.
    """
    scaled = _EXACT.divide(_decimal(value), Decimal(_UNITS[unit]))
    magnitude = abs(scaled)
    if magnitude >= 1000:
        return number(scaled, 0)
    if magnitude >= 10:
        return number(scaled, 1)
    if magnitude >= 1 or magnitude == 0:
        return number(scaled, 2)
    return number(scaled, 2 - magnitude.adjusted())


def bare(value, kind, unit=None):
    """A quantity without its unit, for a table whose heading says it."""
    if kind == "bytes":
        return amount(value, unit or "GB")
    if kind == "bytes per parameter":
        return number(value, 6)
    if kind in ("multiple", "bytes per element"):
        return number(value, 2)
    if kind == "percent":
        return number(value, 1 if not 0 < value < 1 else 1 - _decimal(value).adjusted())  # 0.06 %, not 0.1 or 0
    if kind in ("signed percent", "fine percent"):  # two digits that count: 12.3, 0.0041
        magnitude = abs(_decimal(value))
        text = number(value, 1 if magnitude >= 1 or not magnitude else 1 - magnitude.adjusted())
        return "+" + text if kind == "signed percent" and value > 0 else text
    return number(value, 0)


def unit_of(kind, unit=None):
    """The unit as it is printed."""
    return {"bytes": unit or "GB", "bytes per parameter": "B/parameter", "bytes per element": "B/element", "exact bytes": "B", "multiple": "×", "percent": "%", "signed percent": "%", "fine percent": "%", "MiB": "MiB", "GiB": "GiB", "GB/s": "GB/s"}.get(kind, "")


def phrase(value, kind, unit=None):
    """A quantity with its unit: '140 GB', '16 B/parameter', '8×'."""
    printed = unit_of(kind, unit)
    return bare(value, kind, unit) + ("" if printed in ("", "×", "%") else " ") + printed
