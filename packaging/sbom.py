"""The bill of materials of a program: CycloneDX 1.6, as JSON."""

from __future__ import annotations

import datetime
import hashlib
import uuid
from pathlib import Path
from typing import Any

from crates import Crate, linked, root_crate
from targets import NAME, VERSION, Target, commit_time, output


def sbom(target: Target, program: Path) -> dict[str, Any]:
    """The document for a program, with the crates in it, their sources and their licences."""
    digest = hashlib.sha256(program.read_bytes()).hexdigest()
    root = root_crate([target.triple])[0]
    crates = linked(target.triple)
    itself = _component(root) | {"type": "application", "hashes": [{"alg": "SHA-256", "content": digest}]}
    when = datetime.datetime.fromtimestamp(commit_time(), datetime.UTC)
    compiler = output("rustc", "--version").split()[1]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        # Of what the document is about, so that the same program has the same document.
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, f'{NAME}/{VERSION}/{target.triple}/{digest}')}",
        "version": 1,
        "metadata": {
            "timestamp": when.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": itself,
            "properties": [
                {"name": f"{NAME}:target", "value": target.triple},
                {"name": f"{NAME}:rustc", "value": compiler},
            ],
        },
        "components": [_component(crate) for crate in crates],
        "dependencies": [
            {"ref": crate.purl, "dependsOn": [used.purl for used in crate.uses]} for crate in [root, *crates]
        ],
    }


def _component(crate: Crate) -> dict[str, Any]:
    component = {
        "type": "library",
        "bom-ref": crate.purl,
        "name": crate.name,
        "version": crate.version,
        "purl": crate.purl,
        "licenses": [{"expression": crate.licence.replace(" / ", " OR ").replace("/", " OR ")}],
    }
    if crate.checksum:
        component["hashes"] = [{"alg": "SHA-256", "content": crate.checksum}]
    return component
