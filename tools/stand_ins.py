"""Write a stand-in for the NVIDIA libraries that builds of PyTorch with CUDA link to.

PyPI has no other builds of older releases. Without a GPU none of these libraries does
anything, but the loader wants each of them (3 GB) and each of their symbols. One small
shared object takes their place: it has all the symbols under all the versions, and
links beside it have the libraries' names. Its functions return what CUDA's return
where there is no driver. It takes no compiler, because nothing in it is compiled.

    python tools/stand_ins.py SITE_PACKAGES/torch/lib

The format is that of the System V ABI, chapters 4 and 5, and of the Linux Standard
Base, "Symbol Versioning"; the constants have their names.
"""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

EDITION = 1  # count on when what it writes changes: environments are made again
STAND_IN = "libstand_in.so"
# How the names of libraries and of symbols without a version begin.
LIBRARIES = ("libcu", "libnccl", "libnv")
DRIVER = "libcuda.so"  # the kernel module's own library: torch asks whether it is there
SYMBOLS = ("cu", "_cu", "__cu", "nccl", "nv")
PAGE = 1 << 16  # bytes of the largest one that a Linux kernel has
HEADER, PROGRAM_HEADER, SYMBOL = 64, 56, 24  # bytes of each
PT_LOAD, PT_DYNAMIC, PT_GNU_STACK = 1, 2, 0x6474E551
PF_X, PF_W, PF_R = 1, 2, 4
DT_NULL, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT = 0, 4, 5, 6, 10, 11
DT_SONAME, DT_VERSYM, DT_VERDEF, DT_VERDEFNUM = 14, 0x6FFFFFF0, 0x6FFFFFFC, 0x6FFFFFFD
ET_DYN, EV_CURRENT, STB_GLOBAL, STT_FUNC = 3, 1, 1, 2
VER_NDX_GLOBAL, VER_FLG_BASE = 1, 1
SECTION = 1  # any but 0, which means: of another library
SLOT = 16  # bytes of code of each function
# Each processor's code of the three functions: return 35, which is
# cudaErrorInsufficientDriver; store version 0 and return 0; return the address of TEXT,
# which begins one slot after this function.
CODE = {
    "EM_X86_64": (
        "b8 23 00 00 00 c3",  # mov eax, 35; ret
        "c7 07 00 00 00 00 31 c0 c3",  # mov dword [rdi], 0; xor eax, eax; ret
        "48 8d 05 09 00 00 00 c3",  # lea rax, [rip + 9]; ret
    ),
    "EM_AARCH64": (
        "60 04 80 52 c0 03 5f d6",  # mov w0, #35; ret
        "1f 00 00 b9 00 00 80 52 c0 03 5f d6",  # str wzr, [x0]; mov w0, #0; ret
        "80 00 00 10 c0 03 5f d6",  # adr x0, #16; ret
    ),
}
FAIL, NO_VERSION, MESSAGE = range(3)
TEXT = b"this is a stand-in for a library of NVIDIA\0"


@dataclass
class Missing:
    """What the libraries of a folder want of those that are nowhere."""

    processor: str = ""
    libraries: set[str] = field(default_factory=set)
    symbols: set[tuple[str, str]] = field(default_factory=set)  # name, version or ""


def find_missing(folder: Path) -> Missing:
    """What the shared objects in a folder, torch/lib, want of NVIDIA's."""
    missing, present = Missing(), set()
    for path in sorted(folder.glob("lib*.so*")):
        if not path.is_symlink():
            present |= _read(path, missing)
    missing.symbols = {one for one in missing.symbols if one[0] not in present}
    return missing


def _read(path: Path, missing: Missing) -> set[str]:
    """Add what one library lacks; returns the names of the symbols that it has."""
    present: set[str] = set()
    with path.open("rb") as file:
        library: Any = ELFFile(file)  # its sections have no types of their own
        missing.processor = library["e_machine"]
        for tag in library.get_section_by_name(".dynamic").iter_tags("DT_NEEDED"):
            here = (path.parent / tag.needed).exists()
            named = tag.needed.startswith(LIBRARIES)
            if named and not here and not tag.needed.startswith(DRIVER):
                missing.libraries.add(tag.needed)
        needed = library.get_section_by_name(".gnu.version_r")
        versions = {}
        for library_name, entries in needed.iter_versions() if needed else ():
            if library_name.name.startswith(LIBRARIES):
                versions |= {entry["vna_other"]: entry.name for entry in entries}
        numbers = library.get_section_by_name(".gnu.version")
        symbols = library.get_section_by_name(".dynsym").iter_symbols()
        for number, symbol in enumerate(symbols):
            version = numbers.get_symbol(number)["ndx"] if numbers else VER_NDX_GLOBAL
            if symbol["st_shndx"] != "SHN_UNDEF":
                present.add(symbol.name)
            elif version in versions:
                missing.symbols.add((symbol.name, versions[version]))
            elif symbol["st_info"]["bind"] == "STB_GLOBAL" and symbol.name.startswith(
                SYMBOLS
            ):
                missing.symbols.add((symbol.name, ""))
    return present


def elf_hash(name: str) -> int:
    """The hash of a name (System V ABI, chapter 5)."""
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        top = value & 0xF0000000
        value = (value ^ top >> 24) & ~top
    return value


class Strings:
    """A string table: names one after another, each ended by a zero."""

    def __init__(self) -> None:
        self.data = b"\0"

    def add(self, name: str) -> int:
        """Where in the table this name begins."""
        start = len(self.data)
        self.data += name.encode() + b"\0"
        return start


def _functions(processor: str) -> bytes:
    codes = [bytes.fromhex(code).ljust(SLOT, b"\0") for code in CODE[processor]]
    return b"".join(codes) + TEXT


def _function_of(name: str) -> int:
    if name in ("cudaDriverGetVersion", "cuDriverGetVersion"):
        return NO_VERSION
    if name.endswith(("ErrorString", "ErrorName", "ResultString", "LastError")):
        # ncclGetLastError returns a text, cudaGetLastError a number
        return FAIL if name.startswith("cuda") and "Last" in name else MESSAGE
    return FAIL


def _symbol_table(
    missing: Missing, versions: dict[str, int], strings: Strings, functions: int
) -> tuple[bytes, bytes, bytes]:
    """The symbols, the number of each one's version, and their hash table."""
    table, numbers = bytes(SYMBOL), struct.pack("<H", 0)
    hashes = [0]
    for name, version in sorted(missing.symbols):
        address = functions + SLOT * _function_of(name)
        info = STB_GLOBAL << 4 | STT_FUNC
        entry = (strings.add(name), info, 0, SECTION, address, SLOT)
        table += struct.pack("<IBBHQQ", *entry)
        numbers += struct.pack("<H", versions[version])
        hashes.append(elf_hash(name))
    buckets, chains = [0] * len(hashes), [0] * len(hashes)
    for number, value in enumerate(hashes):
        if number:  # symbol 0 ends each chain
            bucket = value % len(buckets)
            chains[number], buckets[bucket] = buckets[bucket], number
    words = [len(buckets), len(chains), *buckets, *chains]
    return table, numbers, struct.pack(f"<{len(words)}I", *words)


def _definitions(versions: dict[str, int], strings: Strings) -> bytes:
    """The versions that the library has; the first one is its own name."""
    size, found = 20 + 8, b""
    for name, number in versions.items():
        text = name or STAND_IN
        flags = 0 if name else VER_FLG_BASE
        following = 0 if number == len(versions) else size
        found += struct.pack(
            "<HHHHIII", 1, flags, number, 1, elf_hash(text), size - 8, following
        )
        found += struct.pack("<II", strings.add(text), 0)
    return found


def shared_object(missing: Missing) -> bytes:
    """A library that has all the missing symbols under all the missing versions."""
    names = sorted({version for _, version in missing.symbols if version})
    versions = {name: number for number, name in enumerate(["", *names], 1)}
    strings = Strings()
    soname = strings.add(STAND_IN)
    segments = 4
    functions = HEADER + segments * PROGRAM_HEADER
    functions += -functions % SLOT
    code = _functions(missing.processor)
    symbols, numbers, hashes = _symbol_table(missing, versions, strings, functions)
    definitions = _definitions(versions, strings)
    data, where = bytes(functions) + code, {}
    for tag, part in (
        (DT_SYMTAB, symbols),
        (DT_VERSYM, numbers),
        (DT_HASH, hashes),
        (DT_VERDEF, definitions),
        (DT_STRTAB, strings.data),
    ):
        data += bytes(-len(data) % SLOT)
        where[tag] = len(data)
        data += part
    read_only = len(data)
    data += bytes(-len(data) % PAGE)  # the loader writes into what follows
    where[DT_STRSZ] = len(strings.data)
    where[DT_SYMENT] = SYMBOL
    where[DT_SONAME] = soname
    where[DT_VERDEFNUM] = len(versions)
    where[DT_NULL] = 0  # the last one
    dynamic = b"".join(struct.pack("<QQ", *entry) for entry in where.items())
    start, size = len(data), len(dynamic)
    header = b"\x7fELF" + bytes([2, 1, EV_CURRENT]) + bytes(9)  # 64 bits, little endian
    machine = {"EM_X86_64": 62, "EM_AARCH64": 183}[missing.processor]
    counts = (HEADER, PROGRAM_HEADER, segments, 0, 0, 0)
    header += struct.pack(
        "<HHIQQQIHHHHHH", ET_DYN, machine, EV_CURRENT, 0, HEADER, 0, 0, *counts
    )
    for kind, flags, offset, length, align in (
        (PT_LOAD, PF_R | PF_X, 0, read_only, PAGE),
        (PT_LOAD, PF_R | PF_W, start, size, PAGE),
        (PT_DYNAMIC, PF_R | PF_W, start, size, 8),
        (PT_GNU_STACK, PF_R | PF_W, 0, 0, SLOT),  # no code on the stack
    ):
        header += struct.pack(
            "<IIQQQQQQ", kind, flags, *(offset,) * 3, *(length,) * 2, align
        )
    return header + data[len(header) :] + dynamic


def install(folder: Path) -> list[str]:
    """Put the stand-in and its names into torch/lib; returns the names."""
    missing = find_missing(folder)
    (folder / STAND_IN).write_bytes(shared_object(missing))
    for name in sorted(missing.libraries):
        (folder / name).symlink_to(STAND_IN)
    return sorted(missing.libraries)


if __name__ == "__main__":
    print(*install(Path(sys.argv[1])))
