"""The lines of docs/editors.md for Vim and Kakoune, in these editors."""

import os
import pathlib
import subprocess
import tempfile
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent
DOCUMENT = (FOLDER.parents[1] / "docs" / "editors.md").read_text()
SECONDS_MAX = 60
TEXT = "one\ntwo\nthree\n"
# The built-in engine repeats the prompt, which is the instruction and the selection.
CHANGED = "one\nTurn 1. You said: Make it formal\n\ntwo\nthree\n"


def block(language, word):
    """The first code block of a language that has a word."""
    blocks = DOCUMENT.split(f"```{language}\n")[1:]
    return next(text for text in (block.split("```")[0] for block in blocks) if word in text)


class Filters(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "duologue").symlink_to(pathlib.Path(os.environ["DUOLOGUE_BIN"]).resolve())
        self.file = self.folder / "a.txt"
        self.file.write_text(TEXT)

    def run_editor(self, *words, **variables):
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        env = {"PATH": path, "HOME": str(self.folder), "TERM": "xterm", "LANG": "C.UTF-8", **variables}
        run = subprocess.run(words, env=env, cwd=self.folder, timeout=SECONDS_MAX, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return run.stdout + run.stderr

    def vim(self, *commands, **variables):
        words = [word for command in commands for word in ("-c", command)]
        return self.run_editor("vim", "-N", "-u", "NONE", "-es", *words, "-c", "wq!", str(self.file), **variables)

    def kakoune(self, keys, **variables):
        keys = keys.replace('"', '""')
        return self.run_editor("kak", "-n", "-ui", "dummy", "-e", f'edit a.txt; execute-keys "{keys}"; write; quit!', **variables)

    def test_vim_filters_lines(self):
        line = block("vim", "'<,'>!").strip().removeprefix(":")
        self.vim("normal! 2GV\x1b", line)
        self.assertEqual(self.file.read_text(), CHANGED)

    def test_vim_has_the_lines_back_after_a_failure(self):
        line = block("vim", "'<,'>!").strip().removeprefix(":")
        self.vim("normal! 2GV\x1b", line, DUOLOGUE_ENGINE="nonsense")
        self.assertEqual(self.file.read_text(), "one\nthree\n")
        self.file.write_text(TEXT)
        self.vim("normal! 2GV\x1b", line, "undo", DUOLOGUE_ENGINE="nonsense")
        self.assertEqual(self.file.read_text(), TEXT)

    def test_the_command_for_vim_replaces_the_lines_in_one_step_of_undo(self):
        vimrc = self.folder / "ask.vim"
        vimrc.write_text(block("vim", "function! Ask"))
        self.vim(f"source {vimrc}", "2Ask Make it formal")
        self.assertEqual(self.file.read_text(), CHANGED)
        self.file.write_text(TEXT)
        self.vim(f"source {vimrc}", "2Ask Make it formal", "undo")
        self.assertEqual(self.file.read_text(), TEXT)

    def test_the_command_for_vim_shows_an_error_and_leaves_the_lines(self):
        vimrc = self.folder / "ask.vim"
        vimrc.write_text(block("vim", "function! Ask"))
        said = self.folder / "said.txt"
        self.vim(f"source {vimrc}", f"redir > {said}", "try | 2Ask it's 5% | catch | echo v:exception | endtry", "redir END", DUOLOGUE_ENGINE="nonsense")
        self.assertEqual(self.file.read_text(), TEXT)
        self.assertIn("invalid value 'nonsense'", said.read_text())

    def test_kakoune_filters_the_selection(self):
        line = next(line for line in DOCUMENT.split("\n") if line.startswith("duologue exec") and line.endswith(" -"))
        self.kakoune(f"jx|{line}<ret>")
        self.assertEqual(self.file.read_text(), CHANGED)

    def test_kakoune_has_the_selection_back_after_a_failure(self):
        line = next(line for line in DOCUMENT.split("\n") if line.startswith("duologue exec") and line.endswith(" -"))
        self.kakoune(f"jx|{line}<ret>", DUOLOGUE_ENGINE="nonsense")
        self.assertEqual(self.file.read_text(), "one\nthree\n")
        self.file.write_text(TEXT)
        self.kakoune(f"jx|{line}<ret>u", DUOLOGUE_ENGINE="nonsense")
        self.assertEqual(self.file.read_text(), TEXT)

    def test_the_line_for_helix_prints_the_answer_and_nothing_else(self):
        """Helix would take anything on standard error in its place."""
        line = next(line for line in DOCUMENT.split("\n") if line.startswith("duologue exec") and line.endswith("2>/dev/null"))
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        run = subprocess.run(["sh", "-c", line], input="two", env={"PATH": path, "HOME": str(self.folder)}, capture_output=True, text=True, timeout=SECONDS_MAX)
        self.assertEqual((run.stdout, run.stderr), ("Turn 1. You said: Make it formal\n\ntwo\n", ""))


if __name__ == "__main__":
    unittest.main()
