"""What a client was told when it was made."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ._errors import DuologueError
from ._message import Message
from ._process import find_binary
from ._tools import Approve, Tool


STORE_VARIABLE = "DUOLOGUE_STORE"


@dataclass
class Settings:
    """What a client was told."""

    binary: str | os.PathLike[str] | None
    args: Sequence[str]
    named_store: str | os.PathLike[str] | None
    env: Mapping[str, str]
    cwd: str | os.PathLike[str] | None
    tools: dict[str, Tool]
    approve: Approve | None
    approve_timeout: float
    on_notice: Callable[[Message | DuologueError], None] | None
    is_queueing: bool
    start_timeout: float
    close_timeout: float
    cancel_timeout: float
    line_bytes_max: int
    # The path of the program, once it has been found.
    program: str = ""

    def settle(self) -> None:
        """Finds the program and the folder of the process, so that one that is started later has the same.

        This program may have another folder by then, and a relative path to the program or the store is one from the first.
        """
        self.program = self.program or find_binary(self.binary)
        with contextlib.suppress(FileNotFoundError):  # The folder of this program may be gone.
            self.cwd = os.getcwd() if self.cwd is None else os.path.join(os.getcwd(), self.cwd)

    @property
    def store(self) -> str | None:
        """Where the conversation is stored: what was told, or the variable that the process has."""
        if self.named_store is not None:
            return os.fspath(self.named_store)
        return self.env.get(STORE_VARIABLE, os.environ.get(STORE_VARIABLE)) or None
