import pytest

from byteledger import units
from byteledger.arguments import ArgumentError


@pytest.mark.parametrize("gigabytes, published_gib", [(140, 130.4), (1120, 1043)])
def test_whitepaper_units(gigabytes, published_gib):
    """Whitepaper 2.5: 140 GB is about 130.4 GiB, 1,120 GB about 1,043 GiB."""
    assert units.gib(units.from_gb(gigabytes)) == pytest.approx(published_gib, abs=0.1)


def test_accelerate_prints_mib_as_mb():
    """Accelerate's size estimator prints 413.17 'MB' for bert-base-cased's 108,310,272 FP32 parameters: they are MiB.

    https://huggingface.co/docs/accelerate/usage_guides/model_size_estimator
    """
    assert 4 * 108_310_272 / units.MiB == pytest.approx(413.17, abs=0.005)
    assert 4 * 108_310_272 / units.MB == pytest.approx(433.24, abs=0.005)


@pytest.mark.parametrize("value", [0, 1, 80, 17.5, 1120])
def test_there_and_back(value):
    assert units.gb(units.from_gb(value)) == value
    assert units.gib(units.from_gib(value)) == value


@pytest.mark.parametrize("function, argument", [(units.gb, "M"), (units.gib, "M"), (units.from_gb, "M_GB"), (units.from_gib, "M_GiB")])
@pytest.mark.parametrize("bad", [-1, float("nan"), float("inf"), True, "80", None])
def test_bad_amounts_are_refused_by_name(function, argument, bad):
    with pytest.raises(ArgumentError) as error:
        function(bad)
    assert error.value.name == argument and repr(bad) in str(error.value)


def test_an_overflow_is_refused():
    with pytest.raises(ArgumentError, match="overflows"):
        units.from_gb(1e305)
