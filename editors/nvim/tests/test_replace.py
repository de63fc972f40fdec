"""`:DuologueReplace`: a selection, the answer below it, one step of undo."""

import pathlib
import unittest

from harness import EXAMPLES, Test, is_alive


def children(pid):
    """The processes that a process has started and that have not ended."""
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]



class Replace(Test):
    def open(self, answer, text, name="a.txt", **values):
        options = ["--engine", "echo", "--echo-answer", self.file("answer", answer)]
        editor = self.editor(options=options, **values)
        editor.nvim.command("edit " + self.file(name, text))
        return editor

    def lines(self, editor):
        return editor.nvim.current.buffer[:]

    def wait_preview(self, editor):
        editor.wait("the answer is complete", lambda: "<C-y> accepts" in editor.screen())

    def test_lines_are_replaced_and_undone_in_one_step(self):
        editor = self.open("eins\n\nzwei\n", "zero\none\ntwo\nthree\n")
        editor.keys("ochanged<Esc>jVj:DuologueReplace in German<CR>")
        self.wait_preview(editor)
        screen = editor.screen()
        self.assertIn("\none\ntwo\neins\n\nzwei\n", screen)
        self.assertEqual(self.lines(editor), ["zero", "changed", "one", "two", "three"])
        editor.keys("<C-y>")
        editor.wait("the answer", lambda: self.lines(editor) == ["zero", "changed", "eins", "", "zwei", "three"])
        self.assertNotIn("accepts", editor.screen())
        editor.keys("u")
        editor.wait("undone", lambda: self.lines(editor) == ["zero", "changed", "one", "two", "three"])
        editor.keys("u")
        editor.wait("undone", lambda: self.lines(editor) == ["zero", "one", "two", "three"])
        editor.keys("<C-r><C-r>")
        editor.wait("done again", lambda: "eins" in self.lines(editor))
        self.assertEqual(editor.nvim.funcs.maparg("<C-y>", "n"), "")

    def test_characters_are_replaced(self):
        editor = self.open("schön", "vor größe nach\n")
        editor.keys("wve:DuologueReplace shorter<CR>")
        self.wait_preview(editor)
        editor.keys("<C-y>")
        editor.wait("the answer", lambda: self.lines(editor) == ["vor schön nach"])

    def test_characters_of_several_lines_are_replaced(self):
        editor = self.open("new", "abcdef\nxyz\n")
        editor.keys("4lvj0:DuologueReplace x<CR>")
        self.wait_preview(editor)
        editor.keys("<C-y>")
        editor.wait("the answer", lambda: self.lines(editor) == ["abcdnewyz"])

    def test_without_a_range_the_line_is_replaced_whatever_was_selected_before(self):
        editor = self.open("new", "one two three\n")
        editor.keys("wviw<Esc>:DuologueReplace x<CR>")
        self.wait_preview(editor)
        editor.keys("<C-y>")
        editor.wait("the answer", lambda: self.lines(editor) == ["new"])

    def test_lines_keep_their_line_ends(self):
        for keys, expected in (("Vj", ["1\r", "2\r", "three", "four"]), ("jVjj", ["one\r", "1", "2"]),
                               ("lvj0", ["o1\r", "2wo\r", "three", "four"])):
            editor = self.open("1\r\n2\n", "one\r\ntwo\r\nthree\nfour\n")
            self.assertEqual(self.lines(editor), ["one\r", "two\r", "three", "four"])
            editor.keys(keys + ":DuologueReplace x<CR>")
            self.wait_preview(editor)
            editor.keys("<C-y>")
            editor.wait("the answer", lambda: self.lines(editor) == expected)

    def test_an_answer_waits_while_the_buffer_can_not_be_changed(self):
        editor = self.open("new", "one\n")
        editor.keys(":DuologueReplace x<CR>")
        self.wait_preview(editor)
        editor.nvim.command("set nomodifiable")
        editor.keys("<C-y>")
        editor.wait("it is refused", lambda: "can't be changed" in editor.nvim.command_output("messages"))
        editor.nvim.command("set modifiable")
        self.wait_preview(editor)
        editor.keys("<C-y>")
        editor.wait("the answer", lambda: self.lines(editor) == ["new"])

    def test_the_keys_of_the_buffer_come_back(self):
        editor = self.open("new", "one\n")
        editor.nvim.command("nnoremap <buffer> <C-y> Aown<Esc>")
        editor.lua("vim.keymap.set('n', '<C-e>', function() _G.called = true end, { buffer = true })")
        for key in ("<C-e>", "<C-y>"):
            editor.keys(":DuologueReplace x<CR>")
            self.wait_preview(editor)
            editor.keys(key)
            editor.wait("the end", lambda: "accepts" not in editor.screen())
        editor.keys("<C-y><C-e>")
        editor.wait("both do what they did", lambda: self.lines(editor) == ["newown"] and editor.lua("return _G.called"))

    def test_an_exclusive_selection_is_replaced_without_the_character_at_its_end(self):
        for keys, expected in (("0v3l", "newdef"), ("0v", "newbcdef"), ("0v$", "new")):
            editor = self.open("new", "abcdef\n")
            editor.nvim.command("set selection=exclusive")
            editor.keys(keys + ":DuologueReplace x<CR>")
            self.wait_preview(editor)
            editor.keys("<C-y>")
            editor.wait("the answer", lambda: self.lines(editor) == [expected])

    def test_no_tool_runs_whatever_the_options_allow(self):
        script, clock = str(EXAMPLES / "tool_calls.jsonl"), f"python3 {EXAMPLES / 'clock.py'}"
        editor = self.editor(options=["--engine", "echo", "--echo-script", script, "--mcp", clock, "--allow", "*", "--approval", "auto"])
        editor.lua("""
            local View = require('duologue.view')
            local event = View.event
            _G.names = {}
            View.event = function(self, given)
              table.insert(_G.names, given.name)
              return event(self, given)
            end""")
        editor.nvim.command("edit " + self.file("a.txt", "one\n"))
        editor.keys(":DuologueReplace x<CR>")
        self.wait_preview(editor)
        names = editor.lua("return _G.names")
        self.assertIn("ChatToolResultReady", names)
        self.assertNotIn("ChatToolExecutionStarted", names)

    def test_a_fence_around_the_answer_is_left_out(self):
        editor = self.open("```python\nx = 1\n```\n", "x=1\n", name="a.py")
        editor.keys(":DuologueReplace format<CR>")
        self.wait_preview(editor)
        editor.keys("<C-y>")
        editor.wait("the answer", lambda: self.lines(editor) == ["x = 1"])

    def test_blank_lines_before_the_answer_are_left_out(self):
        for keys, expected in (("jV", ["", "  x = 1"]), ("ggVj", ["", " ", "  x = 1"])):
            editor = self.open("\n \n  x = 1\n", "\nx=1\n", name="a.py")
            editor.keys(keys + ":DuologueReplace format<CR>")
            self.wait_preview(editor)
            editor.keys("<C-y>")
            editor.wait("the answer", lambda: self.lines(editor) == expected)

    def test_a_rejected_answer_changes_nothing(self):
        editor = self.open("no", "one\n")
        editor.keys(":DuologueReplace x<CR>")
        self.wait_preview(editor)
        editor.keys("<C-e>")
        editor.wait("the preview is gone", lambda: "accepts" not in editor.screen())
        self.assertEqual(self.lines(editor), ["one"])
        self.assertFalse(editor.lua("return vim.bo.modified"))

    def test_an_answer_that_is_cut_off_is_accepted_twice_or_not(self):
        for reason, why in (("length", "The answer was cut off at a token limit"),
                            ("content_filter", "The provider withheld the answer, or the rest of it")):
            editor = self.editor(options=self.provider("eins\nzw", reason))
            editor.nvim.command("edit " + self.file("a.txt", "one\ntwo\nthree\n"))
            editor.keys("Vjj:DuologueReplace in German<CR>")
            editor.wait("the reason", lambda: why + ": <C-y> twice takes it as it is" in editor.screen())
            editor.keys("<C-y>")
            editor.wait("it is asked again", lambda: why + ": <C-y> once more takes" in editor.screen())
            self.assertEqual(self.lines(editor), ["one", "two", "three"])
            editor.keys("<C-y>")
            editor.wait("the answer", lambda: self.lines(editor) == ["eins", "zw"])

    def test_an_answer_that_was_withheld_says_so(self):
        editor = self.editor(options=self.provider("", "content_filter"))
        editor.nvim.command("edit " + self.file("a.txt", "one\n"))
        editor.keys(":DuologueReplace x<CR>")
        editor.wait("the reason", lambda: "withheld" in editor.nvim.command_output("messages"))
        self.assertEqual(self.lines(editor), ["one"])

    def test_an_answer_is_stopped(self):
        editor = self.editor(options=["--engine", "echo", "--echo-delay-ms", "60000"])
        editor.nvim.command("edit " + self.file("a.txt", "one\n"))
        editor.keys(":DuologueReplace x<CR>")
        editor.wait("the hint", lambda: "<C-e> stops" in editor.screen())
        editor.keys("<C-y>")
        editor.wait("it is refused", lambda: "not complete" in editor.nvim.command_output("messages"))
        editor.keys("<C-e>")
        editor.wait("the preview is gone", lambda: "stops" not in editor.screen())
        self.assertEqual(self.lines(editor), ["one"])
        self.assertEqual(editor.lua("return vim.api.nvim_get_autocmds({ event = 'BufUnload', buffer = 0 })"), [])

    def test_an_answer_is_stopped_with_its_buffer(self):
        for leave in ("bwipeout!", "bdelete!"):
            editor = self.editor(options=["--engine", "echo", "--echo-delay-ms", "60000"])
            editor.nvim.command("edit " + self.file("a.txt", "one\n"))
            editor.keys(":DuologueReplace x<CR>")
            editor.wait("the hint", lambda: "<C-e> stops" in editor.screen())
            (pid,) = children(editor.pid)
            editor.nvim.command(leave)
            editor.wait("the process has ended", lambda: not is_alive(pid))

    def test_a_selection_that_has_changed_is_not_replaced(self):
        editor = self.open("new", "one\ntwo\n")
        editor.keys("j:DuologueReplace x<CR>")
        self.wait_preview(editor)
        # Above it: it moves along. Within it: it is refused.
        editor.keys("ggOzero<Esc>GAthree<Esc><C-y>")
        editor.wait("it is refused", lambda: "has changed since" in editor.nvim.command_output("messages"))
        editor.keys("u<C-y>")
        editor.wait("the answer", lambda: self.lines(editor) == ["zero", "one", "new"])

    def test_the_selection_and_the_instruction_are_sent_and_nothing_is_stored(self):
        editor = self.editor()
        editor.nvim.command("edit " + self.file("a.py", "one\n"))
        editor.keys(":DuologueReplace count\\ it @buffer<CR>")
        self.wait_preview(editor)
        screen = editor.screen()
        for part in ("Turn 1. You said: count", "The selection, ", "a.py, line 1:", "```python"):
            self.assertIn(part, screen)
        editor.command("Duologue resume")
        editor.wait("nothing is there", lambda: "no conversation is stored" in editor.nvim.command_output("messages"))

    def test_a_failure_is_said_and_leaves_the_text(self):
        editor = self.editor(options=["--engine", "openai", "--base-url", "http://127.0.0.1:9", "--model", "m", "--retries", "0"])
        editor.nvim.command("edit " + self.file("a.txt", "one\n"))
        editor.keys(":DuologueReplace x<CR>")
        editor.wait("the reason", lambda: "duologue:" in editor.nvim.command_output("messages"))
        self.assertEqual(self.lines(editor), ["one"])
        self.assertEqual(editor.nvim.funcs.maparg("<C-y>", "n"), "")

    def test_a_block_and_a_buffer_that_is_read_only_are_refused(self):
        editor = self.open("new", "one\ntwo\n")
        editor.keys("<C-v>j:DuologueReplace x<CR>")
        editor.wait("it is refused", lambda: "a block can't be replaced" in editor.nvim.command_output("messages"))
        editor.keys(":set nomodifiable<CR>:DuologueReplace x<CR>")
        editor.wait("it is refused", lambda: "can't be changed" in editor.nvim.command_output("messages"))


if __name__ == "__main__":
    unittest.main()
