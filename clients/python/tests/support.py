"""What the tests share: the program, the difficult server, and its options."""

import contextlib
import http.server
import json
import os
import tempfile
import threading
import time
from pathlib import Path

from duologue import Duologue

ROOT = Path(__file__).parents[3]
BINARY = os.environ.get("DUOLOGUE_BIN") or str(ROOT / "target/debug/duologue")
WITHOUT_PROVIDER = str(ROOT / "clients/without_provider")
DIFFICULT = str(ROOT / "clients/difficult_server.py")
CLOCK = f"python3 {ROOT}/examples/clock.py"
WAIT_S = 30.0


def real(*args, **options):
    """A client of the real program with its built-in engine."""
    return Duologue(binary=BINARY, engine="echo", args=args, **options)


def unreachable(**options):
    """A client of the real program whose provider can't be reached."""
    args = ["--base-url=http://127.0.0.1:9", "--retries=0"]
    return Duologue(binary=BINARY, engine="openai", model="m", args=args, **options)


def difficult(scenario, **options):
    """A client of the difficult server."""
    return Duologue(binary=DIFFICULT, env={"DIFFICULT": scenario}, **options)


@contextlib.contextmanager
def script(*calls):
    """Options that have the built-in engine play these calls of a model."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.writelines(json.dumps(call) + "\n" for call in calls)
        file.flush()
        yield f"--echo-script={file.name}"


@contextlib.contextmanager
def provider(status, headers):
    """The address of a provider that refuses every request."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def is_running(pid):
    """Whether the process runs; one that has ended and waits for its parent does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def wait_until_gone(pid):
    deadline = time.monotonic() + WAIT_S
    while is_running(pid):
        if time.monotonic() > deadline:
            raise AssertionError(f"the process {pid} still runs")
        time.sleep(0.01)


def pid_of(chat):
    return chat._connection.process._popen.pid
