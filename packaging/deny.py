"""Checks the licences, the sources and the doubles of all crates by `deny.toml`, in a second.

The file is that of cargo-deny, which does the same and more, but has to be compiled for minutes, or downloaded from
where not every machine may. `--advisories` has cargo-deny look for known vulnerabilities, too: that needs the program and the
network, as the database of advisories is a repository of its own.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections import defaultdict
from typing import Any

from crates import Crate, alternatives, root_crate
from targets import ROOT, run

CRATES_IO = "registry+https://github.com/rust-lang/crates.io-index"


def wrong_licences(crates: list[Crate], allowed: set[str]) -> list[str]:
    """Crates without a licence that is allowed."""
    wrong = []
    for crate in crates:
        if not crate.licence:
            wrong.append(f"{crate.name} {crate.version} names no licence")
        elif not any(choice <= allowed for choice in alternatives(crate.licence)):
            wrong.append(f"{crate.name} {crate.version}: none of its licences is allowed: {crate.licence}")
    return wrong


def wrong_doubles(crates: list[Crate], excused: set[str]) -> list[str]:
    """Crates that are there in several versions, where that is not excused."""
    versions = defaultdict(list)
    for crate in crates:
        if f"{crate.name}@{crate.version}" not in excused:
            versions[crate.name].append(crate.version)
    doubles = {name: " and ".join(sorted(found)) for name, found in versions.items() if len(found) > 1}
    return [f"{name} is there twice: {found}; see skip in deny.toml" for name, found in sorted(doubles.items())]


def unneeded(crates: list[Crate], rules: dict[str, Any]) -> list[str]:
    """Excuses and licences that nothing needs any more, which is no fault."""
    choices = [choice for crate in crates for choice in alternatives(crate.licence or "none")]
    licences = set(rules["licenses"]["allow"]) - set().union(*choices)
    present = {f"{crate.name}@{crate.version}" for crate in crates}
    return sorted(licences | ({each["crate"] for each in rules["bans"]["skip"]} - present))


def wrong_sources(crates: list[Crate], root: Crate) -> list[str]:
    """Crates that come from somewhere else than crates.io."""
    foreign = [crate for crate in crates if crate is not root and crate.source != CRATES_IO]
    return [f"{crate.name} {crate.version} comes from {crate.source or crate.folder}" for crate in foreign]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--advisories", action="store_true", help="also look for known vulnerabilities")
    arguments = parser.parse_args()
    rules = tomllib.loads((ROOT / "deny.toml").read_text())
    root, crates = root_crate(rules["graph"]["targets"])
    wrong = wrong_licences(crates, set(rules["licenses"]["allow"]))
    wrong += wrong_doubles(crates, {each["crate"] for each in rules["bans"]["skip"]})
    wrong += wrong_sources(crates, root)
    for each in unneeded(crates, rules):
        print(f"deny.toml has {each}, which nothing needs any more")
    for each in wrong:
        print(each, file=sys.stderr)
    print(f"{len(crates)} crates: licences, doubles and sources checked, {len(wrong)} faults")
    if arguments.advisories:
        run("cargo", "deny", "check", "advisories", cwd=ROOT)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
