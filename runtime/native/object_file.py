"""Which symbols an object file needs from outside: read from its symbol table (ELF, Mach-O, WebAssembly).

Kernels must be complete in themselves. A kernel that calls `expf` or `memcpy` would load here by luck (the process has
a C library) and fail on a target that has none, so the compiler refuses an object with external symbols.
"""

from __future__ import annotations

import struct

# Not functions: the table of addresses, the memory and the stack pointer that every WebAssembly module is given.
_WASM_ENVIRONMENT = {"__linear_memory", "__indirect_function_table", "__stack_pointer", "__memory_base", "__table_base"}


def undefined_symbols(data: bytes) -> list[str]:
    """Names that `data`, an object file, expects others to define; sorted.

    Raises ValueError if the format is not known or the tables are malformed.
    """
    readers = {b"\x7fELF": _elf, b"\xcf\xfa\xed\xfe": _mach_o, b"\0asm": _wasm}
    reader = readers.get(data[:4])
    if reader is None:
        raise ValueError(f"not an object file of a known format (starts with {data[:4]!r})")
    try:
        return sorted(set(reader(data)))
    except (struct.error, IndexError) as error:
        raise ValueError(f"malformed object file: {error}") from error


def _string(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()


def _elf(data: bytes) -> list[str]:
    wide = data[4] == 2
    header, offset_at = ("<HHIQQQIHHHHHH", 16) if wide else ("<HHIIIIIHHHHHH", 16)
    fields = struct.unpack_from(header, data, offset_at)
    sections_at, entry_size, count = fields[5], fields[10], fields[11]
    section = struct.Struct("<IIQQQQIIQQ" if wide else "<IIIIIIIIII")
    sections = [section.unpack_from(data, sections_at + i * entry_size) for i in range(count)]
    names = []
    for _, kind, _, _, offset, size, link, _, _, symbol_size in sections:
        if kind != 2:  # SHT_SYMTAB
            continue
        strings_at = sections[link][4]
        for at in range(offset + symbol_size, offset + size, symbol_size):  # the first entry is reserved
            if wide:
                name, _, _, shndx, _, _ = struct.unpack_from("<IBBHQQ", data, at)
            else:
                name, _, _, _, _, shndx = struct.unpack_from("<IIIBBH", data, at)
            if shndx == 0 and name:  # SHN_UNDEF
                names.append(_string(data, strings_at + name))
    return names


def _mach_o(data: bytes) -> list[str]:
    commands = struct.unpack_from("<I", data, 16)[0]
    names, at = [], 32
    for _ in range(commands):
        command, size = struct.unpack_from("<II", data, at)
        if command == 2:  # LC_SYMTAB
            symbols_at, count, strings_at, _ = struct.unpack_from("<IIII", data, at + 8)
            for i in range(count):
                name, kind, _, _, _ = struct.unpack_from("<IBBHQ", data, symbols_at + 16 * i)
                if kind & 0x0E == 0 and not kind & 0xE0:  # N_UNDF, no debugger entry
                    names.append(_string(data, strings_at + name))
        at += size
    return names


def _wasm(data: bytes) -> list[str]:
    def number(at: int) -> tuple[int, int]:  # LEB128
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return value, at

    def text(at: int) -> tuple[str, int]:
        size, at = number(at)
        return data[at : at + size].decode(), at + size

    names, at = [], 8
    while at < len(data):
        kind = data[at]
        size, at = number(at + 1)
        end = at + size
        if kind == 2:  # imports
            count, at = number(at)
            for _ in range(count):
                _, at = text(at)
                name, at = text(at)
                what, at = data[at], at + 1
                if name not in _WASM_ENVIRONMENT:
                    names.append(name)
                if what == 0:  # function: index of its type
                    _, at = number(at)
                elif what in (1, 2):  # table (element type first) or memory: limits
                    at += what == 1
                    flags, at = number(at)
                    _, at = number(at)
                    if flags & 1:
                        _, at = number(at)
                else:  # global: type and mutability
                    at += 2
        at = end
    return names
