"""Bill of materials (CycloneDX 1.6) and licences of what is linked into the program, by `cargo metadata`."""

import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import uuid

LICENCE_FILE = re.compile(r"(licen[sc]e|copying|copyright|notice|unlicense|patents)", re.IGNORECASE)
# Data of others in the program, which no package of Cargo brings.
NOTICES = ["src/human/frequent/NOTICE"]
NAMESPACE = uuid.UUID("6b1c9e5e-3d0a-4c58-9d0b-3f1f4b1a7a10")


def packages(root, machine):
    """Returns what the program is linked from, sorted by name and version, each as `cargo metadata` describes it."""
    target = f"{machine}-unknown-linux-gnu"
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--locked", "--format-version", "1", "--filter-platform", target]
    printed = subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE).stdout
    metadata = json.loads(printed)
    described = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = [package["id"] for package in metadata["packages"] if package["name"] == "ringer"]
    linked = {}
    while waiting:
        at = waiting.pop()
        if at in linked:
            continue
        # Dependencies of tests and of build scripts are not in the program.
        needed = [edge["pkg"] for edge in nodes[at]["deps"] if any(kind["kind"] is None for kind in edge["dep_kinds"])]
        linked[at] = dict(described[at], needs=needed)
        waiting.extend(needed)
    return sorted(linked.values(), key=lambda package: (package["name"], package["version"]))


def checksums(root):
    """Returns the SHA-256 of each package of the lock file, by name and version."""
    with open(os.path.join(root, "Cargo.lock"), encoding="utf-8") as file:
        blocks = file.read().split("[[package]]")[1:]
    field = lambda block, name: (re.findall(rf'^{name} = "(.*)"$', block, re.MULTILINE) or [None])[0]
    return {(field(block, "name"), field(block, "version")): field(block, "checksum") for block in blocks}


def expression(licence):
    """Returns a licence as an SPDX expression: older packages write `/` for OR."""
    return re.sub(r"\s*/\s*", " OR ", licence)


def component(package, checksum):
    """Returns a package as a component of CycloneDX."""
    purl = f"pkg:cargo/{package['name']}@{package['version']}"
    found = {"type": "library", "bom-ref": purl, "name": package["name"], "version": package["version"], "purl": purl}
    if package["license"]:
        found["licenses"] = [{"expression": expression(package["license"])}]
    if checksum:
        found["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if package["repository"]:
        found["externalReferences"] = [{"type": "vcs", "url": package["repository"]}]
    return found


def compiler(root):
    """Returns the compiler, whose standard library is linked in, as in `rustc 1.95.0 (...)`."""
    command = [os.environ.get("RUSTC", "rustc"), "--version"]
    return subprocess.run(command, cwd=root, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def bill(root, machine, version, linked):
    """Returns the bill of materials as JSON: the same packages give the same bytes."""
    sums = checksums(root)
    refs = {package["id"]: f"pkg:cargo/{package['name']}@{package['version']}" for package in linked}
    components = [component(package, sums.get((package["name"], package["version"]))) for package in linked]
    own = next(part for part in components if part["name"] == "ringer")
    own.update(type="application", version=version)
    rust = re.search(r"\d+\.\d+\.\d+", compiler(root)).group()
    library = {"type": "library", "bom-ref": f"rust-std@{rust}", "name": "rust-std", "version": rust,
               "licenses": [{"expression": "MIT OR Apache-2.0"}]}
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own, "properties": [{"name": "target", "value": f"{machine}-unknown-linux-gnu"}]},
        "components": [*(part for part in components if part is not own), library],
        "dependencies": [
            {"ref": refs[package["id"]], "dependsOn": sorted({refs[need] for need in package["needs"]})} for package in linked
        ],
    }
    plain = json.dumps(document, sort_keys=True)
    document["serialNumber"] = uuid.uuid5(NAMESPACE, hashlib.sha256(plain.encode()).hexdigest()).urn
    return json.dumps(document, indent=1) + "\n"


def licence_files(folder):
    """Returns the paths of the files of a package that hold licences."""
    found = []
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if LICENCE_FILE.match(name):
            found.extend(sorted(os.path.join(path, inner) for inner in os.listdir(path)) if os.path.isdir(path) else [path])
    return [path for path in found if os.path.isfile(path)]


def licences(root, linked):
    """Returns the licences of others as one text: who uses which, then each text once."""
    lines, texts = [], {}
    for package in linked:
        if package["source"] is None:
            continue
        name = f"{package['name']} {package['version']}"
        lines.append(f"{name}: {expression(package['license'] or 'not told')}  {package['repository'] or ''}".rstrip())
        files = licence_files(os.path.dirname(package["manifest_path"]))
        if not files:
            authors = ", ".join(package["authors"]) or "its authors"
            lines.append(f"    no licence file in the package; it is offered under this licence by {authors}")
        for path in files:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read().strip()
            texts.setdefault(" ".join(text.split()), (text, []))[1].append(name)
    for path in NOTICES:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            text = file.read().strip()
        texts.setdefault(" ".join(text.split()), (text, []))[1].append(path)
    rust = compiler(root)
    head = ("Ringer is linked from these packages. Their sources are on crates.io under the names and versions given here.\n"
            f"The standard library of Rust ({rust}) is linked in, too: MIT OR Apache-2.0.\n")
    bodies = [f"{'=' * 78}\n{', '.join(sorted(set(users)))}\n{'-' * 78}\n{text}\n" for text, users in texts.values()]
    return "\n".join([head, *lines, "", *bodies])


if __name__ == "__main__":
    top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.stdout.write(licences(top, packages(top, platform.machine())))
