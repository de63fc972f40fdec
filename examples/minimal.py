import json, subprocess

duologue = subprocess.Popen(["duologue", "rpc"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")

def ask(prompt, request_id):
    request = {"requestId": request_id, "submit": {"prompt": prompt}}
    print(json.dumps(request), file=duologue.stdin, flush=True)
    for line in duologue.stdout:
        frame = json.loads(line)
        if frame.get("requestId") != request_id:
            continue
        if frame.get("uiEvent", {}).get("name") == "ChatTextPatch":
            print(frame["uiEvent"]["payload"]["text"], end="", flush=True)
        if "error" in frame:
            message, detail = frame["error"]["message"], frame["error"].get("detail", "")
            print("error:", message if detail in message else f"{message} ({detail})")
        if "done" in frame:
            return frame["done"]["status"]

ask("What is a duologue?", "r1")
