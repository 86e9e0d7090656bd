"""Checks that every formula makes of its arguments. A wrong number is worse than none."""

import math


class ArgumentError(ValueError):
    """An argument for which the formula has no meaning. Names the argument and its value."""

    def __init__(self, name, value, wanted):
        ValueError.__init__(self, "%s = %r: %s" % (name, value, wanted))
        self.name = name
        self.value = value


def _number(name, value, wanted):
    # bool is an int in Python: True parameters would count as one.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ArgumentError(name, value, wanted)
    if isinstance(value, float) and not math.isfinite(value):
        raise ArgumentError(name, value, wanted)


def quantity(name, value):
    """value >= 0 and finite: bytes, bytes per parameter. Returns value."""
    wanted = "must be a finite number, 0 or more"
    _number(name, value, wanted)
    if value < 0:
        raise ArgumentError(name, value, wanted)
    return value


def positive(name, value):
    """value > 0 and finite: a divisor that is no count. Returns value."""
    wanted = "must be a finite number above 0"
    _number(name, value, wanted)
    if value <= 0:
        raise ArgumentError(name, value, wanted)
    return value


def count(name, value):
    """value a whole number >= 1: parameters, ranks, layers, tokens. Returns an int; 7e9 is taken as 7000000000."""
    if type(value) is int and value > 0:  # nearly always; an estimate asks some eighty times
        return value
    wanted = "must be a whole number, 1 or more"
    _number(name, value, wanted)
    if value < 1 or value != int(value):
        raise ArgumentError(name, value, wanted)
    return int(value)


def finite(name, value):
    """Guards a result: an overflow to inf, or an integer beyond any float, is refused by the result's name."""
    wanted = "the result overflows; check the magnitude of the arguments"
    try:
        if not math.isfinite(float(value)):
            raise ArgumentError(name, value, wanted)
    except OverflowError:
        raise ArgumentError(name, "about 10^%d" % (len(str(value)) - 1), wanted)
    return value
