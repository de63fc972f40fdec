"""A folder of files as an archive in which nothing depends on the machine or the time of day."""

from __future__ import annotations

import gzip
import shutil
import tarfile
from pathlib import Path

from targets import NAME, ROOT, SILENT, Target, commit_time, run

SHELLS = {
    "bash": f"{NAME}.bash",
    "zsh": f"_{NAME}",
    "fish": f"{NAME}.fish",
    "elvish": f"{NAME}.elv",
    "powershell": f"_{NAME}.ps1",
}


def lay_out(target: Target, program: Path, runnable: Path, notices: str, into: Path) -> None:
    """Fills a folder with what an archive has; `runnable`, a program of this machine, prints pages and scripts."""
    (into / "complete").mkdir(parents=True)
    shutil.copyfile(program, into / NAME)
    (into / NAME).chmod(0o755)
    for name in ("README.md", "LICENSE", "CHANGELOG.md"):
        shutil.copyfile(ROOT / name, into / name)
    (into / "THIRD-PARTY.txt").write_text(notices)
    run(runnable, "man", "--out", into / "man" / "man1", stdout=SILENT)
    for shell, file in SHELLS.items():
        with open(into / "complete" / file, "wb") as script:
            run(runnable, "completions", shell, stdout=script)


def archive(folder: Path, file: Path) -> None:
    """Writes `folder`, under its own name, as a .tar.gz: sorted, of nobody, and of the time of the commit."""
    time = commit_time()
    with open(file, "wb") as raw, gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=time) as packed:
        with tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar:
            for path in sorted([folder, *folder.rglob("*")]):
                member = tar.gettarinfo(path, path.relative_to(folder.parent).as_posix())
                member.uid = member.gid = 0
                member.uname = member.gname = "root"
                member.mtime = time
                member.mode = 0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644
                with open(path, "rb") if path.is_file() else open("/dev/null", "rb") as content:
                    tar.addfile(member, content)


def is_static(program: Path) -> bool:
    """Whether an ELF program names no loader, and so needs no library where it runs."""
    head = program.read_bytes()[:4096]
    entries, size = int.from_bytes(head[0x20:0x28], "little"), int.from_bytes(head[0x36:0x38], "little")
    count = int.from_bytes(head[0x38:0x3A], "little")
    interpreter = (3).to_bytes(4, "little")
    return all(head[entries + at * size :][:4] != interpreter for at in range(count))
