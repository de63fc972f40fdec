"""Holds a stored conversation, which goes on where it ended, also after a crash."""

import asyncio
import sys

from duologue import Duologue, MessageEntity, ProcessEnded


async def main(store: str) -> None:
    async with Duologue(store=store, session="ada") as chat:
        try:
            print((await chat.run("My name is Ada.")).text)
        except ProcessEnded as ended:
            print(f"it ended with status {ended.status}: {ended.stderr}", file=sys.stderr)
            for change in await chat.reconnect():
                print(change.text)  # what was not shown before
        for entity in await chat.history():
            if isinstance(entity.payload, MessageEntity):
                print(f"{entity.payload.role}: {entity.payload.text}")


if len(sys.argv) != 2:
    sys.exit("usage: session.py STORE, where STORE is a file such as chat.db, which is made if it is not there")
asyncio.run(main(sys.argv[1]))
