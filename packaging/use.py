"""Uses a program that was installed somewhere, as its user would."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from targets import NAME, VERSION
from tree import is_static

PROMPT = "What is a duologue?"
ANSWER = f"Turn 1. You said: {PROMPT}"


def expect(is_true: bool, fault: str) -> None:
    if not is_true:
        raise SystemExit(f"fault: {fault}")


def use(emulator: list[str], program: Path, root: Path | None = None) -> None:
    """Has a program say its version and answer a prompt; with nothing but `root` to be seen, as far as that works."""
    command = [*emulator, str(program)]
    if root and not emulator and os.geteuid() == 0 and is_static(program):
        command = ["chroot", str(root), f"/{program.relative_to(root)}"]
    expect(_output(*command, "--version") == f"{NAME} {VERSION}", f"{program} has another version")
    expect(_output(*command, "exec", PROMPT) == ANSWER, f"{program} does not answer")


def _output(*command: str) -> str:
    # PATH is that of `chroot` alone, so that no other program can answer.
    environment = {"PATH": "/usr/sbin:/usr/bin:/bin"}
    ended = subprocess.run(
        command, check=False, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    expect(ended.returncode == 0, f"{command}: {ended.stderr}")
    return ended.stdout.strip()
