"""The licence texts of everything that is in a program: its crates, Rust's standard library and the C library."""

from __future__ import annotations

import html
import re
import textwrap
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from crates import Crate, alternatives, linked
from targets import NAME, ROOT, VERSION, Target, output

IS_NOTICE = re.compile(r"(licen[sc]e|copying|copyright|notice|unlicense)", re.IGNORECASE)
LINE = "=" * 100


@dataclass
class Part:
    """Something in the program that others wrote, and what it wants to be passed on with it."""

    name: str
    licence: str
    texts: list[str]


def third_party(target: Target, libc: Path | None) -> str:
    """The file that goes with a program; `libc` is the licence of the C library, if that is linked."""
    parts = [_of_crate(crate) for crate in linked(target.triple)]
    parts += _of_rust(_rust_documents())
    if libc:
        parts.append(Part("musl, the C library", "MIT", [libc.read_text()]))
    holders: dict[str, list[str]] = defaultdict(list)
    texts: dict[str, str] = {}
    for part in parts:
        for text in part.texts:
            # The same text is often wrapped or indented in another way.
            key = " ".join(text.split())
            texts.setdefault(key, textwrap.dedent(text).strip())
            if part.name not in holders[key]:
                holders[key].append(part.name)
    table = "\n".join(f"{part.name}: {part.licence}" for part in parts)
    bodies = (f"{LINE}\n{textwrap.fill(', '.join(holders[key]), 100)}\n{LINE}\n\n{texts[key]}\n" for key in texts)
    head = f"{NAME} {VERSION} ({target.triple}) contains the following, under these licences.\n"
    return "\n".join([head, table, "", *bodies])


def _of_crate(crate: Crate) -> Part:
    files = sorted(path for path in crate.folder.iterdir() if IS_NOTICE.match(path.name))
    files = [path for each in files for path in (sorted(each.iterdir()) if each.is_dir() else [each])]
    # A source file, such as licence.rs, is no text for people.
    texts = [path.read_text(errors="replace") for path in files if path.suffix != ".rs"]
    return Part(f"{crate.name} {crate.version}", crate.licence, texts or [_standard_text(crate)])


def _standard_text(crate: Crate) -> str:
    """The text for a crate that names MIT or Apache-2.0 as its licence and has no file with it."""
    if frozenset(["Apache-2.0"]) in alternatives(crate.licence):
        return (_rust_documents() / "licenses/Apache-2.0.txt").read_text()
    if frozenset(["MIT"]) not in alternatives(crate.licence):
        raise SystemExit(f"{crate.name} {crate.version} has no licence text: {crate.folder}")
    holder = ", ".join(crate.authors) or f"the authors of {crate.name}"
    own = (ROOT / "LICENSE").read_text()
    return re.sub(r"Copyright \(c\) .*", lambda _: f"Copyright (c) {holder}", own)


def _rust_documents() -> Path:
    """The folder of the documents that come with the compiler."""
    return Path(output("rustc", "--print", "sysroot").strip()) / "share/doc/rust"


def _of_rust(folder: Path) -> list[Part]:
    """The parts of Rust's standard library, from the page that comes with the compiler."""
    page = (folder / "COPYRIGHT-library.html").read_text()
    own = [(folder / "licenses" / f"{name}.txt").read_text() for name in ("MIT", "Apache-2.0", "Unicode-3.0")]
    parts = [Part("Rust's standard library", "(MIT OR Apache-2.0) AND Unicode-3.0", own)]
    for entry in page.split("<h3>📦 ")[1:]:
        name = entry.split("</h3>", 1)[0]
        licence = re.search(r"<b>License:</b> ([^<]*)</p>", entry)
        texts = re.findall(r"<pre>(.*?)</pre>", entry, re.DOTALL)
        # Only what was compiled for other systems has no text.
        if texts and licence and not re.match(r"(windows|wasi|wit-bindgen|moto|r-efi|hermit)", name):
            readable = [html.unescape(text) for text in texts]
            parts.append(Part(f"{name} (in Rust's standard library)", licence[1], readable))
    return parts
