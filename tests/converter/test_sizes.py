import pytest

from converter.sizes import ONE, Size, product, values

A, B = Size.symbol("a"), Size.symbol("b")


def number(value):
    return Size.number(value)


def test_numbers():
    assert (number(3) + number(4) * number(5) - number(2)).value == 21
    assert (number(-7) // number(2)).value == -4
    assert (number(-7) % number(2)).value == 1
    assert number(0).value == 0
    assert (A - A).value == 0


def test_symbols_have_no_number():
    assert A.value is None
    assert (A + ONE).value is None
    assert values([A, number(2)]) == [None, 2]


def test_equal_formulas_are_equal():
    assert A + B == B + A
    assert hash(A * B) == hash(B * A)
    assert (A + ONE) * (A - ONE) == A * A - ONE
    assert A != B
    assert number(2) * A != A
    assert product([A, number(2), B]) == number(2) * B * A


def test_division():
    assert A * B * number(6) // (number(3) * A) == number(2) * B
    assert (A * number(4) + number(8)) // number(4) == A + number(2)
    assert A * A // A == A
    assert (A + ONE) // number(2) == (ONE + A) // number(2)
    assert (A + ONE) // number(2) != A // number(2)
    assert A % number(2) == A % number(2)
    assert (A % number(2)).value is None


@pytest.mark.parametrize("zero", [number(0), A - A])
def test_division_by_zero_is_unknown(zero):
    assert (A // zero).value is None
    assert (number(4) // zero).value is None
    assert (number(4) % zero).value is None
