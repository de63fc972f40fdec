"""The platforms of a release, what others call them, and the facts that all parts of a release share."""

from __future__ import annotations

import os
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = tomllib.loads((ROOT / "Cargo.toml").read_text())["package"]
NAME: str = PACKAGE["name"]
VERSION: str = PACKAGE["version"]
SILENT = subprocess.DEVNULL


@dataclass(frozen=True)
class Target:
    """One platform, under the names that Rust, Debian, wheels, npm and containers have for it."""

    triple: str
    machine: str
    debian: str
    wheel: str
    npm: str

    @property
    def stem(self) -> str:
        """The name of the archive, without its ending, and of the folder in it."""
        return f"{NAME}-{VERSION}-{self.triple}"


def _linux(machine: str, debian: str, npm: str) -> Target:
    # A static program runs with any libc: the oldest tags that the installers of today look for.
    wheel = f"manylinux_2_17_{machine}.manylinux2014_{machine}.musllinux_1_1_{machine}"
    return Target(f"{machine}-unknown-linux-musl", machine, debian, wheel, npm)


# What released programs have beside the default.
FEATURES = ("--features", "serve")

TARGETS = {
    target.triple: target for target in (_linux("x86_64", "amd64", "x64"), _linux("aarch64", "arm64", "arm64"))
}


def run(*command: str | Path, **options: Any) -> None:
    """Runs a command that must succeed."""
    subprocess.run(command, check=True, **options)


def output(*command: str | Path, **options: Any) -> str:
    """What a command prints that must succeed."""
    return str(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, **options).stdout)


def commit_time() -> int:
    """The time that everything in a release has, in seconds: that of the commit, so that two builds are equal."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or output("git", "log", "-1", "--format=%ct", cwd=ROOT))
