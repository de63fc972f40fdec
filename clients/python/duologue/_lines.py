"""Splits the bytes of a pipe into lines of limited length."""

from __future__ import annotations

import re

HEAD_BYTES = 4096
_REQUEST_ID = re.compile(rb'"requestId"\s*:\s*"([^"\\]*)"')


class Overlong:
    """A line that was longer than the limit, and is gone; `request_id` is that of its frame, if it could be read."""

    def __init__(self, head: bytes) -> None:
        found = _REQUEST_ID.search(head)
        self.request_id = found[1].decode(errors="replace") if found else None


class Lines:
    """Bytes go in, whole lines without their LF come out. Only LF ends a line. At most `limit` bytes wait."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes | Overlong]:
        pieces = chunk.split(b"\n")
        if len(pieces) == 1:
            self._keep(chunk)
            return []
        self._keep(pieces[0])
        lines: list[bytes | Overlong] = [self._take()]
        limit = self._limit
        lines += [piece if len(piece) <= limit else Overlong(piece[:HEAD_BYTES]) for piece in pieces[1:-1]]
        self._keep(pieces[-1])
        return lines

    @property
    def rest(self) -> int:
        """Bytes of a line that has not ended."""
        return self._size

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size <= self._limit:
            self._parts.append(piece)
        elif self._parts or len(piece) == self._size:
            # Too long: only its head is of use, for the request that it belongs to.
            head = b"".join([*self._parts[:2], piece])[:HEAD_BYTES]
            self._parts = [head]

    def _take(self) -> bytes | Overlong:
        line = b"".join(self._parts)
        is_overlong = self._size > self._limit
        self._parts, self._size = [], 0
        return Overlong(line) if is_overlong else line
