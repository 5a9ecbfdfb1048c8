"""Sections, checksums and the footer."""

import pytest

import schema
from schema import container
from schema.errors import FormatError
from tests.corpus.binary import entry

METADATA = b"\x08\0\0\0XNN1metadata"


@pytest.fixture
def file() -> bytes:
    return container.pack({container.METADATA: METADATA, container.WEIGHTS: b"w" * 100}, 64)


def test_sections_come_back(file):
    sections = container.unpack(file)
    assert bytes(sections[container.METADATA]) == METADATA
    assert bytes(sections[container.WEIGHTS]) == b"w" * 100


def test_weights_are_aligned(file):
    assert file.index(b"www") % 64 == 0


def test_every_truncation_is_refused(file):
    for size in range(len(file)):
        with pytest.raises(FormatError):
            container.unpack(file[:size])


def test_every_changed_byte_of_a_section_is_noticed(file):
    for index in [*range(len(METADATA)), *range(64, 164)]:
        changed = bytearray(file)
        changed[index] ^= 1
        with pytest.raises(FormatError):
            container.unpack(bytes(changed))


def test_appended_bytes_are_refused(file):
    with pytest.raises(FormatError, match="footer"):
        container.unpack(file + b"more")


def test_reseal_makes_a_changed_file_pass(file):
    changed = bytearray(file)
    changed[70] ^= 1
    assert schema.reseal(file) == file
    assert bytes(container.unpack(schema.reseal(bytes(changed)))[container.WEIGHTS]) != b"w" * 100


@pytest.mark.parametrize(
    "changes",
    [
        {"offset": 1 << 40},
        {"size": 1 << 40},
        {"offset": 2**64 - 1, "size": 2},  # wraps around in 64 bits
        {"offset": 64, "size": 2**64 - 64},
        {"kind": container.METADATA},
        {"offset": 65},
    ],
)
def test_hostile_entries_are_refused(file, changes):
    with pytest.raises(FormatError):
        container.unpack(entry(file, 1, **changes))


def test_unknown_sections_are_left_out(file):
    assert set(container.unpack(entry(file, 1, kind=77))) == {container.METADATA}


@pytest.mark.parametrize("count", [0, 3, 17, 2**32 - 1])
def test_wrong_number_of_sections(file, count):
    with pytest.raises(FormatError):
        container.unpack(file[:-8] + container.FOOTER.pack(count, b"XNN1"))


def test_metadata_must_come_first():
    file = container.pack({container.METADATA: METADATA, container.WEIGHTS: METADATA})
    with pytest.raises(FormatError):
        container.unpack(entry(entry(file, 0, offset=24), 1, offset=0))
