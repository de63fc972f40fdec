"""What a pipe and a process can do to an editor: half lines, huge lines, odd text, deaths."""

import pathlib
import socket
import unittest

from harness import SECONDS_MAX, Test, is_alive, kill


class Pipe(Test):
    def test_chunks_are_not_lines(self):
        """A chunk ends anywhere, also within a character, and only a line feed ends a line."""
        editor = self.fake("halves")
        editor.command("Duologue hi")
        text = editor.wait_text("tab\there\nnew")
        self.assertIn("ä€😀 e\u0301 שלום \u2028 \u0085 ", text)
        editor.wait_idle()
        # What a terminal or a reader would obey is not.
        self.assertIn("^[[31mline", editor.screen())

    def test_null_is_unset_and_what_is_no_frame_is_asked_for_again(self):
        editor = self.fake("garbage")
        editor.command("Duologue hi")
        text = editor.wait_text("asked again")
        self.assertIn("fine", text)
        self.assertEqual(text.count("could not be read"), 2)
        self.assertNotIn("vim.NIL", text)

    def test_a_line_that_is_too_long_is_dropped_and_asked_for_again(self):
        editor = self.fake("overlong")
        editor.command("Duologue hi")
        text = editor.wait_text("asked again")
        self.assertIn("a line of more than 67108864 bytes was dropped", text)
        editor.wait_idle()
        editor.command("Duologue again")
        editor.wait("the second answer", lambda: editor.text().count("dropped") == 2)

    def test_a_text_without_a_line_feed_is_shown_whole(self):
        editor = self.fake("long-line")
        editor.command("Duologue hi")
        editor.wait("the text", lambda: "x" * 3_000_000 in editor.text())
        editor.wait_idle()
        self.assertIn("xxxxxxxx", editor.screen())

    def test_what_is_not_handled_yet_is_bounded(self):
        editor = self.fake("flood")
        editor.lua("""
            local Process = require('duologue.process')
            local schedule = Process.schedule
            _G.most = 0
            Process.schedule = function(self, how)
              _G.most = math.max(_G.most, self.unread)
              return schedule(self, how)
            end""")
        editor.command("Duologue hi")
        text = "".join(("All work and no play makes Jack a dull boy. " * 20 + "\n") * 12 for _ in range(400))
        editor.wait("the text", lambda: editor.text().count("All work") == 400 * 12 * 20)
        editor.wait_idle()
        self.assertIn(text.rstrip("\n"), editor.text())
        # The limit, and a chunk.
        self.assertLess(editor.lua("return _G.most"), 4 * 1024 * 1024 + 64 * 1024 + 1)

    def test_names_of_a_provider_are_not_formats(self):
        editor = self.fake("names")
        editor.command("Duologue hi")
        editor.wait_text("fine")
        self.assertIn("%{v:lua.os.exit()}%#Error#", editor.screen())


class Deaths(Test):
    def test_a_process_that_dies_within_a_line_is_started_again(self):
        editor = self.fake("dies")
        editor.command("Duologue hi")
        text = editor.wait_text("was started again")
        self.assertNotIn("could not be read", text)
        editor.wait("another process", editor.process)

    def test_a_process_that_dies_each_time_is_not_started_without_end(self):
        editor = self.fake("counted")
        starts = lambda: pathlib.Path(self.home, "starts").read_text().count("start")
        editor.command("Duologue 1")
        editor.wait("the prompt comes back", lambda: editor.prompt() == "1")
        for count in range(2, 5):
            editor.wait("a process", editor.process)
            editor.command("Duologue send")
            editor.wait("one more has ended", lambda: editor.lua("return require('duologue.windows').current().deaths") == count)
        editor.wait_text("for the 4th time. The next prompt starts it again")
        self.assertEqual(editor.process(), 0)
        self.assertEqual(starts(), 4)
        self.assertIn("not running", editor.screen())

    def test_a_wrong_command_line_is_said_once_and_not_tried_again(self):
        editor = self.fake("refuses")
        editor.command("Duologue hi")
        text = editor.wait_text("ended with status 2 before it could answer")
        self.assertIn("unexpected argument '--nonsense' found", text)
        self.assertEqual(editor.process(), 0)
        real = self.editor(options=["--nonsense"])
        real.command("Duologue hi")
        real.wait_text("unexpected argument '--nonsense' found")

    def test_a_process_that_ends_for_nothing_is_killed_when_neovim_quits(self):
        editor = self.fake("stubborn")
        editor.command("Duologue")
        editor.wait_text("ready")
        pid = editor.process()
        editor.quit()
        editor.wait_outside("the end", lambda: not is_alive(pid))

    def test_a_list_that_does_not_come_is_not_waited_for_when_neovim_quits(self):
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(SECONDS_MAX)
            url = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
            editor = self.editor(options=["--engine", "openai", "--base-url", url, "--model", "m"])
            editor.command("Duologue")
            editor.wait_idle()
            editor.command("Duologue model")
            connection, _ = server.accept()
            with connection:
                connection.settimeout(SECONDS_MAX)
                self.assertIn(b"/models", connection.recv(1024))
                editor.quit()
                # The process that has asked is gone.
                while connection.recv(1024):
                    pass

    def test_a_defect_in_one_frame_does_not_end_the_reading(self):
        editor = self.editor()
        editor.lua("""
            local View = require('duologue.view')
            local event = View.event
            View.event = function(self, given)
              if given.name == 'ChatRunStarted' then error('a defect') end
              return event(self, given)
            end""")
        editor.command("Duologue hi")
        editor.wait_text("You said: hi")
        self.assertIn("a defect of the plugin", editor.nvim.command_output("messages"))


if __name__ == "__main__":
    unittest.main()
