"""A server with faults, for tests of the editors: `fake_server.py SCENARIO`, and any options after that.

It answers a submit with the text of its scenario, in frames as `duologue rpc` writes them. What the scenarios do is
said where they are.
"""

import json
import os
import pathlib
import signal
import sys

CHAT = "type.googleapis.com/pinocchio.chatapp.v1."
ODD = "ä€😀 e\u0301 שלום \u2028 \u0085 \u0000 tab\there\r\nnew \x1b[31mline\u202e"


class Server:
    def __init__(self, scenario):
        self.scenario = scenario
        self.ordinal = 0
        self.out = sys.stdout.buffer

    def write(self, data):
        self.out.write(data)
        self.out.flush()

    def frame(self, request_id="", **members):
        frame = {"version": 1, "sessionId": "fake", **members}
        if request_id:
            frame["requestId"] = request_id
        # The characters themselves, where `duologue` escapes some: a reader splits at line feeds alone.
        line = json.dumps(frame, ensure_ascii=False).encode() + b"\n"
        if self.scenario == "halves":  # Chunks end anywhere, within characters too.
            for at in range(0, len(line), 7):
                self.write(line[at : at + 7])
        else:
            self.write(line)

    def event(self, request_id, name, package=CHAT, **payload):
        self.ordinal += 1
        payload = {"@type": package + name, **payload}
        self.frame(request_id, uiEvent={"ordinal": str(self.ordinal), "name": name, "payload": payload})

    def hello(self):
        capabilities = ["engine=fake", "model=%{v:lua.os.exit()}%#Error#" if self.scenario == "names" else "model=fake"]
        self.frame(hello={"protocol": "pinocchio.chatapp.rpc.v1", "server": "fake", "capabilities": capabilities})
        self.frame(snapshot=self.long() if self.scenario == "long" else {})

    def long(self):
        """A conversation of 2,500 turns."""
        messages = [(role, f"{what} {turn}") for turn in range(1, 2501) for role, what in (("user", "prompt"), ("assistant", "answer"))]
        entities = []
        for at, (role, text) in enumerate(messages, 1):
            payload = {"@type": CHAT + "ChatMessageEntity", "messageId": f"m{at}", "role": role, "text": text, "status": "finished"}
            entities.append({"kind": "ChatMessage", "id": f"m{at}", "lastEventOrdinal": str(at), "payload": payload})
        return {"snapshotOrdinal": str(len(messages)), "entities": entities}

    def begin(self, request_id, prompt):
        self.event(request_id, "ChatUserMessageAccepted", messageId=f"{request_id}-user", role="user", text=prompt, status="accepted")
        self.event(request_id, "ChatTextSegmentStarted", messageId=f"{request_id}:text", role="assistant", status="streaming")

    def patch(self, request_id, text, offset):
        self.event(request_id, "ChatTextPatch", messageId=f"{request_id}:text", text=text, offset=str(offset), mode="CHAT_STREAM_PATCH_MODE_APPEND")

    def end(self, request_id, text):
        self.event(request_id, "ChatTextSegmentFinished", messageId=f"{request_id}:text", role="assistant", text=text, status="finished")
        self.frame(request_id, done={"status": "ok"})

    def answer(self, request_id, prompt):
        text = {"halves": ODD, "names": "fine"}.get(self.scenario, "fine")
        self.begin(request_id, prompt)
        if self.scenario == "flood":  # More than anybody handles at once.
            text = ("All work and no play makes Jack a dull boy. " * 20 + "\n") * 12
            piece, text = text, text * 400
            for at in range(400):
                self.patch(request_id, piece, at * len(piece))
        elif self.scenario == "long-line":  # A line of 3 MB of text, in one frame and without a break.
            text = "x" * 3_000_000
            self.patch(request_id, text, 0)
        elif self.scenario == "overlong":  # A line that is dropped; a snapshot has what it had.
            self.write(b'{"uiEvent":"' + b"x" * (65 * 1024 * 1024) + b'"}\n')
        elif self.scenario == "garbage":  # What is no frame, and what is of a later version.
            self.write(b"Segmentation fault\n\n\xff\xfe\n[1,2]\n")
            self.frame(request_id, somethingNew={"a": None})
            self.event(request_id, "SomethingNew", package="type.googleapis.com/example.v9.", text=None)
        elif self.scenario == "usage":
            totals = {"inputTokens": "51234", "outputTokens": "300", "providerCalls": 1, "cost": "0.0123", "currency": "USD"}
            self.event(request_id, "UsageTotals", package="type.googleapis.com/duologue.session.v1.", session=totals)
        elif self.scenario == "withheld":
            self.event(request_id, "AnswerTruncated", package="type.googleapis.com/duologue.provider.v1.",
                       messageId=request_id, stopReason="refusal", finishClass="content_filter")
        elif self.scenario == "dies":  # In the middle of a line.
            self.patch(request_id, "half of ", 0)
            self.write(b'{"version":1,"uiEv')
            os.kill(os.getpid(), signal.SIGKILL)
        self.end(request_id, text)

    def run(self):
        if self.scenario == "refuses":  # A wrong command line.
            print("error: unexpected argument '--nonsense' found", file=sys.stderr)
            sys.exit(2)
        if self.scenario == "counted":
            # One line for each process that was started.
            with pathlib.Path(os.environ["HOME"], "starts").open("a") as starts:
                print("start", file=starts)
        self.hello()
        if self.scenario == "stubborn":  # Neither the end of its input nor SIGTERM ends it.
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            self.frame(uiEvent={"ordinal": "1", "name": "ChatUserMessageAccepted", "payload": {
                "@type": CHAT + "ChatUserMessageAccepted", "messageId": "ready-user", "role": "user", "text": "ready", "status": "accepted"}})
            while True:
                signal.pause()
        if self.scenario == "recorded":
            signal.signal(signal.SIGTERM, lambda *_: self.record("SIGTERM"))
        for line in sys.stdin.buffer:
            self.request(json.loads(line))
        self.record("end of input")

    def record(self, what):
        """What has come, one a line, for the scenario `recorded`."""
        if self.scenario == "recorded":
            with pathlib.Path(os.environ["HOME"], "recorded").open("a") as recorded:
                print(what, file=recorded)

    def request(self, request):
        request_id = request.get("requestId", "")
        self.record(json.dumps({name: value for name, value in request.items() if name != "requestId"}))
        if self.scenario == "recorded":
            # To the end of input.
            return
        if self.scenario == "counted" and "submit" in request:
            os.kill(os.getpid(), signal.SIGKILL)
        if "submit" in request:
            self.answer(request_id, request["submit"]["prompt"])
        elif "snapshot" in request:
            entity = {"kind": "ChatMessage", "id": "from-the-snapshot", "lastEventOrdinal": str(self.ordinal)}
            payload = {"@type": CHAT + "ChatMessageEntity", "messageId": "from-the-snapshot", "role": "assistant", "text": "asked again", "status": "finished"}
            self.frame(request_id, snapshot={"snapshotOrdinal": str(self.ordinal), "entities": [{**entity, "payload": payload}]})
            self.frame(request_id, done={"status": "ok"})
        else:
            self.frame(request_id, done={"status": "shutdown" if "shutdown" in request else "ok"})
            if "shutdown" in request:
                sys.exit(0)


Server(sys.argv[1]).run()
