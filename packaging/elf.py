"""What a built program says of itself in its ELF headers: the machine it is for and the C library that it needs."""

import struct

MACHINES = {62: "x86_64", 183: "aarch64"}
NEEDED_VERSIONS = 0x6FFFFFFE


class BadProgram(Exception):
    """The file is no program that can be packed; the text says why."""


def machine(path):
    """Returns the machine of a 64-bit Linux program, as in `x86_64`."""
    with open(path, "rb") as file:
        head = file.read(64)
    if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
        raise BadProgram(f"{path}: no 64-bit ELF program")
    number = struct.unpack_from("<H", head, 18)[0]
    if number not in MACHINES:
        raise BadProgram(f"{path}: built for machine {number}; packages are made for {', '.join(MACHINES.values())}")
    return MACHINES[number]


def glibc(path):
    """Returns the newest version of the GNU C library whose symbols the program uses, as in (2, 35)."""
    machine(path)
    with open(path, "rb") as file:
        data = file.read()
    sections_at, = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, sections_at + size * at) for at in range(count)]
    newest = (0, 0)
    for header in headers:
        if header[1] == NEEDED_VERSIONS:
            texts_at = headers[header[6]][4]
            versions = (text(data, texts_at + name) for name in version_names(data, header[4]))
            newest = max([newest, *(numbers(version) for version in versions)])
    if newest == (0, 0):
        raise BadProgram(f"{path}: names no version of the GNU C library")
    return newest


def version_names(data, at):
    """Yields the offsets of the names of all versions that the section at `at` asks for."""
    while True:
        _, count, _, first, following = struct.unpack_from("<HHIII", data, at)
        entry = at + first
        for _ in range(count):
            _, _, _, name, step = struct.unpack_from("<IHHII", data, entry)
            yield name
            entry += step
        if following == 0:
            return
        at += following


def text(data, at):
    """Returns the text that ends at a zero byte."""
    return data[at:data.index(b"\0", at)].decode("ascii")


def numbers(version):
    """Returns the numbers of `GLIBC_2.35`; (0, 0) for other names."""
    parts = version.removeprefix("GLIBC_").split(".")
    is_numbered = version.startswith("GLIBC_") and all(part.isdigit() for part in parts)
    return tuple(int(part) for part in parts) if is_numbered else (0, 0)
