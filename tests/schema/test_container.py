"""Sections, checksums and the footer."""

import zlib

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


REPEATED = b"\x08\0\0\0XNN1" + b"layer" * 100


def deflated(size: int, stream: bytes) -> bytes:
    section = container.DEFLATED.pack(size, b"XNN1") + stream
    return container.pack({container.DEFLATED_METADATA: section, container.WEIGHTS: b"w"})


def test_metadata_are_deflated_where_that_is_smaller():
    sections = container.metadata_section(REPEATED)
    assert set(sections) == {container.DEFLATED_METADATA}
    file = container.pack(sections | {container.WEIGHTS: b"w"})
    assert len(file) < len(REPEATED)
    assert {kind: bytes(data) for kind, data in container.unpack(file).items()} == {
        container.METADATA: REPEATED,
        container.WEIGHTS: b"w",
    }
    assert container.metadata_section(METADATA) == {container.METADATA: METADATA}


@pytest.mark.parametrize(
    ("size", "stream", "message"),
    [
        (len(REPEATED) - 1, zlib.compress(REPEATED), "exactly the 507 bytes"),
        (len(REPEATED) + 1, zlib.compress(REPEATED), "exactly the 509 bytes"),
        (len(REPEATED), zlib.compress(REPEATED)[:-1], "exactly"),
        (len(REPEATED), zlib.compress(REPEATED) + b"x", "exactly"),
        (len(REPEATED), b"y" + zlib.compress(REPEATED)[1:], "no zlib stream"),
        (2**32 - 1, zlib.compress(bytes(1 << 20)), "cannot stand for 4294967295"),
        (1 << 16, zlib.compress(bytes(1 << 24), 9)[:2000], "exactly the 65536 bytes"),  # a bomb stops at what it said
        (0, b"", "exactly the 0 bytes"),
    ],
)
def test_hostile_deflated_metadata_are_refused(size, stream, message):
    with pytest.raises(FormatError, match=message):
        container.unpack(deflated(size, stream))


def test_metadata_are_deflated_or_not_but_not_both():
    file = container.pack({**container.metadata_section(REPEATED), container.WEIGHTS: b"w"})
    with pytest.raises(FormatError, match="both deflated and not"):
        container.unpack(entry(file, 1, offset=0, size=8, kind=container.METADATA, crc32=zlib.crc32(file[:8])))
