"""The wheels of the Python client: one for each platform with the program inside, and one without."""

from __future__ import annotations

import base64
import hashlib
import time
import tomllib
import zipfile
from pathlib import Path

from targets import NAME, ROOT, VERSION, Target, commit_time

SOURCES = ROOT / "clients" / "python"
PROJECT = tomllib.loads((SOURCES / "pyproject.toml").read_text())["project"]


def wheel(target: Target | None, laid_out: Path | None, into: Path) -> Path:
    """Makes a wheel: with the program and a command of its name, or, without a target, of the client alone."""
    tag = f"py3-none-{target.wheel if target else 'any'}"
    about = f"{NAME}-{VERSION}.dist-info"
    modules = sorted(path for path in (SOURCES / NAME).iterdir() if path.suffix in (".py", ".typed"))
    files = {f"{NAME}/{path.name}": path.read_bytes() for path in modules}
    programs = set()
    if target and laid_out:
        programs = {f"{NAME}/bin/{NAME}"}
        files[f"{NAME}/bin/{NAME}"] = (laid_out / NAME).read_bytes()
        files[f"{about}/licenses/THIRD-PARTY.txt"] = (laid_out / "THIRD-PARTY.txt").read_bytes()
        files[f"{about}/entry_points.txt"] = f"[console_scripts]\n{NAME} = {NAME}.__main__:main\n".encode()
    files[f"{about}/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    files[f"{about}/METADATA"] = _metadata(["LICENSE", "THIRD-PARTY.txt"] if target else ["LICENSE"]).encode()
    tags = "".join(f"Tag: py3-none-{platform}\n" for platform in tag.removeprefix("py3-none-").split("."))
    pure = "false" if target else "true"
    files[f"{about}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: {NAME}\nRoot-Is-Purelib: {pure}\n{tags}".encode()
    files[f"{about}/RECORD"] = _record(files, f"{about}/RECORD").encode()
    file = into / f"{NAME}-{VERSION}-{tag}.whl"
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in files.items():
            member = zipfile.ZipInfo(name, time.gmtime(commit_time())[:6])
            member.create_system = 3
            member.external_attr = (0o100755 if name in programs else 0o100644) << 16
            archive.writestr(member, content, zipfile.ZIP_DEFLATED, 9)
    return file


def _metadata(licences: list[str]) -> str:
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {PROJECT['name']}",
        f"Version: {VERSION}",
        f"Summary: {PROJECT['description']}",
        f"License-Expression: {PROJECT['license']}",
        *(f"License-File: {name}" for name in licences),
        f"Requires-Python: {PROJECT['requires-python']}",
        *(f"Classifier: {each}" for each in PROJECT["classifiers"]),
        *(f"Requires-Dist: {each}" for each in PROJECT["dependencies"]),
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join(lines) + "\n\n" + Path(SOURCES, PROJECT["readme"]).read_text()


def _record(files: dict[str, bytes], itself: str) -> str:
    def digest(content: bytes) -> str:
        return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()

    rows = [f"{name},sha256={digest(content)},{len(content)}\n" for name, content in files.items()]
    return "".join(rows) + f"{itself},,\n"
