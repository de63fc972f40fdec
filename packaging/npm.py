"""The packages for npm: the TypeScript client, and one for each platform that has nothing but the program."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from targets import NAME, PACKAGE, ROOT, SILENT, VERSION, Target, run

SOURCES = ROOT / "clients" / "typescript"


def _package(target: Target) -> str:
    # The name that the client asks Node's resolver for.
    return f"@{NAME}/linux-{target.npm}"


def platform_package(target: Target, laid_out: Path, work: Path, into: Path) -> None:
    """Makes the package that only machines of this kind install."""
    folder = work / "npm"
    folder.mkdir()
    for name in (NAME, "LICENSE", "THIRD-PARTY.txt"):
        shutil.copy(laid_out / name, folder / name)
    package = {
        "name": _package(target),
        "version": VERSION,
        "description": f"The program {NAME} for {target.triple}, which the package {NAME} starts",
        "license": PACKAGE["license"],
        "os": ["linux"],
        "cpu": [target.npm],
        "files": [NAME, "THIRD-PARTY.txt"],
    }
    (folder / "package.json").write_text(json.dumps(package, indent=2) + "\n")
    _pack(folder, into)


def client_package(targets: list[Target], work: Path, into: Path) -> None:
    """Makes the package of the client, which depends on those of the platforms where they can be installed."""
    folder = work / "client"
    shutil.copytree(SOURCES, folder, ignore=shutil.ignore_patterns("node_modules", "dist", "build"))
    run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", cwd=folder, stdout=SILENT)
    run("npm", "run", "--silent", "build", cwd=folder)
    file = folder / "package.json"
    package = json.loads(file.read_text())
    # Only here: while they are not published, an installation of the sources could not find them.
    package["optionalDependencies"] = {_package(target): VERSION for target in targets}
    file.write_text(json.dumps(package, indent=2) + "\n")
    shutil.copy(ROOT / "LICENSE", folder / "LICENSE")
    _pack(folder, into)


def _pack(folder: Path, into: Path) -> None:
    run("npm", "pack", "--ignore-scripts", "--silent", "--pack-destination", into, cwd=folder, stdout=SILENT)
