"""The process: finding it, its pipes, its end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import weakref
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ._errors import DuologueError, NotInstalled

READ_BYTES = 256 * 1024
STDERR_BYTES = 16 * 1024
POLL_S = 0.005
TERM_S = 2.0
# Variables of the program that are meant for scripts: a client needs all events, and programs print the patches of a
# stream one after the other.
_OF_SCRIPTS = frozenset(("DUOLOGUE_EVENTS", "DUOLOGUE_PATCH_MODE"))


def find_binary(named: str | os.PathLike[str] | None) -> str:
    """The program: the argument, `DUOLOGUE_BIN`, the package's own, or the one on the `PATH`."""
    if named is not None:
        return _named(os.fspath(named), "the argument `binary`")
    if variable := os.environ.get("DUOLOGUE_BIN"):
        return _named(variable, "the variable DUOLOGUE_BIN")
    if own := own_binary():
        return own
    if found := shutil.which("duologue"):
        return os.path.abspath(found)
    raise NotInstalled(
        "duologue is not installed: it is not in this package and not on the PATH. "
        "Install it, or name the program with the argument `binary` or the variable DUOLOGUE_BIN."
    )


def own_binary() -> str | None:
    """The program inside this package, if there is one for this platform."""
    own = Path(__file__).parent / "bin" / "duologue"
    return str(own) if own.is_file() else None


def not_run(program: str, cwd: str | os.PathLike[str] | None, error: OSError) -> DuologueError:
    """The error of a program that could not be started: the system does not say whether it is missing or its folder."""
    if cwd is not None and not os.path.isdir(cwd):
        return DuologueError(f"{program} can't be run in {os.fspath(cwd)}, which is no folder that can be used.")
    return NotInstalled(f"{program} can't be run: {error}")


def _inherited() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _OF_SCRIPTS}


def _named(name: str, source: str) -> str:
    if found := shutil.which(name):
        # The process may get another folder than that of this program.
        return os.path.abspath(found)
    raise NotInstalled(f"{name}, which {source} names, is not a program that can be run.")


class Process:
    """A process and its three pipes. `on_bytes` gets what it writes; `on_end` is called once, when that is over.

    `on_stderr` is called where there is more on standard error.
    """

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str],
        cwd: str | os.PathLike[str] | None,
        on_bytes: Callable[[bytes], None],
        on_end: Callable[[], None],
        on_stderr: Callable[[], None] = lambda: None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_bytes = on_bytes
        self._on_end = on_end
        self._on_stderr = on_stderr
        self._unwritten = bytearray()
        self._drained = asyncio.Event()
        self._drained.set()
        self._stderr = bytearray()
        self._is_paused = False
        self._is_over = False
        try:
            self._popen = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**_inherited(), **env},
                cwd=cwd,
                bufsize=0,
                # Ctrl-C at the terminal is for the program, which decides what stops.
                start_new_session=True,
            )
        except OSError as error:
            raise not_run(command[0], cwd, error) from error
        assert self._popen.stdin and self._popen.stdout and self._popen.stderr
        self._stdin = self._popen.stdin
        self._in = self._stdin.fileno()
        self._out = self._popen.stdout.fileno()
        self._err = self._popen.stderr.fileno()
        for fd in (self._in, self._out, self._err):
            os.set_blocking(fd, False)
        # Ends the process with the last reference to this object, and with the interpreter.
        self._end = weakref.finalize(self, _end, self._popen)
        self._loop.add_reader(self._out, self._read)
        self._loop.add_reader(self._err, self._read_stderr)

    def write(self, line: bytes) -> None:
        """Queues a line. What a process that ends does not read is dropped: the end is reported elsewhere."""
        # Without its input, the number of the pipe may be that of another file of the program.
        if self._stdin.closed:
            return
        self._unwritten += line
        if self._drained.is_set():
            self._write()

    async def drained(self) -> None:
        """Waits until the process has taken what was written."""
        await self._drained.wait()

    def pause(self, is_paused: bool) -> None:
        """Leaves output in the pipe, so that the server waits; or goes on reading."""
        if is_paused == self._is_paused or self._is_over or self._loop.is_closed():
            return
        self._is_paused = is_paused
        if is_paused:
            self._loop.remove_reader(self._out)
        else:
            self._loop.add_reader(self._out, self._read)

    @property
    def stderr(self) -> str:
        """The end of what the process wrote to standard error."""
        return self._stderr.decode(errors="replace")

    @property
    def status(self) -> int | None:
        """Exit status; None while the process runs."""
        return self._popen.poll()

    async def wait(self, seconds: float) -> bool:
        """Waits so long for the end of the process; False if it still runs."""
        deadline = self._loop.time() + seconds
        while self._popen.poll() is None:
            if self._loop.time() >= deadline:
                return False
            await asyncio.sleep(POLL_S)
        return True

    async def end(self, seconds: float) -> None:
        """Closes standard input, waits, and then makes the process end: SIGTERM, SIGKILL. Several may wait for that."""
        self._close_stdin()
        if not await self.wait(seconds):
            self._popen.terminate()
            if not await self.wait(TERM_S):
                self._popen.kill()
                await self.wait(TERM_S)
        self._finish()

    def kill(self) -> None:
        """Ends the process at once; it is not there any more afterwards."""
        self._close_stdin()
        if self._popen.poll() is None:
            self._popen.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._popen.wait(TERM_S)
        self._finish()

    def let_go(self) -> None:
        """Closes what a fork of the program has of it. The loop stays as it is: it shares what it waits for with the program."""
        self._end.detach()
        self._is_over = True
        for pipe in (self._popen.stdin, self._popen.stdout, self._popen.stderr):
            if pipe:
                with contextlib.suppress(OSError):
                    pipe.close()
        # It is no child of this one, which has nothing to wait for.
        self._popen.returncode = 0

    def _read(self) -> None:
        try:
            chunk = os.read(self._out, READ_BYTES)
        except BlockingIOError:
            return
        if chunk:
            self._on_bytes(chunk)
        else:
            self._loop.remove_reader(self._out)
            self._is_paused = True
            self._on_end()

    def _read_rest(self) -> None:
        """Reads what the process has left in the pipe: its end may be noticed before that."""
        with contextlib.suppress(BlockingIOError):
            if chunk := os.read(self._out, READ_BYTES):
                self._on_bytes(chunk)

    def _read_stderr(self) -> None:
        with contextlib.suppress(OSError):
            chunk = os.read(self._err, READ_BYTES)
            if not chunk:
                self._loop.remove_reader(self._err)
            self._stderr = (self._stderr + chunk)[-STDERR_BYTES:]
            self._on_stderr()

    def _write(self) -> None:
        try:
            written = os.write(self._in, self._unwritten)
        except BlockingIOError:
            written = 0
        except OSError:
            # Nobody reads any more; the end of standard output will say so.
            written = len(self._unwritten)
        del self._unwritten[:written]
        if self._unwritten and self._drained.is_set():
            self._drained.clear()
            self._loop.add_writer(self._in, self._write)
        elif not self._unwritten and not self._drained.is_set():
            self._drained.set()
            self._loop.remove_writer(self._in)

    def _close_stdin(self) -> None:
        if not self._stdin.closed:
            # The client may be closed in another loop than that which it was started in.
            if not self._loop.is_closed():
                self._loop.remove_writer(self._in)
            self._unwritten.clear()
            self._drained.set()
            self._stdin.close()

    def _finish(self) -> None:
        if not self._is_over:
            self._is_over = True
            self._read_rest()
            self._read_stderr()
            if not self._loop.is_closed():
                self._loop.remove_reader(self._out)
                self._loop.remove_reader(self._err)
            self._end()


def _end(popen: subprocess.Popen[bytes]) -> None:
    """Ends the process at once. Closed pipes are enough for a server that works."""
    for pipe in (popen.stdin, popen.stdout, popen.stderr):
        if pipe:
            with contextlib.suppress(OSError):
                pipe.close()
    if popen.poll() is None:
        popen.terminate()
        try:
            popen.wait(TERM_S)
        except subprocess.TimeoutExpired:
            popen.kill()
            popen.wait()
