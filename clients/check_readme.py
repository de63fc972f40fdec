#!/usr/bin/env python3
"""Checks that each rule of README.md has its test in each language."""

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = {
    "Python": "clients/python/tests/*.py",
    "TypeScript": "clients/typescript/tests/*.ts",
    "Go": "clients/go/*_test.go",
    "Rust": "tests/it/rust_client/*.rs",
}


def names(words):
    """How a test is called in each language."""
    snake = re.sub(r"\W+", "_", words).lower()
    return {
        "Python": f"def test_{snake}(",
        "TypeScript": words,
        "Go": "func Test" + "".join(word[0].upper() + word[1:] for word in words.split()) + "(",
        "Rust": f"fn {snake}(",
    }


def rules():
    """The tests of each rule, by language."""
    section = (HERE / "README.md").read_text().split("## Rules")[1].split("\n\n1,000")[0]
    for row in re.findall(r"^\| ([^|]+) \|[^|]*\| ([^|]+) \|$", section, re.MULTILINE):
        if row[0] in ("rule", "---"):
            continue
        parts = [part.split(": ") for part in row[1].split("; ")]
        if len(parts[0]) == 1:
            yield row[0], names(row[1].strip())
        else:
            # A dash: the rule does not concern the language.
            tests = {language: words.strip() for language, words in parts if words.strip() != "—"}
            yield row[0], {language: names(words)[language] for language, words in tests.items()}


def main():
    sources = {
        language: "".join(path.read_text() for path in HERE.parent.glob(glob)).replace(",", "")
        for language, glob in SOURCES.items()
    }
    found = list(rules())
    missing = [
        f"{language}: no test {name!r} for the rule: {rule}"
        for rule, tests in found
        for language, name in tests.items()
        if name not in sources[language]
    ]
    if len(found) < 25:
        missing.append(f"only {len(found)} rules were found")
    sys.exit("\n".join(missing) or None)


main()
