"""The package for Debian and its relatives."""

from __future__ import annotations

import gzip
import os
import shutil
import textwrap
from pathlib import Path

from targets import NAME, PACKAGE, SILENT, VERSION, Target, commit_time, run
from tree import SHELLS

# Where each shell looks for the scripts of packages.
COMPLETIONS = {
    "bash": f"usr/share/bash-completion/completions/{NAME}",
    "zsh": f"usr/share/zsh/vendor-completions/_{NAME}",
    "fish": f"usr/share/fish/vendor_completions.d/{NAME}.fish",
}


def deb(target: Target, laid_out: Path, work: Path, into: Path) -> Path:
    """Makes the package of an archive's folder."""
    root = work / "deb"
    documents = root / "usr/share/doc" / NAME
    pages = root / "usr/share/man/man1"
    for folder in (root / "DEBIAN", root / "usr/bin", documents, pages):
        folder.mkdir(parents=True)
    shutil.copy(laid_out / NAME, root / "usr/bin" / NAME)
    for shell, place in COMPLETIONS.items():
        (root / place).parent.mkdir(parents=True)
        shutil.copy(laid_out / "complete" / SHELLS[shell], root / place)
    for page in (laid_out / "man" / "man1").iterdir():
        _compress(page, pages / f"{page.name}.gz")
    _compress(laid_out / "CHANGELOG.md", documents / "changelog.gz")
    licence = (laid_out / "LICENSE").read_text()
    others = f"\nWhat the program contains of others is in /usr/share/doc/{NAME}/THIRD-PARTY.txt.gz.\n"
    (documents / "copyright").write_text(licence + others)
    _compress(laid_out / "THIRD-PARTY.txt", documents / "THIRD-PARTY.txt.gz")
    _set_modes(root)
    kilobytes = sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) // 1024
    about = textwrap.fill(PACKAGE["description"], 78, initial_indent=" ", subsequent_indent=" ")
    (root / "DEBIAN/control").write_text(
        f"Package: {NAME}\nVersion: {VERSION}\nArchitecture: {target.debian}\nInstalled-Size: {kilobytes}\n"
        f"Maintainer: The {NAME} authors <{NAME}@localhost>\nSection: utils\nPriority: optional\n"
        f"Description: chat runtime for language models\n{about}\n"
    )
    file = into / f"{NAME}_{VERSION}_{target.debian}.deb"
    environment = os.environ | {"SOURCE_DATE_EPOCH": str(commit_time())}
    run("dpkg-deb", "--root-owner-group", "-Zgzip", "-z9", "--build", root, file, env=environment, stdout=SILENT)
    return file


def _compress(source: Path, into: Path) -> None:
    into.write_bytes(gzip.compress(source.read_bytes(), 9, mtime=0))


def _set_modes(root: Path) -> None:
    """Modes of a package, whatever the umask was; times that are later than the commit's are cut by dpkg-deb."""
    for path in [root, *root.rglob("*")]:
        path.chmod(0o755 if path.is_dir() or path.parent.name == "bin" else 0o644)
