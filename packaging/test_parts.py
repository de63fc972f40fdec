"""The parts of a release, apart from a program."""

import os
import tempfile
import unittest
from pathlib import Path

import deny
from crates import Crate, alternatives
from tree import archive, is_static


def crate(name="one", version="1.0.0", licence="MIT", source=deny.CRATES_IO):
    return Crate(name, version, licence, source, Path(), [])


class Licences(unittest.TestCase):
    def test_an_expression_is_read_as_spdx_says(self):
        for expression, expected in {
            "MIT": ["MIT"],
            "MIT/Apache-2.0": ["Apache-2.0", "MIT"],
            "MIT OR Apache-2.0 AND ISC": ["Apache-2.0+ISC", "MIT"],
            "(MIT OR Apache-2.0) AND Unicode-3.0": ["Apache-2.0+Unicode-3.0", "MIT+Unicode-3.0"],
            "Apache-2.0 WITH LLVM-exception OR MIT": ["Apache-2.0 WITH LLVM-exception", "MIT"],
        }.items():
            found = sorted("+".join(sorted(choice)) for choice in alternatives(expression))
            self.assertEqual(found, expected, expression)

    def test_what_is_no_expression_is_refused(self):
        with self.assertRaises(ValueError):
            alternatives("MIT Apache-2.0")

    def test_a_licence_that_is_not_allowed_is_a_fault(self):
        wrong = {"gpl": "GPL-3.0-only", "both": "MIT AND X", "none": ""}
        crates = [crate(), *(crate(name, licence=licence) for name, licence in wrong.items())]
        faults = deny.wrong_licences(crates, {"MIT"})
        self.assertEqual([fault.split()[0] for fault in faults], ["gpl", "both", "none"])


class Doubles(unittest.TestCase):
    def test_a_second_version_is_a_fault_unless_it_is_excused(self):
        crates = [crate(version="1.0.0"), crate(version="2.0.0"), crate("other")]
        self.assertEqual(len(deny.wrong_doubles(crates, set())), 1)
        self.assertEqual(deny.wrong_doubles(crates, {"one@1.0.0"}), [])

    def test_a_crate_from_elsewhere_is_a_fault(self):
        root = crate("root", source="")
        crates = [root, crate(), crate("forked", source="git+https://example.org/forked")]
        self.assertEqual(len(deny.wrong_sources(crates, root)), 1)


class Archives(unittest.TestCase):
    def test_the_same_files_are_the_same_archive(self):
        with tempfile.TemporaryDirectory() as name:
            made = [self._archive(Path(name) / each, names) for each, names in (("a", "xyz"), ("b", "zyx"))]
            self.assertEqual(made[0], made[1])

    def _archive(self, work, names):
        """Files that are written in another order, at another time and with another mode of their group."""
        folder = work / "folder"
        folder.mkdir(parents=True)
        for at, name in enumerate(names):
            (folder / name).write_text(name)
            (folder / name).chmod(0o644 if at else 0o664)
            os.utime(folder / name, (at, at))
        archive(folder, work / "file")
        return (work / "file").read_bytes()

    def test_a_program_with_a_loader_is_not_static(self):
        self.assertFalse(is_static(Path("/bin/sh")))


if __name__ == "__main__":
    unittest.main()
