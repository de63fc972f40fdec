"""An MCP server with one tool, as small as one can be: duologue starts it with --mcp "python3 examples/clock.py"."""

import json
import sys

TIMES = {"Berlin": "12:00", "Lima": "05:00"}
TOOL = {
    "name": "get_time",
    "description": "The local time in a city.",
    "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def result(method, params):
    if method == "initialize":
        version = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}}
        return {**version, "serverInfo": {"name": "clock", "version": "1"}}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        time = TIMES.get(params["arguments"].get("city"))
        text = {"type": "text", "text": time or "There is no such city."}
        return {"content": [text], "isError": time is None}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:  # Others are notifications, which get no answer.
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result(message.get("method"), message.get("params", {}))}
        print(json.dumps(answer), flush=True)
