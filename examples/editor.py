"""The client of an editor from start to end, in plain JSON: a view with tools and their results, approvals, token counts,
a refused prompt, the changes since an event, and a restart after a crash.

    python3 examples/editor.py [command of duologue, for example: target/debug/duologue rpc --engine echo]

With an engine that calls tools of a server there is more to see.
"""

import json
import os
import subprocess
import sys
import tempfile

OPTIONS = [
    "--on-busy=reject",  # one answer at a time: a second prompt gets session_busy
    "--final-snapshot=none",  # events keep the view up to date
    "--approval=ask",  # no tool of a server runs that nobody has allowed
    "--extensions=approvals,edit,history,store,tool-servers,usage",
]
CHAT = "pinocchio.chatapp.v1."


class Crashed(Exception):
    """The process is gone, and with it the answers to its requests."""


class Editor:
    def __init__(self, command, store, session, allows):
        self.command = [*command, *OPTIONS, "--store", store, "--session", session]
        self.allows = allows  # gets a tool and its arguments as JSON text; None: the person has not decided yet
        self.view = {}  # id -> name, status and text of a message, a tool call or a result
        self.ordinal = 0  # of the last event that is in the view
        self.usage = {}  # token counts of the session
        self.requests = 0
        self.ended = {}  # request -> status of its done, code of its error
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )
        self.errors = {}
        self.questions = {}  # calls that wait for a decision

    def send(self, **request):
        """Writes a request; returns its id, which no other request of the session has."""
        self.requests += 1
        request_id = f"{os.getpid()}-{self.requests}"
        try:
            print(json.dumps({"requestId": request_id, **request}), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            pass  # Reading will say so.
        return request_id

    def wait(self, request_id):
        """Reads up to the done of a request: its status, and the code of its error."""
        while request_id not in self.ended:
            self.read()
        return self.ended.pop(request_id)

    def read(self):
        line = self.process.stdout.readline()
        if not line.endswith("\n"):
            self.process.stdout.close()
            raise Crashed(self.process.wait())
        frame = json.loads(line)
        request_id = frame.get("requestId", "")
        if "uiEvent" in frame:
            self.event(int(frame["uiEvent"]["ordinal"]), frame["uiEvent"]["payload"])
        elif "snapshot" in frame:
            # The first one of a resumed session names no request, and is the whole conversation.
            self.snapshot(frame["snapshot"], is_whole=not request_id)
        elif "error" in frame:
            self.errors[request_id] = frame["error"]["code"]
            if not request_id or frame["error"].get("terminal"):
                print("duologue:", frame["error"]["message"], file=sys.stderr)
        elif "done" in frame:
            self.ended[request_id] = (frame["done"]["status"], self.errors.pop(request_id, None))

    def snapshot(self, snapshot, is_whole):
        if is_whole:
            self.view.clear()
        for entity in snapshot.get("entities", []):
            payload = entity.get("payload", {})
            if entity.get("tombstone"):
                self.view.pop(entity["id"], None)
            elif entity["kind"] == "ChatMessage":
                self.put(entity["id"], payload["role"], payload["status"], payload.get("text", ""))
            elif entity["kind"] == "ChatToolCall":
                self.put(entity["id"], payload["toolName"], payload["status"], payload.get("input", ""))
            elif entity["kind"] == "ChatToolResult":
                self.put(entity["id"], payload["toolName"], payload["status"], payload.get("result", ""))
            elif entity["kind"] == "ToolApproval":
                self.decide(payload)
        self.ordinal = max(self.ordinal, int(snapshot.get("snapshotOrdinal", 0)))

    def event(self, ordinal, event):
        if ordinal < self.ordinal:
            return  # The snapshot has it.
        self.ordinal = ordinal
        match event["@type"].rpartition("/")[2].removeprefix(CHAT):
            case "ChatUserMessageAccepted" | "ChatTextSegmentFinished" | "ChatReasoningSegmentFinished":
                self.put(event["messageId"], event["role"], event["status"], event.get("text", ""))
            case "ChatTextSegmentStarted" | "ChatReasoningSegmentStarted":
                self.view.setdefault(event["messageId"], [event["role"], event["status"], ""])
            case "ChatTextPatch" | "ChatReasoningPatch":
                self.patch(event["messageId"], event["role"], event, event["text"])
            case "ChatToolCallStarted":
                self.view.setdefault(event["toolCallId"], [event["toolName"], event["status"], ""])
            case "ChatToolArgumentsPatch":
                self.patch(event["toolCallId"], event["toolName"], event, event["arguments"])
            case "ChatToolCallRequested" | "ChatToolExecutionStarted":
                self.put(event["toolCallId"], event["toolName"], event["status"], event.get("input", ""))
            case "ChatToolResultReady":
                self.put(event["toolCallId"] + ":result", event["toolName"], event["status"], event.get("result", ""))
            case "ChatToolCallFinished":
                self.view[event["toolCallId"]][1] = event["status"]
            case "ChatRunFailed":
                self.put(event["messageId"], "error", event["status"], event["error"])
            case "duologue.tools.v1.ToolApprovalRequested":
                self.decide(event)
            case "duologue.tools.v1.ToolApprovalResolved":
                self.questions.pop(event["toolCallId"], None)
            case "duologue.session.v1.UsageTotals":
                self.usage = event["session"]
            case "duologue.session.v1.TurnDropped":
                for entity in event.get("messageIds", []) + event.get("toolCallIds", []):
                    self.view.pop(entity, None)
                    self.view.pop(entity + ":result", None)

    def put(self, entity, name, status, text):
        self.view[entity] = [name, status, text]

    def patch(self, entity, name, event, piece):
        shown = self.view.setdefault(entity, [name, event["status"], ""])
        if event.get("mode", "").endswith(("_SNAPSHOT", "_REPLACE")):
            shown[2] = piece
        else:  # The offset counts bytes of UTF-8; a piece may come again.
            shown[2] = (shown[2].encode()[: int(event.get("offset", 0))] + piece.encode()).decode()

    def decide(self, call):
        self.questions[call["toolCallId"]] = call
        is_allowed = self.allows(call["toolName"], call.get("input", ""))
        if is_allowed is not None:
            decision = "ALLOW_ONCE" if is_allowed else "DENY"
            self.send(approve={"toolCallId": call["toolCallId"], "decision": decision})

    def ask(self, prompt):
        return self.wait(self.send(submit={"prompt": prompt}))

    def catch_up(self):
        """Takes in what has changed since the last event that was seen."""
        return self.wait(self.send(snapshot={"sinceOrdinal": str(self.ordinal)}))

    def close(self):
        status, _ = self.wait(self.send(shutdown={}))
        return status, self.process.wait()


def main(kind, command):
    def allows(tool, arguments):
        print(f"allowed: {tool} {arguments}")
        return True

    with tempfile.TemporaryDirectory() as folder:
        editor = kind(command or ["duologue", "rpc"], os.path.join(folder, "chat.db"), "editor", allows)
        print("asked:", editor.ask("What time is it in Berlin and in Oz?"))

        # The process is killed while a call waits for a decision.
        editor.allows = lambda tool, arguments: None
        waiting = editor.send(submit={"prompt": "And now?"})
        while not editor.questions and waiting not in editor.ended:
            editor.read()
        print("asked:", editor.ask("Are you there?"))
        editor.process.kill()
        try:
            editor.wait(waiting)
        except Crashed as crash:
            print("crashed:", crash)
            editor.start()

        print("caught up:", editor.catch_up())
        for entity, (name, status, text) in editor.view.items():
            print(f"{name} ({status}): {text}" if "call_" not in entity else f"    {entity} ({status}): {text}")
        print("calls of the model:", editor.usage.get("providerCalls", 0) + editor.usage.get("uncountedCalls", 0))
        print("closed:", editor.close())


if __name__ == "__main__":
    main(Editor, sys.argv[1:])
