#!/usr/bin/env python3
"""Packs a built program: `pack.py PROGRAM --out DIR tarball wheel deb`.

Nothing is compiled here. The bill of materials and the licences come from `cargo metadata`. The same program, tree and
SOURCE_DATE_EPOCH give the same bytes. Man pages and completions are packed where the program prints them (`ringer man`,
`ringer completions SHELL`).
"""

import argparse
import base64
import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

import bill
import elf

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# The C library of Debian 12, with which packages are built and tested.
GLIBC = (2, 36)
# Names of completions, below `share`, by the shell.
COMPLETIONS = {
    "bash": "bash-completion/completions/ringer",
    "zsh": "zsh/site-functions/_ringer",
    "fish": "fish/vendor_completions.d/ringer.fish",
}
DEBIAN_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
STAGES = {"alpha": "a", "beta": "b", "rc": "rc"}
OWN_LICENCES = ["LICENSE", "LICENSE-APACHE", "LICENSE-MIT"]


class Packing:
    """A program that is packed, with all that lies beside it in a package."""

    def __init__(self, program, version, strip, level):
        self.machine, self.level = elf.machine(program), level
        needed = elf.glibc(program)
        if needed > GLIBC:
            needs, most = dotted(needed), dotted(GLIBC)
            raise elf.BadProgram(f"{program}: needs glibc {needs}; packages promise {most}: build it on Debian 12")
        self.version = version or own_version(program)
        self.program = stripped(program) if strip else read(program)
        self.extras = extras(program)
        linked = bill.packages(ROOT, self.machine)
        self.bill = bill.bill(ROOT, self.machine, self.version, linked).encode()
        self.licences = bill.licences(ROOT, linked).encode()
        self.time = int(os.environ.get("SOURCE_DATE_EPOCH") or committed())

    def documents(self):
        """Returns name and bytes of the documents of every package."""
        own = {name: read(os.path.join(ROOT, name)) for name in [*OWN_LICENCES, "CHANGELOG.md"]}
        return {**own, "THIRD-PARTY-LICENSES.txt": self.licences, "sbom.cdx.json": self.bill}


def dotted(version):
    """Returns a version as text."""
    return ".".join(str(part) for part in version)


def read(path):
    """Returns the bytes of a file."""
    with open(path, "rb") as file:
        return file.read()


def committed():
    """Returns the Unix time of the latest commit; outside of a repository that of now."""
    asked = subprocess.run(["git", "-C", ROOT, "log", "-1", "--format=%ct"], capture_output=True, text=True)
    return asked.stdout.strip() or str(int(time.time()))


def said(program, *words):
    """Returns what the program prints; `None` where it refuses."""
    try:
        asked = subprocess.run([program, *words], capture_output=True, timeout=60)
    except OSError as error:
        raise elf.BadProgram(f"{program}: does not run here ({error.strerror}); name its version by --version") from error
    return asked.stdout if asked.returncode == 0 else None


def own_version(program):
    """Returns the version that the program tells, as in `0.1.0`."""
    printed = (said(program, "--version") or b"").decode()
    found = re.fullmatch(r"ringer (\d+\.\d+\.\d+\S*)\s*", printed)
    if not found:
        raise elf.BadProgram(f"{program}: `--version` prints {printed!r} and no version of ringer")
    return found.group(1)


def extras(program):
    """Returns man pages and completions by their place below `share`, as far as the program prints them."""
    try:
        commands = re.findall(r"^  ([a-z]+) ", (said(program, "--help") or b"").decode(), re.MULTILINE)
    except elf.BadProgram:
        return {}
    found = {}
    if "man" in commands:
        found["man/man1/ringer.1"] = said(program, "man")
    if "completions" in commands:
        found.update((place, said(program, "completions", shell)) for shell, place in COMPLETIONS.items())
    missing = [place for place, text in found.items() if not text]
    if missing:
        raise elf.BadProgram(f"{program}: prints nothing for {', '.join(missing)}")
    return found


def stripped(program):
    """Returns the bytes of the program without symbols and line tables."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "ringer")
        subprocess.run([os.environ.get("STRIP", "strip"), "-o", out, program], check=True)
        return read(out)


def archive(files, packing, compress):
    """Returns a tar archive of `files` (place: bytes, mode), which belong to root; a place that ends in / is a folder."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for place, (content, mode) in sorted(files.items()):
            entry = tarfile.TarInfo(place.rstrip("/"))
            entry.mode, entry.mtime, entry.uname, entry.gname = mode, packing.time, "root", "root"
            if place.endswith("/"):
                entry.type = tarfile.DIRTYPE
                tar.addfile(entry)
            else:
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
    return compress(raw.getvalue())


def tarball(packing, out):
    """Writes `ringer-VERSION-MACHINE-linux-gnu.tar.gz` and its checksum."""
    name = f"ringer-{packing.version}-{packing.machine}-linux-gnu"
    plain = {**packing.documents(), "README.md": read(os.path.join(ROOT, "README.md"))}
    for place in ["ringer.service", "ringer.toml"]:
        plain[place] = read(os.path.join(ROOT, "packaging", place))
    plain.update((f"share/{place}", text) for place, text in packing.extras.items())
    files = {f"{name}/{place}": (content, 0o644) for place, content in plain.items()}
    files[f"{name}/ringer"] = (packing.program, 0o755)
    compress = lambda data: gzip.compress(data, packing.level, mtime=0)
    return write(out, f"{name}.tar.gz", archive(files, packing, compress))


def wheel(packing, out):
    """Writes the wheel of `ringer-engine` and its checksum: the program as a script, for systems with its C library."""
    tag = f"py3-none-manylinux_{GLIBC[0]}_{GLIBC[1]}_{packing.machine}"
    version = python_version(packing.version)
    stem = f"ringer_engine-{version}"
    info, data = f"{stem}.dist-info", f"{stem}.data"
    about = read(os.path.join(ROOT, "packaging", "wheel.md")).decode()
    fields = ["Metadata-Version: 2.4", "Name: ringer-engine", f"Version: {version}",
              "Summary: Live simulated phone calls to voice agents, with sample-exact timelines",
              "License-Expression: MIT OR Apache-2.0", *(f"License-File: {name}" for name in OWN_LICENCES),
              "License-File: THIRD-PARTY-LICENSES.txt", "Requires-Python: >=3.8",
              "Classifier: Operating System :: POSIX :: Linux", "Description-Content-Type: text/markdown"]
    documents = packing.documents()
    files = {
        f"{data}/scripts/ringer": (packing.program, 0o755),
        f"{info}/METADATA": (("\n".join(fields) + "\n\n" + about).encode(), 0o644),
        f"{info}/WHEEL": (f"Wheel-Version: 1.0\nGenerator: ringer\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(), 0o644),
        f"{info}/sboms/ringer.cdx.json": (documents["sbom.cdx.json"], 0o644),
    }
    for name in [*OWN_LICENCES, "THIRD-PARTY-LICENSES.txt"]:
        files[f"{info}/licenses/{name}"] = (documents[name], 0o644)
    files.update((f"{data}/data/share/{place}", (text, 0o644)) for place, text in packing.extras.items())
    return write(out, f"{stem}-{tag}.whl", zipped(files, f"{info}/RECORD", packing))


def python_version(version):
    """Returns a version as Python writes it: 1.0.0rc1 for 1.0.0-rc.1."""
    found = re.fullmatch(r"(\d+\.\d+\.\d+)(?:-(alpha|beta|rc)\.?(\d+))?", version)
    if not found:
        raise elf.BadProgram(f"{version}: a wheel's version is like 1.0.0 or 1.0.0-rc.1 (alpha, beta, rc)")
    number, stage, step = found.groups()
    return number if stage is None else f"{number}{STAGES[stage]}{step}"


def zipped(files, record, packing):
    """Returns a zip archive of `files`, with their hashes in `record`."""
    lines = []
    for place, (content, _) in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{place},sha256={digest},{len(content)}\n")
    raw = io.BytesIO()
    moment = time.gmtime(max(packing.time, 315532800))[:6]
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED, compresslevel=packing.level) as archived:
        for place, (content, mode) in [*sorted(files.items()), (record, ("".join([*lines, f"{record},,\n"]).encode(), 0o644))]:
            entry = zipfile.ZipInfo(place, moment)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, (0o100000 | mode) << 16
            archived.writestr(entry, content)
    return raw.getvalue()


def deb(packing, out):
    """Writes the Debian package and its checksum."""
    share = os.path.join(ROOT, "packaging")
    plain = {f"usr/share/doc/ringer/{name}": content for name, content in packing.documents().items()}
    plain["usr/share/doc/ringer/copyright"] = read(os.path.join(share, "deb", "copyright"))
    plain["usr/share/doc/ringer/changelog.gz"] = gzip.compress(plain.pop("usr/share/doc/ringer/CHANGELOG.md"), 9, mtime=0)
    plain["lib/systemd/system/ringer.service"] = read(os.path.join(share, "ringer.service"))
    plain["etc/ringer/ringer.toml"] = read(os.path.join(share, "ringer.toml"))
    for place, text in packing.extras.items():
        is_page = place.startswith("man/")
        plain[f"usr/share/{place}{'.gz' if is_page else ''}"] = gzip.compress(text, 9, mtime=0) if is_page else text
    files = {place: (content, 0o644) for place, content in plain.items()}
    files["usr/bin/ringer"] = (packing.program, 0o755)
    with tempfile.TemporaryDirectory() as folder:
        tree = os.path.join(folder, "tree")
        size = sum(len(content) for content, _ in files.values()) // 1024 + 1
        control = read(os.path.join(share, "deb", "control")).decode()
        fill = {"VERSION": debian_version(packing.version), "MACHINE": DEBIAN_MACHINES[packing.machine], "SIZE": size,
                "GLIBC": dotted(GLIBC)}
        for word, value in fill.items():
            control = control.replace(f"@{word}@", str(value))
        files["DEBIAN/control"] = (control.encode(), 0o644)
        files["DEBIAN/conffiles"] = (b"/etc/ringer/ringer.toml\n", 0o644)
        sums = [f"{hashlib.md5(content).hexdigest()}  {place}\n" for place, (content, _) in sorted(files.items())
                if not place.startswith(("DEBIAN/", "etc/"))]
        files["DEBIAN/md5sums"] = ("".join(sums).encode(), 0o644)
        for script in ["preinst", "postinst", "prerm", "postrm"]:
            path = os.path.join(share, "deb", script)
            if os.path.exists(path):
                files[f"DEBIAN/{script}"] = (read(path), 0o755)
        place_files(files, tree)
        name = f"ringer_{fill['VERSION']}_{fill['MACHINE']}.deb"
        target = os.path.join(folder, name)
        kind = ["-Zxz"] if packing.level > 5 else ["-Zgzip", f"-z{packing.level}"]
        clock = {**os.environ, "SOURCE_DATE_EPOCH": str(packing.time)}
        subprocess.run(["dpkg-deb", "--root-owner-group", *kind, "--build", tree, target], check=True, env=clock,
                       stdout=subprocess.DEVNULL)
        return write(out, name, read(target))


def debian_version(version):
    """Returns a version as Debian sorts it: 1.0.0-rc.1 before 1.0.0."""
    return version.replace("-", "~")


def place_files(files, tree):
    """Writes `files` below a folder, with their modes whatever the umask is."""
    for place, (content, mode) in files.items():
        path = os.path.join(tree, place)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
        os.chmod(path, mode)
    for folder, _, _ in os.walk(tree):
        os.chmod(folder, 0o755)


def write(out, name, content):
    """Writes a package beside its checksum; returns its path."""
    os.makedirs(out, exist_ok=True)
    path = os.path.join(out, name)
    with open(path, "wb") as file:
        file.write(content)
    with open(path + ".sha256", "w", encoding="ascii") as file:
        file.write(f"{hashlib.sha256(content).hexdigest()}  {name}\n")
    return path


KINDS = {"tarball": tarball, "wheel": wheel, "deb": deb}


def main():
    """Packs what the command line asks for and prints a line for each package."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("program", help="built program")
    parser.add_argument("kinds", nargs="+", choices=list(KINDS), metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--out", default="target/packages", help="folder of the packages [default: target/packages]")
    parser.add_argument("--version", help="version of the packages [default: that of the program]")
    parser.add_argument("--keep-symbols", action="store_true", help="pack the program with its symbols")
    parser.add_argument("--level", type=int, default=9, choices=range(1, 10), metavar="N", help="compression, 1 to 9 [default: 9]")
    asked = parser.parse_args()
    if "deb" in asked.kinds and not shutil.which("dpkg-deb"):
        sys.exit("pack.py: the deb needs dpkg-deb (package dpkg)")
    try:
        packing = Packing(asked.program, asked.version, not asked.keep_symbols, asked.level)
        for kind in asked.kinds:
            path = KINDS[kind](packing, asked.out)
            print(f"{path}  {os.path.getsize(path) / 1e6:.1f} MB, needs glibc {dotted(GLIBC)}")
    except (elf.BadProgram, OSError) as error:
        sys.exit(f"pack.py: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"pack.py: {error.cmd[0]} ended with {error.returncode}")


if __name__ == "__main__":
    main()
