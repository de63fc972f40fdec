#!/usr/bin/env python3
"""Holds the corpus of JSON inputs against Python's protobuf.

    json_mapping.py DESCRIPTORS CORPUS

DESCRIPTORS is a serialized FileDescriptorSet, as the build makes it (descriptors.bin). CORPUS has
one JSON object per line:

    type    full name of the message that `in` is read as
    in      the JSON text, as it would be on the wire
    out     its canonical form; no `out` means that `in` is an error
    note    why, and which implementations say otherwise (Python, Go, JavaScript)
    python  what Python says where it differs: {"out": ...}, or {} for an error

Python is asked to ignore unknown fields, as the server does. Prints `N passed, N failed`; exits with
1 if any failed. Needs protobuf 7 from PyPI.
"""

import json
import sys

from google.protobuf import any_pb2  # noqa: F401  (registers the well-known types)
from google.protobuf import (  # noqa: F401
    descriptor_pb2,
    descriptor_pool,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    json_format,
    message_factory,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)


def load(path):
    """Puts the messages of a FileDescriptorSet beside the well-known types."""
    pool = descriptor_pool.Default()
    with open(path, "rb") as file:
        files = descriptor_pb2.FileDescriptorSet.FromString(file.read()).file
    for file in files:
        if not file.name.startswith("google/protobuf/"):
            pool.Add(file)
    return pool


def canonical(pool, row):
    """What Python makes of a row: {"out": ...}, or {} for an error."""
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName(row["type"]))()
    try:
        json_format.Parse(row["in"], message, ignore_unknown_fields=True)
        return {"out": json.loads(json_format.MessageToJson(message))}
    except Exception:  # some hostile inputs end in errors of other modules
        return {}


def main(descriptors, corpus):
    pool = load(descriptors)
    passed = failed = 0
    with open(corpus, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            row = json.loads(line)
            expected = row.get("python", {"out": row["out"]} if "out" in row else {})
            found = canonical(pool, row)
            if found == expected:
                passed += 1
            else:
                failed += 1
                print(f"line {number}: {row['in']}\n  found    {found}\n  expected {expected}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
