"""Builds the program for a platform, so that two builds of a commit are equal wherever they are made."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

from targets import FEATURES, NAME, ROOT, SILENT, Target, commit_time, output, run

# Which functions are linked next to each other, below the folder of the sources, where they are compiled.
LAYOUT = "benches/layout/hot.ld"

TARGET_FOLDER = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").resolve()


def environment_with(requirements: Path, name: str) -> Path:
    """The folder of programs of a Python environment below the target folder, which is made or repaired."""
    venv = TARGET_FOLDER / "release-tools" / name
    done = venv / requirements.name
    if not done.is_file() or done.read_bytes() != requirements.read_bytes():
        run("python3", "-m", "venv", "--clear", venv)
        pip = (venv / "bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check")
        run(*pip, "install", "--only-binary", ":all:", "--requirement", requirements)
        shutil.copyfile(requirements, done)
    return venv / "bin"


def libc_licence(tools: Path) -> Path:
    """The licence of the C library that is linked, which comes with the linker."""
    return next(tools.parent.glob("lib/python*/site-packages/ziglang/lib/libc/musl/COPYRIGHT"))


def build(target: Target, tools: Path, source: Path, into: Path) -> Path:
    """Builds the sources in a folder; gives the program."""
    run("rustup", "target", "add", target.triple, stdout=SILENT, stderr=SILENT)
    environment = os.environ | {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "CARGO_TARGET_DIR": str(into),
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(_rust_flags(source, into)),
        "CFLAGS": f"-ffile-prefix-map={_registry()}=/cargo",
        "SOURCE_DATE_EPOCH": str(commit_time()),
    }
    options = ("--locked", "--release", *FEATURES, "--bin", NAME, "--target", target.triple)
    run("cargo", "zigbuild", *options, cwd=source, env=environment)
    return into / target.triple / "release" / NAME


def _registry() -> Path:
    home = Path(os.environ.get("CARGO_HOME") or Path.home() / ".cargo")
    return home / "registry" / "src"


def _rust_flags(source: Path, into: Path) -> list[str]:
    # Messages of panics name files: without the folders of this machine.
    places = {_registry(): "/cargo", source: f"/{NAME}", into: "/target"}
    remaps = [f"--remap-path-prefix={place}={name}" for place, name in places.items()]
    # The linker leaves out what makes the program run at any address unless it is told. What a start and an answer
    # execute is linked together, as build.rs has it for the machine that builds: a ninth less memory, and an eighth of
    # the time of a start. The folder is that of the sources, so that the flag is the same wherever they are.
    return [*remaps, "-Clink-arg=-pie", f"-Clink-arg=-Wl,-T,{LAYOUT}"]


def clone(into: Path) -> Path:
    """A clean clone of the commit, in a folder of another name."""
    run("git", "clone", "--quiet", "--no-hardlinks", ROOT, into)
    run("git", "checkout", "--quiet", "--detach", output("git", "rev-parse", "HEAD", cwd=ROOT).strip(), cwd=into)
    return into


def runs_here(target: Target) -> list[str] | None:
    """What to write before a program of the platform to run it on this machine; None if it can't be run."""
    if target.machine == platform.machine():
        return []
    emulator = shutil.which(f"qemu-{target.machine}-static")
    return [emulator] if emulator else None
