"""A conversation in Neovim with the real program, driven by keys."""

import datetime
import json
import os
import pathlib
import shutil
import signal
import unittest

from harness import EXAMPLES, PLUGIN, Test, is_alive, kill

# What the text of an error is, for the client libraries, too.
ERROR_TEXTS = PLUGIN.parents[1] / "clients/error_texts.json"
SLOW = ["--engine", "echo", "--echo-delay-ms", "60000"]


class Chat(Test):
    def test_a_prompt_that_is_typed_is_answered_on_the_screen(self):
        editor = self.editor()
        editor.keys(":Duologue<CR>iWhat is a duologue?<C-s>")
        editor.wait_text("Turn 1. You said: What is a duologue?")
        editor.wait_idle()
        screen = editor.screen()
        for part in ("## You", "What is a duologue?", "## Model", "echo", "<CR> sends, <C-s> in insert mode"):
            self.assertIn(part, screen)
        editor.keys("<Esc>iAnd then?<Esc><CR>")
        editor.wait_text("Turn 2. You said: And then?\nBefore that you said: What is a duologue?")

    def test_tokens_and_cost_are_above_the_window(self):
        editor = self.fake("usage")
        editor.command("Duologue hi")
        editor.wait("the counts", lambda: "fake · 51.2k in, 300 out, 0.0123 USD" in editor.screen())

    def test_an_answer_that_is_cut_off_says_so(self):
        for reason, why in (("length", "The answer was cut off at a token limit"),
                            ("content_filter", "The provider withheld the answer, or the rest of it")):
            editor = self.editor(options=self.provider("half of", reason))
            editor.command("Duologue hi")
            text = editor.wait_text(why)
            self.assertIn("half of", text)

    def test_a_missing_provider_is_said_in_the_conversation(self):
        editor = self.editor(options=[])
        editor.command("Duologue hi")
        editor.wait_text("no provider is configured, so the built-in echo engine answers")

    def test_a_program_that_is_missing_is_said(self):
        editor = self.editor(command="/nowhere/duologue")
        editor.command("Duologue hi")
        text = editor.wait_text("can't be started")
        self.assertIn("/nowhere/duologue", text)
        editor.wait("the prompt comes back", lambda: editor.prompt() == "hi")

    def test_a_prompt_that_is_too_long_stays(self):
        editor = self.editor(options=["--engine", "echo", "--max-request-bytes", "1000"])
        editor.command("Duologue")
        editor.wait_idle()
        editor.keys("i" + "x" * 2000 + "<C-s>")
        editor.wait("the reason", lambda: "the prompt is too long" in editor.nvim.command_output("messages"))
        self.assertEqual(editor.prompt(), "x" * 2000)

    def test_words_that_are_commands_begin_a_prompt_too(self):
        editor = self.editor()
        editor.command("Duologue stop the server")
        editor.wait_text("You said: stop the server")
        editor.wait_idle()
        editor.command("Duologue -- stop")
        editor.wait_text("You said: stop\n")

    def test_undo_is_that_of_the_prompt_alone(self):
        editor = self.editor()
        editor.keys(":Duologue<CR>ione<C-s>")
        editor.wait_text("You said: one")
        editor.wait_idle()
        editor.keys("<Esc>u")
        editor.wait("undo brings the prompt back", lambda: editor.prompt() == "one")
        code = """local chat = require('duologue.windows').current()
        return vim.fn.undotree(chat.transcript.buffer).seq_last"""
        self.assertEqual(editor.lua(code), 0)
        editor.keys("<C-w>k")
        editor.keys("u")
        self.assertIn("You said: one", editor.text())

    def test_a_model_and_a_profile_are_chosen(self):
        profiles = self.file("profiles.yaml", "profiles:\n  demo: {engine: ollama, model: demo-model}\n")
        editor = self.editor(options=["--engine", "echo", "--profile-registries", profiles])
        editor.command("Duologue hi")
        editor.wait_text("You said: hi")
        editor.command("Duologue profile")
        screen = editor.wait_question()
        self.assertIn("1: demo", screen)
        editor.keys("1<CR>")
        editor.wait("the profile's model", lambda: "demo-model" in editor.screen())
        editor.command("Duologue model")
        editor.wait_question()
        editor.keys("2<CR>")
        editor.wait("the name is asked for", lambda: "Model:" in editor.screen())
        editor.keys("another<CR>")
        editor.wait("the other model", lambda: "another" in editor.screen().split("\n")[0])
        editor.command("Duologue model third")
        editor.wait("the third model", lambda: "third" in editor.screen().split("\n")[0])

    def test_the_text_of_an_error_has_its_reason(self):
        editor = self.editor()
        editor.command("Duologue hi")
        editor.wait_text("You said: hi")
        editor.command("Duologue profile nope")
        editor.wait_text('send the request again (there is no profile "nope"')
        for case in json.loads(ERROR_TEXTS.read_text(encoding="utf-8")):
            self.assertEqual(editor.lua("return require('duologue.text').of_error(...)", case), case["text"])

    def test_the_last_prompt_is_asked_again(self):
        editor = self.editor()
        editor.command("Duologue first")
        editor.wait_text("Turn 1. You said: first")
        editor.wait_idle()
        editor.command("Duologue retry")
        editor.wait_idle()
        text = editor.wait("one answer", lambda: editor.text().count("You said: first") == 1 and editor.text())
        self.assertEqual(text.count("## You"), 1)

    def test_an_earlier_prompt_is_edited(self):
        editor = self.editor()
        for prompt in ("first", "second"):
            editor.command("Duologue " + prompt)
            editor.wait_text("You said: " + prompt)
            editor.wait_idle()
        # The prompt under the cursor.
        editor.keys("<C-w>k")
        editor.keys("/^first$<CR>")
        editor.command("Duologue edit")
        editor.wait("it is in the prompt", lambda: editor.prompt() == "first")
        self.assertIn("edits an earlier prompt", editor.screen())
        editor.keys("Achanged <C-s>")
        editor.wait_text("You said: firstchanged")
        editor.wait_idle()
        self.assertNotIn("second", editor.text())
        # The second time it leaves everything as it is, and so does sending what is edited with a draft.
        editor.keys("<Esc>ia draft<Esc>")
        editor.command("Duologue edit")
        editor.wait("the last prompt", lambda: editor.prompt() == "firstchanged ")
        editor.command("Duologue edit")
        editor.wait("the draft", lambda: editor.prompt() == "a draft")
        editor.command("Duologue edit")
        editor.wait("the last prompt", lambda: editor.prompt() == "firstchanged ")
        editor.keys("Aagain<C-s><Esc>")
        editor.wait_text("You said: firstchanged again")
        self.assertEqual(editor.prompt(), "a draft")

    def test_a_question_from_elsewhere_leaves_the_prompt_that_is_edited(self):
        editor = self.editor()
        editor.nvim.command("edit " + self.file("a.txt", "code\n"))
        for prompt in ("first", "second"):
            editor.command("Duologue " + prompt)
            editor.wait_text("You said: " + prompt)
            editor.wait_idle()
        editor.keys("<C-w>k/^first$<CR>")
        editor.command("Duologue edit")
        editor.wait("it is in the prompt", lambda: editor.prompt() == "first")
        editor.command("Duologue hide")
        editor.wait("the code alone", lambda: len(editor.nvim.windows) == 1)
        editor.keys("V:Duologue explain this<CR>")
        text = editor.wait_text("Turn 3. You said: explain this")
        editor.wait_idle()
        self.assertIn("Turn 2. You said: second", text)
        self.assertEqual(editor.prompt(), "first")
        self.assertIn("edits an earlier prompt", editor.screen())
        editor.command("Duologue send")
        editor.wait("the edit", lambda: "explain this" not in editor.text() and "Turn 1. You said: first" in editor.text())

    def test_stop_ends_the_answer_and_gives_back_what_waits(self):
        editor = self.editor(options=SLOW)
        editor.command("Duologue first")
        editor.wait_text("## You\n\nfirst")
        editor.command("Duologue second")
        editor.wait("it waits", lambda: "answering, 1 wait" in editor.screen())
        editor.command("Duologue stop")
        editor.wait("it is back", lambda: editor.prompt() == "second")
        editor.wait_idle()
        self.assertNotIn("second", editor.text())

    def test_a_stored_conversation_is_resumed(self):
        editor = self.editor()
        editor.command("Duologue my name is Ada")
        editor.wait_text("You said: my name is Ada")
        editor.wait_idle()
        editor.close()
        editor = self.editor()
        editor.command("Duologue resume")
        screen = editor.wait_question()
        self.assertIn("my name is Ada", screen)
        here = datetime.timezone(-datetime.timedelta(hours=5, minutes=30))
        now = datetime.datetime.now(here)
        minutes = [now - datetime.timedelta(minutes=minutes) for minutes in range(2)]
        self.assertTrue(any(f"{minute:%Y-%m-%d %H:%M}  my name" in screen for minute in minutes), screen)
        editor.keys("1<CR>")
        editor.wait_text("You said: my name is Ada")
        editor.command("Duologue who am I?")
        editor.wait_text("Turn 2. You said: who am I?\nBefore that you said: my name is Ada")

    def test_a_conversation_that_another_process_holds_is_refused_with_its_name(self):
        editor = self.editor()
        editor.command("Duologue hi")
        editor.wait_text("You said: hi")
        (session,) = editor.chats()
        other = self.editor()
        other.command("Duologue resume " + session)
        text = other.wait_text("session_locked")
        self.assertIn(str(editor.process()), text)

    def test_a_copy_goes_on_without_the_original(self):
        editor = self.editor()
        editor.command("Duologue one")
        editor.wait_text("You said: one")
        editor.wait_idle()
        (original,) = editor.chats()
        editor.command("Duologue fork")
        editor.wait("two conversations", lambda: len(editor.chats()) == 2)
        editor.wait_text("You said: one")
        editor.command("Duologue two")
        editor.wait_text("Turn 2. You said: two")
        (copy,) = set(editor.chats()) - {original}
        self.assertIn(copy, editor.text())

    def test_without_a_store_nothing_is_written(self):
        editor = self.editor(store=False)
        editor.command("Duologue hi")
        editor.wait_text("You said: hi")
        self.assertFalse(os.path.exists(os.path.join(self.home, ".local/share/duologue")))

    def test_windows_are_closed_and_shown_again(self):
        editor = self.editor()
        editor.command("Duologue hi")
        editor.wait_text("You said: hi")
        count = lambda: len(editor.nvim.windows)
        self.assertEqual(count(), 3)
        editor.keys("<Esc><C-w>kq")
        editor.wait("both are closed", lambda: count() == 1)
        editor.command("Duologue")
        editor.wait("both are there", lambda: count() == 3)
        self.assertIn("You said: hi", editor.screen())
        pid = editor.process()
        editor.command("Duologue close")
        editor.wait("the process has ended", lambda: not is_alive(pid))
        self.assertEqual(editor.chats(), [])

    def test_windows_and_tab_pages_of_something_else_stay(self):
        editor = self.editor()
        editor.command("Duologue hi")
        editor.wait_text("You said: hi")
        editor.wait_idle()
        shape = lambda: [len(page.windows) for page in editor.nvim.tabpages]
        editor.nvim.command("tabnew | vsplit")
        editor.nvim.command("Duologue hide")
        self.assertEqual(shape(), [3, 2])
        editor.command("Duologue fork")
        editor.wait("the copy is shown", lambda: len(editor.chats()) == 2 and shape() == [3, 4])
        editor.nvim.command("Duologue hide")
        self.assertEqual(shape(), [3, 2])

    def test_a_tab_page_of_the_conversation_is_closed_with_it(self):
        editor = self.editor(layout="tab")
        editor.command("Duologue hi")
        editor.wait_text("You said: hi")
        count = lambda: len(editor.nvim.tabpages)
        self.assertEqual(count(), 2)
        editor.nvim.command("Duologue hide")
        self.assertEqual(count(), 1)

    def test_a_prompt_whose_buffer_was_deleted_is_made_again(self):
        editor = self.editor()
        for turn, command in enumerate(("bdelete", "bwipeout!", "bunload!"), 1):
            editor.command("Duologue")
            editor.wait("the prompt", lambda: editor.nvim.current.buffer.name.endswith("/prompt"))
            editor.wait_idle()
            editor.nvim.command(command)
            editor.keys(f":Duologue<CR>i{command}<C-s><Esc>")
            editor.wait_text(f"Turn {turn}. You said: {command}")
            self.assertEqual(editor.nvim.current.buffer.options["buftype"], "nofile")

    def test_an_edit_that_is_refused_is_still_an_edit(self):
        editor = self.editor(options=["--engine", "echo", "--echo-delay-ms", "20"])
        editor.command("Duologue one")
        editor.wait_text("You said: one")
        editor.wait_idle()
        editor.command("Duologue edit")
        editor.wait("the prompt", lambda: editor.prompt() == "one")
        # An edit during a run is refused.
        editor.lua("require('duologue.windows').current():request({ submit = { prompt = ('word '):rep(300) } })")
        editor.keys("A changed<C-s><Esc>")
        editor.wait_text("session_busy")
        editor.wait("it is back", lambda: editor.prompt() == "one changed")
        self.assertIn("edits an earlier prompt", editor.screen())
        editor.command("Duologue stop")
        editor.wait_idle()
        editor.command("Duologue send")
        editor.wait_text("Turn 1. You said: one changed")

    def test_a_conversation_comes_back_with_a_session_and_after_its_buffer_was_deleted(self):
        editor = self.editor()
        editor.command("Duologue hi")
        editor.wait_text("You said: hi")
        editor.wait_idle()
        (session,) = editor.chats()
        pid = editor.process()
        editor.command(f"bdelete duologue://{session}")
        editor.wait("the process has ended", lambda: not is_alive(pid))
        editor.command("Duologue resume " + session)
        editor.wait_text("You said: hi")
        editor.wait_idle()
        vim_session = os.path.join(self.home, "Session.vim")
        editor.nvim.command(f"only | buffer duologue://{session} | mksession {vim_session}")
        editor.close()
        editor = self.editor()
        editor.nvim.command("source " + vim_session)
        editor.wait_text("You said: hi")

    def test_the_text_is_drawn_again_after_edit(self):
        editor = self.editor()
        editor.command("Duologue hi")
        text = editor.wait_text("You said: hi")
        editor.wait_idle()
        editor.keys("<Esc><C-w>k:edit!<CR>")
        editor.wait("the text", lambda: editor.text() == text)


class Context(Test):
    def open(self, editor, name, text):
        editor.nvim.command("edit " + self.file(name, text))

    def test_selected_lines_go_along_in_a_fence(self):
        editor = self.editor()
        self.open(editor, "a.py", "one\n```\ntwo\nthree\n")
        editor.keys("Vjj:Duologue Explain<CR>")
        text = editor.wait_text("Turn 1. You said: Explain")
        self.assertIn("a.py, lines 1 to 3:\n\n````python\none\n```\ntwo\n````", text)

    def test_a_long_text_that_goes_along_is_folded(self):
        editor = self.editor()
        self.open(editor, "a.txt", "".join(f"line {n}\n" for n in range(50)))
        editor.keys("VG:Duologue Explain<CR>")
        editor.wait_text("You said: Explain")
        editor.wait_idle()
        editor.keys("<Esc><C-w>kgg")
        screen = editor.wait("the top", lambda: "## You" in editor.screen() and editor.screen())
        self.assertRegex(screen, r"\+~/a.txt, lines 1 to 50:\n.*│\n.*│ ## Model")

    def test_selected_characters_and_blocks_go_along(self):
        editor = self.editor()
        self.open(editor, "a.txt", "größer ab\nkleiner ab\n")
        editor.keys("wvl:Duologue chars<CR>")
        text = editor.wait_text("You said: chars")
        self.assertIn("```text\nab\n```", text)
        editor.wait_idle()
        editor.keys("<Esc><C-w>tgg0<C-v>jl:Duologue block<CR>")
        text = editor.wait_text("You said: block")
        self.assertIn("```text\ngr\nkl\n```", text)

    def test_a_line_with_an_old_selection_goes_along_whole(self):
        editor = self.editor()
        self.open(editor, "a.txt", "one two three\n")
        editor.keys("wviw<Esc>:.Duologue line<CR>")
        text = editor.wait_text("You said: line")
        self.assertIn("```text\none two three\n```", text)

    def test_a_block_to_the_ends_of_its_lines_goes_along(self):
        editor = self.editor()
        self.open(editor, "a.txt", "xäab\nx\n\tabcdefghij\nxäabc\n")
        editor.keys("ll<C-v>jjj$:Duologue block<CR>")
        text = editor.wait_text("You said: block")
        self.assertIn("```text\nab\n\n\tabcdefghij\nabc\n```", text)
        editor.wait_idle()
        # Another block of the same lines.
        editor.keys("<Esc><C-w>tgg0<C-v>jjj:Duologue again<CR>")
        text = editor.wait_text("You said: again")
        self.assertIn("```text\nx\nx\n \nx\n```", text)

    def test_a_selection_without_a_prompt_is_put_into_the_prompt(self):
        editor = self.editor()
        self.open(editor, "a.txt", "one\ntwo\n")
        editor.keys("V:Duologue<CR>")
        editor.wait("the prompt", lambda: "one" in editor.prompt() and "two" not in editor.prompt())
        editor.keys("GiWhat is it?<C-s>")
        editor.wait_text("What is it?")

    def test_a_buffer_goes_along_with_changes_that_are_not_written(self):
        editor = self.editor()
        self.open(editor, "a.txt", "old\n")
        editor.keys("ccnew<Esc>")
        editor.keys(":Duologue<CR>iLook at @buffer.<C-s>")
        text = editor.wait_text("Look at @buffer.")
        self.assertIn("a.txt:\n\n```text\nnew\n```", text)
        editor.wait_idle()
        # What is in the middle of a word is none.
        editor.keys("<Esc>imail me@buffer.org<C-s>")
        text = editor.wait_text("Turn 2. You said: mail me@buffer.org")
        # The last answer repeats the first prompt.
        self.assertEqual(text.count("```text\nnew\n```"), 3)

    def test_bytes_that_are_no_text_are_sent_as_replacement_characters(self):
        editor = self.editor()
        editor.nvim.command("set fileencodings=utf-8")
        self.open(editor, "latin1.txt", b"gr\xfc\xdfe \xf0\x9f \x00 end\n")
        editor.nvim.command("edit ++bin")
        editor.keys("V:Duologue odd<CR>")
        text = editor.wait_text("You said: odd")
        self.assertIn("gr\ufffd\ufffde \ufffd\ufffd \ufffd end", text)


class Approvals(Test):
    options = ["--engine", "echo", "--echo-script", str(EXAMPLES / "tool_calls.jsonl"), "--mcp", f"python3 {EXAMPLES / 'clock.py'}"]

    def test_a_call_is_approved_with_its_arguments_in_sight(self):
        editor = self.editor()
        editor.command("Duologue time?")
        editor.wait_text("waits for a decision")
        self.assertIn("2 calls wait: :Duologue approve", editor.screen())
        self.assertIn('{"city":"Berlin"}', editor.screen())
        editor.command("Duologue approve")
        screen = editor.wait_question()
        self.assertIn("get_time of clock wants to run with", screen)
        self.assertIn('{"city":"Berlin"}', screen)
        editor.keys("2<CR>")
        editor.wait_text("12:00")
        editor.command("Duologue approve")
        self.assertIn('{"city":"Oz"}', editor.wait_question())
        editor.keys("5<CR>")
        editor.wait("a reason is asked for", lambda: "Reason:" in editor.screen())
        editor.keys("not there<CR>")
        text = editor.wait_text("It is noon in Berlin.")
        self.assertIn("not there", text)
        editor.wait_idle()
        # Folded, with one line each.
        screen = editor.screen()
        self.assertNotIn("12:00", screen)
        self.assertIn("+**get_time**", screen)
        self.assertIn("+> **Thought**, 1 line", screen)
        editor.keys("<Esc><C-w>k/Berlin<CR>zo")
        editor.wait("the result", lambda: "12:00" in editor.screen())

    def test_a_tool_is_allowed_for_the_conversation(self):
        editor = self.editor()
        editor.command("Duologue time?")
        editor.wait_text("waits for a decision")
        editor.command("Duologue approve")
        editor.wait_question()
        editor.keys("3<CR>")
        editor.wait_text("It is noon in Berlin.")
        editor.wait_idle()
        editor.command("Duologue again?")
        editor.wait("no question", lambda: editor.text().count("It is noon in Berlin.") == 2)

    def test_no_key_that_is_typed_answers(self):
        editor = self.editor(question_idle_ms=0)
        editor.keys(":Duologue<CR>itime?<C-s>")
        # Insert mode: the question does not open.
        editor.wait_text("waits for a decision")
        editor.keys("2 yes<CR>")
        editor.wait("the text is in the prompt", lambda: editor.prompt() == "2 yes\n")
        self.assertEqual(editor.mode(), "i")
        self.assertIn("2 calls wait", editor.screen())
        # Normal mode, and no key for a while: it opens. Enter alone decides nothing, and it opens no second time.
        editor.keys("<Esc>")
        editor.wait_question()
        editor.keys("<CR>")
        self.assertIn('{"city":"Oz"}', editor.wait_question())
        editor.keys("1<CR>")
        editor.wait("no question", lambda: editor.mode() == "n")
        self.assertIn("2 calls wait", editor.screen())

    def test_who_writes_when_a_question_opens_decides_nothing(self):
        editor = self.editor(question_idle_ms=0)
        editor.keys(":Duologue<CR>itime?<C-s><Esc>")
        editor.wait_question()
        editor.lua("require('duologue.config').values.question_idle_ms = 60000")
        editor.keys("2<CR>")
        editor.wait("no question", lambda: editor.mode() == "n")
        self.assertIn("2 calls wait", editor.screen())
        # A question that was asked for is answered at once.
        editor.command("Duologue approve")
        editor.wait_question()
        editor.keys("2<CR>")
        editor.wait("one question is left", lambda: "1 call waits" in editor.screen())

    def test_an_interrupt_of_a_question_decides_nothing_and_the_next_one_opens(self):
        editor = self.editor(question_idle_ms=1000)

        def is_over():
            # Neovim may leave the question on the screen until Enter, and answers nothing until then.
            if editor.mode() == "r":
                editor.keys("<CR>")
            return editor.mode() == "n"

        editor.keys(":Duologue<CR>itime?<C-s><Esc>")
        self.assertIn("Berlin", editor.wait_question())
        editor.keys("<C-c>")
        editor.wait("no question", is_over)
        self.assertIn("Oz", editor.wait_question())
        editor.keys("<C-c>")
        editor.wait("no question", is_over)
        self.assertNotIn("Error", editor.nvim.command_output("messages"))
        # It counts, however long it takes.
        editor.lua("require('duologue.config').values.question_idle_ms = 60000")
        editor.command("Duologue approve")
        editor.wait_question()
        editor.keys("2<CR>")
        editor.wait("one question is left", lambda: "1 call waits" in editor.screen())

    def test_a_list_that_fails_says_so_and_decides_nothing(self):
        editor = self.editor()
        editor.command("Duologue time?")
        editor.wait_text("waits for a decision")
        editor.lua("vim.ui.select = function() error('the list is broken') end")
        editor.command("Duologue approve")
        editor.wait("what has failed", lambda: "the list is broken" in editor.nvim.command_output("messages"))
        self.assertIn("2 calls wait", editor.screen())

    def test_a_question_does_not_open_in_another_window(self):
        editor = self.editor(question_idle_ms=0)
        editor.keys(":Duologue<CR>itime?<C-s><Esc><C-w>t")
        editor.wait_text("waits for a decision")
        editor.keys("jjkk")
        self.assertEqual(editor.mode(), "n")
        editor.keys("<C-w>p")
        self.assertIn("Berlin", editor.wait_question())
        editor.keys("2<CR>")
        editor.wait("the next question", lambda: editor.mode() == "c" and "Oz" in editor.screen())
        editor.keys("4<CR>")
        editor.wait_text("It is noon")

    def test_what_reorders_text_is_shown_as_an_escape(self):
        script = '{"text":"","tools":[{"name":"get_time","arguments":{"city":"a\u202eb\u200bc\u0007"}}]}\n{"text":"end"}\n'
        options = [self.file("script.jsonl", script.replace("\u0007", "\\u0007")) if word.endswith("tool_calls.jsonl") else word for word in self.options]
        editor = self.editor(options=options)
        editor.command("Duologue time?")
        text = editor.wait_text("waits for a decision")
        self.assertIn("a\\u{202e}b\\u{200b}c", text)
        editor.command("Duologue approve")
        self.assertIn("a\\u{202e}b\\u{200b}c", editor.wait_question())
        editor.keys("4<CR>")
        editor.wait_text("end")

    def test_a_stop_closes_the_question(self):
        editor = self.editor()
        editor.command("Duologue time?")
        editor.wait_text("waits for a decision")
        editor.command("Duologue stop")
        editor.wait_idle()
        self.assertNotIn("wait", editor.screen().split("\n")[0])
        self.assertNotIn("waits for a decision", editor.text())


class Reader(Test):
    def answer(self, lines):
        return ["--engine", "echo", "--echo-answer", self.file("answer.md", "\n".join(f"line {n}" for n in range(lines)) + "\n")]

    def view(self, editor):
        return editor.lua("return {vim.fn.line('.'), vim.fn.col('.'), vim.fn.line('w0'), vim.fn.mode()}")

    def test_who_reads_is_not_moved_and_who_is_at_the_end_follows(self):
        editor = self.editor(options=self.answer(200))
        editor.command("Duologue one")
        editor.wait_text("line 199")
        editor.wait_idle()
        code = "local w = vim.fn.win_findbuf(require('duologue.windows').current().transcript.buffer)[1]; return vim.api.nvim_win_get_cursor(w)[1] == vim.api.nvim_buf_line_count(vim.api.nvim_win_get_buf(w))"
        self.assertTrue(editor.lua(code), "the window follows")
        self.assertIn("line 199", editor.screen())
        editor.keys("<Esc><C-w>k20Gzt3l")
        editor.wait("the reader's place", lambda: self.view(editor)[:1] == [20])
        before = self.view(editor)
        editor.lua("require('duologue.windows').current():ask('two')")
        editor.wait("the second answer", lambda: editor.text().count("line 199") == 2)
        editor.wait_idle()
        self.assertEqual(self.view(editor), before)
        # Neither is a selection at the end.
        editor.keys("GV")
        before = self.view(editor)
        editor.lua("require('duologue.windows').current():ask('three')")
        editor.wait("the third answer", lambda: editor.text().count("line 199") == 3)
        editor.wait_idle()
        self.assertEqual(self.view(editor), before)

    def test_who_reads_the_answer_that_comes_is_not_moved(self):
        editor = self.editor(options=["--engine", "echo", "--echo-delay-ms", "2"])
        editor.command("Duologue")
        editor.lua("require('duologue.windows').current():ask(...)", "\n".join(f"line {n}" for n in range(200)))
        editor.wait_text("Turn 1. You said: line 0\nline 1\nline 2\nline 3\n")
        editor.keys("<Esc><C-w>k/Turn 1<CR>jjzt2l")
        editor.wait("the reader's place", lambda: self.view(editor)[1] == 3)
        before = self.view(editor)
        self.assertTrue(editor.lua("return require('duologue.windows').current():is_busy()"))
        editor.wait_idle()
        self.assertEqual(editor.text().count("line 199"), 2)
        self.assertEqual(self.view(editor), before)

    def test_who_writes_elsewhere_is_not_disturbed(self):
        words = ["--engine", "echo", "--echo-reasoning", "--echo-delay-ms", "2"]
        editor = self.editor(options=words)
        editor.command("Duologue " + "word " * 300)
        editor.keys("<Esc><C-w>ti")
        typed = "abc def " * 20
        for char in typed:
            editor.keys(char)
        editor.wait("what was typed", lambda: editor.nvim.current.line == typed)
        editor.wait_idle()
        self.assertEqual(editor.nvim.current.line, typed)
        # Reasoning that came in insert mode is folded as a whole.
        code = """local chat = require('duologue.windows').current()
        local w = vim.fn.win_findbuf(chat.transcript.buffer)[1]
        return vim.api.nvim_win_call(w, function()
          local first = vim.fn.search('^> \\\\*\\\\*Thought', 'wn')
          return { first, vim.fn.foldclosed(first), vim.fn.foldclosedend(first), vim.fn.search('^Turn 1', 'wn') }
        end)"""
        first, closed, end, answer = editor.lua(code)
        self.assertEqual(first, closed)
        self.assertEqual(end, answer - 2)

    def test_neovim_that_stands_still_gets_all_of_the_text(self):
        answer = self.file("answer.md", "".join(f"{n} äöü {'x' * 200}\n" for n in range(4000)))
        editor = self.editor(options=["--engine", "echo", "--echo-answer", answer])
        go_on = pathlib.Path(self.home, "go-on")
        self.addCleanup(go_on.touch)
        editor.command("Duologue go")
        pid = editor.wait("a process", editor.process)
        editor.lua("local file = ...; vim.schedule(function() while not vim.uv.fs_stat(file) do end end)", str(go_on))
        written = lambda: int(pathlib.Path(f"/proc/{pid}/io").read_text().split("wchar: ")[1].split()[0])
        editor.wait_outside("the pipe is full", lambda: written() > 100_000)
        go_on.touch()
        editor.wait_idle()
        self.assertEqual(editor.text().split("## Model\n\n")[1].strip(), pathlib.Path(answer).read_text().strip())


class Ends(Test):
    def test_quitting_ends_the_process_and_its_run(self):
        editor = self.editor(options=SLOW)
        editor.command("Duologue hi")
        editor.wait_text("## You")
        pid = editor.process()
        editor.quit()
        editor.wait_outside("the end", lambda: not is_alive(pid))

    def test_quitting_asks_the_process_to_stop_and_to_end(self):
        editor = self.fake("recorded")
        editor.command("Duologue hi")
        recorded = pathlib.Path(self.home, "recorded")
        editor.wait("the prompt", lambda: recorded.exists() and "submit" in recorded.read_text())
        pid = editor.process()
        editor.quit()
        editor.wait_outside("the end", lambda: not is_alive(pid))
        lines = recorded.read_text().splitlines()
        self.assertEqual(lines[1:], ['{"cancel": {"waiting": true}}', '{"cancel": {}}', '{"shutdown": {}}', "end of input"])

    def test_neovim_that_is_killed_leaves_no_process(self):
        editor = self.editor(options=SLOW)
        editor.command("Duologue hi")
        editor.wait_text("## You")
        pid = editor.process()
        kill(editor.pid)
        editor.wait_outside("the end", lambda: not is_alive(pid))

    def test_a_process_that_is_killed_is_started_again_and_the_conversation_goes_on(self):
        editor = self.editor(options=["--engine", "echo", "--echo-delay-ms", "30"])
        editor.command("Duologue one")
        editor.wait_text("Turn 1. You said: one")
        editor.wait_idle()
        editor.command("Duologue " + "word " * 200)
        editor.wait_text("Turn 2. You said: word word")
        editor.keys("<Esc><C-w>k3G")
        pid = editor.process()
        kill(pid)
        editor.wait("another process", lambda: editor.process() not in (0, pid))
        text = editor.wait_text("*(stopped")
        self.assertIn("was ended by signal 9 and was started again", text)
        self.assertEqual(text.count("Turn 1. You said: one"), 1)
        self.assertEqual(text.count("Turn 2."), 1)
        self.assertEqual(editor.nvim.current.window.cursor[0], 3)
        editor.wait_idle()
        editor.command("Duologue three")
        editor.wait_text("Turn 3. You said: three")

    @unittest.skipUnless(os.path.exists("/proc/self/cwd"), "no /proc")
    def test_a_process_that_is_started_again_runs_in_the_same_folder(self):
        editor = self.editor()
        folder = os.path.join(self.home, "project")
        os.mkdir(folder)
        editor.nvim.command("cd " + folder)
        editor.command("Duologue one")
        editor.wait_text("You said: one")
        editor.wait_idle()
        editor.nvim.command("cd " + self.home)
        pid = editor.process()
        kill(pid)
        editor.wait("another process", lambda: editor.process() not in (0, pid))
        self.assertEqual(os.path.realpath(f"/proc/{editor.process()}/cwd"), os.path.realpath(folder))

    def test_a_process_that_is_ended_by_a_signal_is_started_again(self):
        editor = self.editor()
        editor.command("Duologue one")
        editor.wait_text("You said: one")
        editor.wait_idle()
        pid = editor.process()
        os.kill(pid, signal.SIGTERM)
        editor.wait("another process", lambda: editor.process() not in (0, pid))
        editor.wait_text("ended with status 143 and was started again")

    def test_a_prompt_that_was_lost_with_its_process_comes_back(self):
        editor = self.editor(options=SLOW)
        editor.command("Duologue one")
        editor.wait_text("## You\n\none")
        editor.command("Duologue two")
        editor.wait("it waits", lambda: "1 wait" in editor.screen())
        kill(editor.process())
        editor.wait("it is back", lambda: editor.prompt() == "two")

    def test_without_a_store_the_person_is_told_what_is_lost(self):
        editor = self.editor(store=False)
        editor.command("Duologue one")
        editor.wait_text("You said: one")
        editor.wait_idle()
        kill(editor.process())
        editor.wait_text("the next prompt begins a new conversation")
        editor.command("Duologue two")
        editor.wait_text("Turn 1. You said: two")


class Help(Test):
    def test_health_says_what_is_there(self):
        editor = self.editor()
        editor.keys(":checkhealth duologue<CR>")
        text = editor.wait("the report", lambda: (text := "\n".join(editor.nvim.current.buffer[:])) and "tool servers" in text and text)
        for part in ("Neovim 0.10 or later", "duologue 0.1.0", "conversations are stored in " + self.home, "profile: none is chosen"):
            self.assertIn(part, text)

    def test_health_says_how_to_find_the_program(self):
        editor = self.editor(command="/nowhere/duologue")
        editor.keys(":checkhealth duologue<CR>")
        editor.wait("the report", lambda: "/nowhere/duologue is not found" in "\n".join(editor.nvim.current.buffer[:]))

    def test_every_command_and_key_has_help(self):
        editor = self.editor()
        doc = (PLUGIN / "doc" / "duologue.txt").read_text()
        commands = editor.lua("return require('duologue.commands').names()")
        for name in commands:
            self.assertIn(f"*:Duologue-{name}*", doc)
        for name in editor.lua("return vim.tbl_keys(require('duologue.config').defaults.keys)"):
            self.assertRegex(doc, rf"\b{name}\b")
        for line in doc.split("\n"):
            self.assertLessEqual(len(line), 78, line)
        shutil.copytree(PLUGIN / "doc", pathlib.Path(self.home, "doc"))
        editor.nvim.command(f"helptags {self.home}/doc")
        editor.nvim.command(f"set runtimepath+={self.home}")
        editor.keys(":help duologue<CR>")
        editor.wait("the help", lambda: editor.nvim.current.buffer.name.endswith("duologue.txt"))

    def test_commands_are_completed(self):
        editor = self.editor()
        self.assertEqual(editor.nvim.funcs.getcompletion("Duologue re", "cmdline"), ["reject", "resume", "retry"])

    def test_a_wrong_value_of_setup_is_said(self):
        editor = self.editor()
        editor.keys(":lua require('duologue').setup({ layout = 'up' })<CR>")
        editor.wait("the reason", lambda: "layout of setup must be" in editor.nvim.command_output("messages"))


if __name__ == "__main__":
    unittest.main()
