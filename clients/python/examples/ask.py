"""Asks two questions, and prints the second answer as it streams."""

import asyncio

from duologue import Duologue, TextPatch


async def main() -> None:
    async with Duologue() as chat:
        print((await chat.run("What is a duologue?")).text)
        async for event in chat.stream("Explain it to a child."):
            match event:
                case TextPatch(text=text):
                    print(text, end="", flush=True)
        print()


asyncio.run(main())
