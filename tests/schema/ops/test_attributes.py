"""Attributes dataclasses against their tables in xnn.fbs, and what every op declares."""

import dataclasses

import numpy as np
import pytest

from schema import UnsupportedError, ops
from schema.dtypes import TO_NUMPY
from schema.generated.layout import ENUMS, TABLES, UNIONS
from schema.ops import attributes as module
from schema.ops.base import Op, attribute_dict

CLASSES = {name: c for name, c in vars(module).items() if name.endswith("Attributes")}
PYTHON_TYPES = {
    "int": "int",
    "float": "float",
    "bool": "bool",
    "[int]": "tuple[int, ...]",
    "DType": "np.dtype",
    "[float]": "tuple[float, ...]",
    "uint": "Graph",
}


def test_each_table_has_its_dataclass():
    tables = {name for name in TABLES if name.endswith("Attributes")}
    assert tables == set(CLASSES)
    assert set(UNIONS["Attributes"]) - {"NONE"} == tables


@pytest.mark.parametrize("name", CLASSES)
def test_fields_are_the_tables(name):
    """Names, order, types and defaults."""
    fields = dataclasses.fields(CLASSES[name])
    table = TABLES[name]
    assert [f.name for f in fields] == [row[0] for row in table]
    instance = CLASSES[name]()
    for field, (_, kind, default, required) in zip(fields, table, strict=True):
        value = getattr(instance, field.name)
        assert field.type == PYTHON_TYPES.get(kind, "str")
        assert not required
        if kind.startswith("["):
            assert value == ()
        elif kind == "DType":
            assert value == list(TO_NUMPY.values())[default]
        elif kind in ENUMS:
            assert ENUMS[kind][value] == default
        elif kind == "uint":
            assert value is module.NOTHING
        else:
            assert type(value)(default) == value


@pytest.mark.parametrize("name", CLASSES)
def test_instances_are_values(name):
    a, b = CLASSES[name](), CLASSES[name]()
    assert a == b and hash(a) == hash(b)
    assert list(attribute_dict(a)) == [f.name for f in dataclasses.fields(a)]
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(a, dataclasses.fields(a)[0].name, 1)


@pytest.mark.parametrize("name", ops.NAMES)
def test_every_op_declares_itself(name):
    op = ops.get(name)
    assert op.name == name
    assert op.__module__ == f"schema.ops.{name.lower()}"
    assert op.__doc__ or __import__(op.__module__, fromlist=["_"]).__doc__.startswith(f"{name}:")
    assert op.Attributes is None or op.Attributes in CLASSES.values()
    for method in ("infer", "reference"):
        assert getattr(op, method).__func__ is not getattr(Op, method).__func__
    fewest, most = op.inputs
    assert fewest >= 0 and (most is None or fewest <= most)


def test_unknown_op():
    with pytest.raises(UnsupportedError, match="FFT"):
        ops.get("FFT")


def test_activation_ranges():
    for name, expected in [
        ("NONE", (-np.inf, np.inf)),
        ("RELU", (0, np.inf)),
        ("RELU6", (0, 6)),
        ("RELU_N1_TO_1", (-1, 1)),
    ]:
        assert module.activation_range(module.ArithmeticAttributes(name)) == expected
    assert module.activation_range(module.ArithmeticAttributes("CLAMP", -2.0, 3.0)) == (-2, 3)
