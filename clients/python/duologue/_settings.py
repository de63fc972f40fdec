"""What a client was told when it was made."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ._errors import DuologueError
from ._message import Message
from ._tools import Approve, Tool


@dataclass
class Settings:
    """What a client was told."""

    binary: str | os.PathLike[str] | None
    args: Sequence[str]
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
