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


def zlib_stream(data: bytes, kind: int) -> bytes:
    deflater = zlib.compressobj(9, zlib.DEFLATED, container.INFLATED[kind][1])
    return deflater.compress(data) + deflater.flush()


def deflated(kind: int, size: int, stream: bytes) -> bytes:
    section = container.DEFLATED.pack(size, b"XNN1") + stream
    return container.pack({kind: section, container.WEIGHTS: b"w"})


def test_columns_are_inflated():
    section = container.deflated_columns(REPEATED)
    assert section is not None and len(section) < len(REPEATED)
    file = container.pack({container.COLUMNS: section, container.WEIGHTS: b"w"})
    assert container.sizes(file) == {"metadata in columns": len(section), "weights": 1}
    assert container.unpack(file) == {container.COLUMNS: REPEATED, container.WEIGHTS: b"w"}


def test_columns_that_deflate_too_far_are_not_written():
    assert container.deflated_columns(bytes(1 << 20)) is None


def test_deflated_metadata_of_version_3_are_inflated():
    kind = container.DEFLATED_METADATA
    file = deflated(kind, len(REPEATED), zlib_stream(REPEATED, kind))
    assert container.unpack(file) == {container.METADATA: REPEATED, container.WEIGHTS: b"w"}


@pytest.mark.parametrize("kind", container.INFLATED)
@pytest.mark.parametrize(
    ("size", "change", "message"),
    [
        (len(REPEATED) - 1, lambda stream: stream, "exactly the 507 bytes"),
        (len(REPEATED) + 1, lambda stream: stream, "exactly the 509 bytes"),
        (len(REPEATED), lambda stream: stream[:-1], "exactly"),
        (len(REPEATED), lambda stream: stream + b"x", "exactly"),
        (len(REPEATED), lambda stream: b"\xff" + stream[1:], "cannot be inflated"),
        (0, lambda stream: b"", "exactly the 0 bytes"),
    ],
)
def test_hostile_deflated_metadata_are_refused(kind, size, change, message):
    with pytest.raises(FormatError, match=message):
        container.unpack(deflated(kind, size, change(zlib_stream(REPEATED, kind))))


@pytest.mark.parametrize("kind", container.INFLATED)
def test_bombs_stop_at_what_they_may_say(kind):
    with pytest.raises(FormatError, match="cannot stand for 4294967295"):
        container.unpack(deflated(kind, 2**32 - 1, zlib_stream(bytes(1 << 20), kind)))
    with pytest.raises(FormatError, match="exactly the 65536 bytes"):
        container.unpack(deflated(kind, 1 << 16, zlib_stream(bytes(1 << 24), kind)[:2000]))


@pytest.mark.parametrize("other", [container.METADATA, container.DEFLATED_METADATA])
def test_there_is_one_section_of_metadata(other):
    file = container.pack({container.COLUMNS: container.deflated_columns(REPEATED), container.WEIGHTS: b"w"})
    with pytest.raises(FormatError, match="there are both"):
        container.unpack(entry(file, 1, offset=0, size=8, kind=other, crc32=zlib.crc32(file[:8])))
