"""The crates that a program of this package is made of, and the licences that their authors chose."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from targets import FEATURES, ROOT, output


@dataclass
class Crate:
    """One version of a crate."""

    name: str
    version: str
    licence: str
    source: str
    folder: Path
    authors: list[str]
    checksum: str = ""
    uses: list[Crate] = field(default_factory=list)

    @property
    def purl(self) -> str:
        return f"pkg:cargo/{self.name}@{self.version}"


def root_crate(triples: list[str]) -> tuple[Crate, list[Crate]]:
    """This package, and all crates that it needs on these platforms, for its build and its tests, too."""
    filters = [f"--filter-platform={triple}" for triple in triples]
    text = output("cargo", "metadata", "--locked", *FEATURES, "--format-version", "1", *filters, cwd=ROOT)
    metadata = json.loads(text)
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    checksums = {(each["name"], each["version"]): each.get("checksum", "") for each in lock}
    crates = {}
    for package in metadata["packages"]:
        name, version = package["name"], package["version"]
        crates[package["id"]] = Crate(
            name=name,
            version=version,
            licence=package["license"] or "",
            source=package["source"] or "",
            folder=Path(package["manifest_path"]).parent,
            authors=package["authors"],
            checksum=checksums[name, version],
        )
    for node in metadata["resolve"]["nodes"]:
        # What is only there for the build or for tests is not in the program.
        linked = [each for each in node["deps"] if any(kind["kind"] is None for kind in each["dep_kinds"])]
        crates[node["id"]].uses = sorted((crates[each["pkg"]] for each in linked), key=lambda it: it.purl)
    return crates[metadata["resolve"]["root"]], list(crates.values())


def linked(triple: str) -> list[Crate]:
    """The crates in the program for a platform, sorted; this package is not among them."""
    found: dict[str, Crate] = {}
    waiting = [root_crate([triple])[0]]
    while waiting:
        for crate in waiting.pop().uses:
            if crate.purl not in found:
                found[crate.purl] = crate
                waiting.append(crate)
    return sorted(found.values(), key=lambda it: (it.name, it.version))


def alternatives(expression: str) -> list[frozenset[str]]:
    """The sets of licences, of which each satisfies an SPDX expression; `/` is an old way to write OR."""
    tokens = re.findall(r"[()]|[^\s()/]+|/", expression.replace("/", " OR "))

    def either() -> list[frozenset[str]]:
        found = both()
        while tokens and tokens[0] == "OR":
            tokens.pop(0)
            found = found + both()
        return found

    def both() -> list[frozenset[str]]:
        found = one()
        while tokens and tokens[0] == "AND":
            tokens.pop(0)
            other = one()
            found = [left | right for left in found for right in other]
        return found

    def one() -> list[frozenset[str]]:
        word = tokens.pop(0)
        if word == "(":
            found = either()
            tokens.pop(0)
            return found
        if tokens and tokens[0] == "WITH":
            word = f"{word} WITH {tokens[1]}"
            del tokens[:2]
        return [frozenset([word])]

    found = either()
    if tokens:
        raise ValueError(f"not an SPDX expression: {expression}")
    return found
