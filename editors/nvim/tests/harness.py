"""A Neovim with a screen, driven by keys, and what tests look at in it."""

import http.server
import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import threading
import time
import unittest

import pynvim

PLUGIN = pathlib.Path(__file__).resolve().parents[1]
EXAMPLES = PLUGIN.parents[1] / "examples"
FAKE_SERVER = PLUGIN.parent / "tests" / "fake_server.py"
BINARY = os.environ["DUOLOGUE_BIN"]
NVIM = os.environ.get("NVIM_BIN") or shutil.which("nvim")
SECONDS_MAX = 15
COLUMNS, LINES = 120, 40
# Five and a half hours before UTC, and variables that scripts set and the editor must not heed.
ENVIRONMENT = {"TZ": "TST+5:30", "DUOLOGUE_EVENTS": "ChatRun*"}


class Editor:
    """`setup` is the text of the table that `setup` gets."""

    def __init__(self, setup, home):
        self.home, self.is_closed = home, False
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
        env = {**kept, "HOME": home, "XDG_RUNTIME_DIR": home, "TERM": "xterm-256color", **ENVIRONMENT}
        before = f"set runtimepath^={PLUGIN} noswapfile shortmess+=I"
        argv = [NVIM, "--embed", "--clean", "--cmd", before, "-c", f"lua require('duologue').setup({setup})"]
        old = dict(os.environ)
        os.environ.clear()
        os.environ.update(env)
        try:
            self.nvim = pynvim.attach("child", argv=argv)
        finally:
            os.environ.clear()
            os.environ.update(old)
        self.nvim.ui_attach(COLUMNS, LINES, rgb=True, ext_linegrid=True)
        self.pid = self.nvim.eval("getpid()")

    def keys(self, keys):
        """Types keys, as a person does."""
        self.nvim.input(keys)

    def command(self, text):
        """Types a command. It may open a question, which is not waited for."""
        self.keys("<Esc>:" + text.replace("<", "<lt>") + "<CR>")

    def lua(self, code, *arguments):
        return self.nvim.exec_lua(code, *arguments)

    def mode(self):
        return self.nvim.request("nvim_get_mode")["mode"]

    def wait(self, what, condition):
        """Waits until `condition()` is true."""
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}: not within {SECONDS_MAX} s\n{self.screen()}")
            time.sleep(0.01)

    def wait_question(self):
        """Waits until `vim.ui.select` asks."""
        return self.wait("a question", lambda: self.mode() == "c" and self.screen())

    def wait_outside(self, what, condition):
        """Like `wait`, for a Neovim that does not answer."""
        deadline = time.monotonic() + SECONDS_MAX
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}: not within {SECONDS_MAX} s")
            time.sleep(0.01)

    def chats(self):
        return self.lua("return vim.tbl_keys(require('duologue.chat').all)")

    def text(self):
        """The conversation of the current chat."""
        code = """local chat = require('duologue.windows').current()
        return chat and vim.api.nvim_buf_get_lines(chat.transcript.buffer, 0, -1, false) or {}"""
        return "\n".join(self.lua(code))

    def prompt(self):
        code = "return vim.api.nvim_buf_get_lines(require('duologue.windows').current().prompt, 0, -1, false)"
        return "\n".join(self.lua(code))

    def wait_text(self, part):
        return self.wait(f"text {part!r}", lambda: (text := self.text()) and part in text and text)

    def wait_idle(self):
        code = """local chat = require('duologue.windows').current()
        return chat and chat.is_greeted and not chat:is_busy() and next(chat.view.dirty) == nil"""
        self.wait("the end of the answer", lambda: self.lua(code))

    def screen(self):
        """The rows that are on the screen."""
        self.nvim.command("redraw!") if self.mode() == "n" else None
        code = """local rows = {}
        for row = 1, vim.o.lines do
          local cells = {}
          for column = 1, vim.o.columns do cells[column] = vim.fn.screenstring(row, column) end
          rows[row] = (table.concat(cells):gsub('%s+$', ''))
        end
        return rows"""
        return "\n".join(self.lua(code))

    def process(self):
        """The process id of the current conversation."""
        code = """local chat = require('duologue.windows').current()
        return chat and chat.process and chat.process.pid or 0"""
        return self.lua(code)

    def quit(self):
        try:
            self.nvim.command("qall!")
        except (OSError, EOFError):
            pass

    def close(self):
        if self.is_closed:
            return
        self.is_closed = True
        self.quit()
        try:
            self.nvim.close()
        except (OSError, EOFError):
            pass


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = pathlib.Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rsplit(")", 1)[1].split()[0] != "Z"


class Test(unittest.TestCase):
    """`options` are those of `duologue rpc`."""

    options = ["--engine", "echo"]

    def setUp(self):
        # A Neovim that stands still answers nothing, and its test would not end.
        signal.alarm(4 * SECONDS_MAX)
        self.addCleanup(signal.alarm, 0)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = folder.name

    def editor(self, options=None, command=None, **values):
        words = self.options if options is None else options
        table = {"command": command or BINARY, "options": words, "question_idle_ms": False, **values}
        editor = Editor(lua_table(table), self.home)
        self.addCleanup(editor.close)
        return editor

    def fake(self, scenario, **values):
        """An editor whose conversations are held by a server with faults."""
        return self.editor(command=[sys.executable, str(FAKE_SERVER), scenario], options=[], **values)

    def provider(self, text, finish_reason):
        """Options for a provider whose answers are `text` and end for this reason."""
        events = [
            {"choices": [{"index": 0, "delta": {"role": "assistant", "content": text}}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": finish_reason}]},
        ]
        body = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *arguments):
                pass

            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                self.wfile.write(body.encode())

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return ["--engine", "openai", "--base-url", f"http://127.0.0.1:{server.server_port}/v1", "--model", "m"]

    def file(self, name, text):
        path = pathlib.Path(self.home, name)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return str(path)


def lua_table(value):
    if isinstance(value, dict):
        return "{" + ",".join(f"[{lua_table(name)}]={lua_table(item)}" for name, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "{" + ",".join(map(lua_table, value)) + "}"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return "nil" if value is None else str(value)


def kill(pid):
    os.kill(pid, signal.SIGKILL)
