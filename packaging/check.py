"""Installs each part of a release into an empty folder and uses it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

import build
from registry import serve
from targets import NAME, PACKAGE, ROOT, SILENT, VERSION, Target, commit_time, output, run
from tree import SHELLS, is_static
from use import ANSWER, PROMPT, expect, use

HERE = Path(__file__).parent
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")

FIND_PROGRAM = """
from duologue import NotInstalled
from duologue._process import find_binary
try:
    find_binary(None)
except NotInstalled as fault:
    print(fault)
"""

ASK_IN_PYTHON = """
import sys
from duologue.sync import Duologue
with Duologue(engine="echo") as chat:
    print(chat.run(sys.argv[1]).text)
"""

ASK_IN_NODE = """
import { Duologue } from "duologue";
const chat = await Duologue.start({ engine: "echo" });
console.log((await chat.run(process.argv[2])).text);
await chat.close();
"""

VALIDATE_BILL = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(sys.stdin.read())
sys.exit(str(fault) if fault else 0)
"""


def check(folder: Path, targets: list[Target], is_test: bool) -> None:
    """Checks all files of a release; `is_test`: the program is this machine's own, and not static."""
    _sums(folder)
    for target in targets:
        emulator = build.runs_here(target)
        if emulator is None:
            print(f"{target.triple}: installed, but not run: install qemu-user-static for that")
        with tempfile.TemporaryDirectory() as name:
            work = Path(name)
            for part in (_archive, _deb, _wheel, _image, _bill):
                (work / part.__name__).mkdir()
                part(folder, target, emulator, work / part.__name__, is_test)
                print(f"{target.triple}: {part.__name__.lstrip('_')} checked", flush=True)
    with tempfile.TemporaryDirectory() as name:
        _wheel_without_program(folder, Path(name) / "wheel")
        _npm(folder, Path(name) / "npm")
        _binstall(folder, targets)
        _crate(folder, Path(name) / "crate", is_test)
    print("all platforms: wheel, npm packages, cargo binstall and crate checked")


def _sums(folder: Path) -> None:
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    sums = {name: digest for digest, name in (line.split("  ") for line in lines)}
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()} - {"SHA256SUMS"}
    expect(files == sums.keys(), f"SHA256SUMS and the files differ: {files ^ sums.keys()}")
    for name, digest in sums.items():
        expect(hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest, f"{name} has another sum")


def _archive(folder: Path, target: Target, emulator: list[str] | None, root: Path, is_test: bool) -> None:
    with tarfile.open(folder / f"{target.stem}.tar.gz") as tar:
        members = tar.getmembers()
        tar.extractall(root, filter="data")
    expect([it.name for it in members] == sorted(it.name for it in members), "the archive is not sorted")
    expect({(it.mtime, it.uid, it.gid) for it in members} == {(commit_time(), 0, 0)}, "it depends on time or person")
    laid_out = root / target.stem
    expect(is_test or is_static(laid_out / NAME), "the program needs libraries")
    _no_paths(laid_out / NAME, is_test)
    pages = {path.name for path in (laid_out / "man/man1").iterdir()}
    expect({f"{NAME}.1", f"{NAME}-exec.1", f"{NAME}-rpc.1"} <= pages, f"pages are missing: {pages}")
    scripts = {path.name for path in (laid_out / "complete").iterdir() if path.stat().st_size}
    expect(scripts == set(SHELLS.values()), f"scripts are missing: {scripts}")
    if emulator is not None:
        use(emulator, laid_out / NAME, root)


def _no_paths(program: Path, is_test: bool) -> None:
    """Nothing of the machine that built it is in the program."""
    home = os.path.expanduser("~").encode()
    expect(is_test or home + b"/" not in program.read_bytes(), f"the program names {home.decode()}")


def _deb(folder: Path, target: Target, emulator: list[str] | None, root: Path, is_test: bool) -> None:
    state = root / "var/lib/dpkg"
    for name in ("info", "updates", "triggers"):
        (state / name).mkdir(parents=True)
    (state / "status").touch()
    file = folder / f"{NAME}_{VERSION}_{target.debian}.deb"
    options = [f"--root={root}", "--force-architecture", "--force-not-root", "--force-script-chrootless"]
    run("dpkg", *options, "--log=/dev/null", "--install", file, stdout=SILENT, stderr=SILENT)
    status = output("dpkg-query", f"--admindir={state}", "--show", "--showformat=${Status} ${Version}", NAME)
    expect(status == f"install ok installed {VERSION}", status)
    expect((root / f"usr/share/man/man1/{NAME}-exec.1.gz").is_file(), "the package has no pages")
    if emulator is not None:
        use(emulator, root / "usr/bin" / NAME, root)


def _wheel(folder: Path, target: Target, emulator: list[str] | None, root: Path, is_test: bool) -> None:
    # What pip chooses on a machine of this kind, among all wheels.
    machine = f"--platform=manylinux_2_17_{target.machine}"
    install = ("install", "--no-index", "--find-links", folder, "--only-binary=:all:")
    run(sys.executable, *PIP, *install, machine, "--target", root / "packages", NAME)
    program = root / "packages" / NAME / "bin" / NAME
    if emulator is None:
        expect(program.is_file(), "the wheel has no program")
        return
    use(emulator, program, root)
    if emulator:
        return
    run(sys.executable, "-m", "venv", root / "venv")
    run(root / "venv/bin/python", *PIP, *install, NAME)
    use([], root / "venv/bin" / NAME)
    answer = output(root / "venv/bin/python", "-c", ASK_IN_PYTHON, PROMPT, env={"PATH": ""})
    expect(answer.strip() == ANSWER, f"the Python client got: {answer}")


def _wheel_without_program(folder: Path, packages: Path) -> None:
    file = folder / f"{NAME}-{VERSION}-py3-none-any.whl"
    run(sys.executable, *PIP, "install", "--no-index", "--target", packages, file)
    said = output(sys.executable, "-c", FIND_PROGRAM, env={"PATH": "", "PYTHONPATH": str(packages)})
    expect("not in this package" in said, f"without a program the client says: {said}")


def _image(folder: Path, target: Target, emulator: list[str] | None, work: Path, is_test: bool) -> None:
    context = folder / "container"
    expect((context / target.debian / NAME).is_file(), "the image has no program")
    if not shutil.which("buildah") or os.geteuid() != 0:
        print("buildah is not installed, or this is not root: the image is not built")
        return
    buildah = ("buildah", "--storage-driver=vfs", f"--root={work}/storage", f"--runroot={work}/run")
    options = ("--quiet", "--isolation=chroot", f"--platform=linux/{target.debian}", "--tag", NAME)
    run(*buildah, "build", *options, context, stdout=SILENT)
    container = output(*buildah, "from", f"--arch={target.debian}", "--pull-never", NAME).strip()
    root = Path(output(*buildah, "mount", container).strip())
    if emulator is not None:
        use(emulator, root / NAME, root)
    expect((root / "data").stat().st_uid == 65532, "the person of the image can't write /data")
    run(*buildah, "rm", "--all", stdout=SILENT)


def _bill(folder: Path, target: Target, _: list[str] | None, work: Path, is_test: bool) -> None:
    text = (folder / f"{target.stem}.cdx.json").read_text()
    tools = build.environment_with(HERE / "checks.txt", "checks")
    subprocess.run([tools / "python", "-c", VALIDATE_BILL], input=text, text=True, check=True)
    notices = (folder / "container" / target.debian / "THIRD-PARTY.txt").read_text()
    for component in json.loads(text)["components"]:
        named = f"\n{component['name']} {component['version']}: "
        expect(named in notices, f"THIRD-PARTY.txt does not have {named.strip()}")


def _npm(folder: Path, work: Path) -> None:
    """Installs the client by its name, as a user does; only the program of this platform comes with it."""
    work.mkdir()
    package = json.loads((ROOT / "clients/typescript/package.json").read_text())
    for name, version in package["dependencies"].items():
        run("npm", "pack", "--silent", f"{name}@{version}", "--pack-destination", work, stdout=SILENT)
    files = [*folder.glob("*.tgz"), *work.glob("*.tgz")]
    (work / "program").mkdir()
    with serve(files) as address:
        options = (f"--registry={address}", f"--cache={work}/cache", "--no-audit", "--no-fund", "--loglevel=error")
        run("npm", "install", *options, NAME, cwd=work / "program", stdout=SILENT)
    (work / "program/ask.mjs").write_text(ASK_IN_NODE)
    node = shutil.which("node") or "node"
    answer = output(node, "ask.mjs", PROMPT, cwd=work / "program", env={"PATH": ""})
    expect(answer.strip() == ANSWER, f"the TypeScript client got: {answer}")
    platforms = list((work / "program/node_modules" / f"@{NAME}").iterdir())
    expect(len(platforms) == 1, f"programs of other platforms were installed: {platforms}")


def _binstall(folder: Path, targets: list[Target]) -> None:
    """Holds the names that `cargo binstall` makes against the files."""
    rules = PACKAGE["metadata"]["binstall"]

    def filled(pattern: str, target: Target) -> str:
        values = {"name": NAME, "version": VERSION, "target": target.triple, "bin": NAME, "repo": ""}
        for key, value in values.items():
            pattern = pattern.replace(f"{{ {key} }}", value)
        return pattern

    for target in targets:
        file = filled(rules["pkg-url"], target).rsplit("/", 1)[1]
        with tarfile.open(folder / file) as tar:
            expect(filled(rules["bin-dir"], target) in tar.getnames(), f"binstall does not find the program in {file}")


def _crate(folder: Path, work: Path, is_test: bool) -> None:
    """Installs the crate from its file; a test of the packing alone looks at what is in it."""
    with tarfile.open(folder / f"{NAME}-{VERSION}.crate") as tar:
        tar.extractall(work, filter="data")
    sources = work / f"{NAME}-{VERSION}"
    package = tomllib.loads((sources / "Cargo.toml").read_text())["package"]
    expect(package["version"] == VERSION, "the crate has another version")
    if not is_test:
        # Without optimization: that the crate is complete is the question, and the libraries are compiled already.
        options = ("--locked", "--debug", "--quiet", "--root", work / "root", "--target-dir", build.TARGET_FOLDER)
        run("cargo", "install", "--path", sources, *options)
        use([], work / "root/bin" / NAME)
