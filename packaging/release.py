"""Builds what a tag would publish into a folder, and then installs and uses each part of it."""

from __future__ import annotations

import argparse
import filecmp
import hashlib
import json
import platform
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

import build
from check import check
from deb import deb
from notices import third_party
from npm import client_package, platform_package
from sbom import sbom
from targets import NAME, ROOT, TARGETS, VERSION, Target, output, run
from tree import archive, lay_out
from wheel import wheel

HERE = Path(__file__).parent


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=".ci/release", description=__doc__)
    parser.add_argument("folder", type=Path, help="a new folder, which gets all files")
    parser.add_argument("--target", action="append", choices=TARGETS, help="build for this platform, not all")
    parser.add_argument("--twice", action="store_true", help="build again from another clone, and compare")
    parser.add_argument("--program", type=Path, help="pack this program of this machine, as a test")
    return parser.parse_args()


def say(text: str) -> None:
    print(f"== {text}", flush=True)


def require_one_version() -> None:
    """Packages that contain the program have its version."""
    clients = ROOT / "clients"
    project = tomllib.loads((clients / "python/pyproject.toml").read_text())["project"]
    module = (clients / "python/duologue/__init__.py").read_text()
    package = json.loads((clients / "typescript/package.json").read_text())
    versions = {
        "python/pyproject.toml": project["version"],
        "python/duologue/__init__.py": module.split('__version__ = "', 1)[1].split('"', 1)[0],
        "typescript/package.json": package["version"],
    }
    for file, version in versions.items():
        if version != VERSION:
            sys.exit(f"clients/{file} has version {version}, but Cargo.toml has {VERSION}.")


def require_clean_commit() -> None:
    """A release is what a commit has, and a tag on it must name its version."""
    if output("git", "status", "--porcelain", cwd=ROOT):
        sys.exit("The work tree has changes, which a release would not have. Commit or remove them.")
    tags = output("git", "tag", "--points-at", "HEAD", "v*", cwd=ROOT).split()
    if tags and f"v{VERSION}" not in tags:
        sys.exit(f"This commit has the tag {tags[0]}, but its version is {VERSION}.")


def program_for(target: Target, tools: Path | None, options: argparse.Namespace, work: Path) -> Path:
    """Builds the program, twice if that is asked for."""
    if options.program:
        # Without its symbols, which would take most of the time.
        stripped = work / NAME
        run("strip", "--output-file", stripped, options.program)
        return stripped
    say(f"build for {target.triple}")
    assert tools
    program = build.build(target, tools, ROOT, build.TARGET_FOLDER)
    if options.twice:
        say(f"build for {target.triple} once more, from another clone")
        clone = build.clone(work / f"clone-{target.machine}")
        other = build.build(target, tools, clone, work / f"target-{target.machine}")
        if not filecmp.cmp(program, other, shallow=False):
            sys.exit(f"The two programs for {target.triple} differ: {program} and {other}.")
        print("The programs are equal.")
    return program


def platform_files(target: Target, program: Path, runnable: Path, notices: str, folder: Path, work: Path) -> None:
    """Packs one program in every way."""
    laid_out = work / target.stem
    lay_out(target, program, runnable, notices, laid_out)
    archive(laid_out, folder / f"{target.stem}.tar.gz")
    document = json.dumps(sbom(target, program), indent=1)
    (folder / f"{target.stem}.cdx.json").write_text(document + "\n")
    deb(target, laid_out, work, folder)
    wheel(target, laid_out, folder)
    platform_package(target, laid_out, work, folder)
    image = folder / "container" / target.debian
    image.mkdir(parents=True)
    for name in (NAME, "LICENSE", "THIRD-PARTY.txt"):
        shutil.copy(laid_out / name, image / name)


def common_files(targets: list[Target], folder: Path, work: Path, is_test: bool) -> None:
    """What is there once: the client packages, the crate, and the definition of the container."""
    wheel(None, None, folder)
    client_package(targets, work, folder)
    shutil.copy(HERE / "Containerfile", folder / "container")
    # The folder of a volume, which belongs to the person that the image runs as.
    (folder / "container/data").mkdir()
    (folder / "container/data/.empty").touch()
    # Compiled from the packed files, unless only the packing is tested.
    may = ["--no-verify", "--allow-dirty"] if is_test else []
    run("cargo", "package", "--locked", "--quiet", *may, "--target-dir", build.TARGET_FOLDER, cwd=ROOT)
    crate = f"{NAME}-{VERSION}.crate"
    shutil.copy(build.TARGET_FOLDER / "package" / crate, folder / crate)


def write_sums(folder: Path) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    lines = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}\n" for path in files)
    (folder / "SHA256SUMS").write_text("".join(lines))


def main() -> None:
    options = arguments()
    folder: Path = options.folder.resolve()
    if folder.exists() and any(folder.iterdir()):
        sys.exit(f"{folder} is not empty: name a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
    require_one_version()
    targets = [TARGETS[name] for name in options.target or TARGETS]
    tools = None
    if options.program:
        targets = [target for target in targets if target.machine == platform.machine()]
    else:
        require_clean_commit()
        tools = build.environment_with(HERE / "requirements.txt", "build")
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        programs = {target: program_for(target, tools, options, work) for target in targets}
        own = (program for target, program in programs.items() if target.machine == platform.machine())
        runnable = next(own, None) or sys.exit("One of the platforms must be that of this machine.")
        for target, program in programs.items():
            say(f"pack for {target.triple}")
            own_work = work / target.machine
            own_work.mkdir()
            notices = third_party(target, build.libc_licence(tools) if tools else None)
            platform_files(target, program, runnable, notices, folder, own_work)
        say("pack what is for all platforms")
        common_files(targets, folder, work, is_test=bool(options.program))
    write_sums(folder)
    check(folder, targets, is_test=bool(options.program))
    print("For macOS nothing is built: the program needs Apple's frameworks, which are on a Mac alone.")
    print(f"Everything is in {folder}.")


if __name__ == "__main__":
    main()
