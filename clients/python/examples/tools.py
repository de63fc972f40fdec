"""Offers the model a tool, and decides about the tools of servers."""

import asyncio

from duologue import Duologue, ToolApprovalRequested, tool

TIMES = {"Berlin": "12:00", "Lima": "05:00"}


@tool(timeout=5)
async def get_time(city: str) -> str:
    """The local time in a city."""
    return TIMES[city]


async def approve(request: ToolApprovalRequested) -> bool:
    return request.tool_name.startswith("list_")


async def main() -> None:
    async with Duologue(tools=[get_time], approve=approve) as chat:
        result = await chat.run("What time is it in Berlin and in Oz?")
        for call in result.tool_calls:
            print(call.name, call.input, "->", call.result)
        print(result.text)


asyncio.run(main())
