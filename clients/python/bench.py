"""Measures how long 1,000 deltas take, against reading and parsing the same lines alone.

    python3 clients/python/bench.py
"""

import asyncio
import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import duologue.sync  # noqa: E402
from duologue import Duologue, TextPatch  # noqa: E402

SERVER = str(Path(__file__).parents[1] / "difficult_server.py")
BURST = {"DIFFICULT": "burst:1000"}
RUNS = 30


def alone():
    """Reading and parsing, and nothing else."""
    server = subprocess.Popen(
        [SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **BURST}, bufsize=0
    )
    lines = io.BufferedReader(server.stdout, 256 * 1024)
    lines.readline()
    for run in range(RUNS):
        server.stdin.write(json.dumps({"requestId": f"r{run}", "submit": {"prompt": "x"}}).encode() + b"\n")
        line = lines.readline()
        begin = time.perf_counter()
        while "done" not in json.loads(line):
            line = lines.readline()
        yield time.perf_counter() - begin
    server.stdin.close()
    server.wait()


async def asynchronous():
    times = []
    async with Duologue(binary=SERVER, env=BURST) as chat:
        for _ in range(RUNS):
            begin = length = 0
            async for event in chat.stream("x"):
                begin = begin or time.perf_counter()
                match event:
                    case TextPatch(text=text):
                        length += len(text)
            times.append(time.perf_counter() - begin)
    return times


def synchronous():
    with duologue.sync.Duologue(binary=SERVER, env=BURST) as chat:
        for _ in range(RUNS):
            begin = length = 0
            for event in chat.stream("x"):
                begin = begin or time.perf_counter()
                match event:
                    case TextPatch(text=text):
                        length += len(text)
            yield time.perf_counter() - begin


if __name__ == "__main__":
    # The least of all runs: what else the machine does only adds to a time.
    least = min(alone())
    print(f"reading and parsing alone: {least * 1000:.1f} ms")
    for name, times in {"asyncio": asyncio.run(asynchronous()), "sync": list(synchronous())}.items():
        print(f"{name}: {min(times) * 1000:.1f} ms, {min(times) / least:.2f} times as long")
