"""Offers the model a tool that runs in this program: declares it, answers its calls, and prints the answer.

    python3 examples/tool_client.py [command of duologue, for example: target/debug/duologue rpc]
"""

import json
import subprocess
import sys

TIMES = {"Berlin": "12:00", "Lima": "05:00"}


def get_time(city):
    return {"time": TIMES[city]}


TOOL = {
    "name": "get_time",
    "description": "The local time in a city.",
    "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


def answer(call):
    """The result of a call; what goes wrong is a result too, and the model reads it."""
    try:
        return {"toolCallId": call["toolCallId"], "result": get_time(**call["input"])}
    except Exception as error:
        return {"toolCallId": call["toolCallId"], "status": "error", "error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    command = sys.argv[1:] or ["duologue", "rpc"]
    duologue = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")

    def send(request):
        print(json.dumps(request), file=duologue.stdin, flush=True)

    send({"requestId": "tools", "declareTools": {"tools": [TOOL]}})
    send({"requestId": "ask", "submit": {"prompt": "What time is it in Berlin and in Oz?"}})
    calls = 0
    for line in duologue.stdout:
        frame = json.loads(line)
        event = frame.get("uiEvent", {})
        if event.get("name") == "ChatTextPatch":
            print(event["payload"]["text"], end="", flush=True)
        if event.get("name") == "FrontendToolCallRequested":
            calls += 1
            result = answer(event["payload"])
            print(f"\n[{event['payload']['toolName']} {event['payload']['input']} -> {result.get('result') or result['error']}]")
            send({"requestId": f"result-{calls}", "toolResult": result})
        if "error" in frame:
            print("error:", frame["error"]["message"], file=sys.stderr)
        if "done" in frame and frame.get("requestId") == "ask":
            print()
            duologue.stdin.close()
    sys.exit(duologue.wait())
