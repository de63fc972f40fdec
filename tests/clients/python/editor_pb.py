"""The client of examples/editor.py with protobuf: what it writes and reads are messages, of classes that are made from the
descriptors.

    editor_pb.py DESCRIPTORS [command of duologue, for example: target/debug/duologue rpc --engine echo]

docs/clients.md quotes this file.
"""

import os
import pathlib
import sys

from follow import APPEND, load, message_class, read_frame
from google.protobuf import json_format

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "examples"))
import editor


class Editor(editor.Editor):
    def send(self, **request):
        self.requests += 1
        request_id = f"{os.getpid()}-{self.requests}"
        line = message_class("pinocchio.chatapp.rpc.v1.RpcRequestLine")()
        # The names and values of JSON; what the message does not have is an error here.
        json_format.ParseDict({"requestId": request_id, **request}, line)
        try:
            print(json_format.MessageToJson(line, indent=None), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            pass  # Reading will say so.
        return request_id

    def read(self):
        line = self.process.stdout.readline()
        if not line.endswith("\n"):
            self.process.stdout.close()
            raise editor.Crashed(self.process.wait())
        frame, payloads = read_frame(line)
        match frame.WhichOneof("frame"):  # None for a frame of a newer version
            case "ui_event" if payloads[0] is not None:
                self.event(frame.ui_event.ordinal, payloads[0])
            case "snapshot":
                self.snapshot(frame.snapshot, payloads, is_whole=not frame.request_id)
            case "error":
                self.errors[frame.request_id] = frame.error.code
                if not frame.request_id or frame.error.terminal:
                    print("duologue:", frame.error.message, file=sys.stderr)
            case "done":
                self.ended[frame.request_id] = (frame.done.status, self.errors.pop(frame.request_id, None))

    def snapshot(self, snapshot, payloads, is_whole):
        if is_whole:
            self.view.clear()
        for entity, payload in zip(snapshot.entities, payloads):
            if entity.tombstone:
                self.view.pop(entity.id, None)
                continue
            match payload and payload.DESCRIPTOR.name:
                case "ChatMessageEntity":
                    self.put(entity.id, payload.role, payload.status, payload.text)
                case "ToolCallEntity":
                    self.put(entity.id, payload.tool_name, payload.status, payload.input)
                case "ToolResultEntity":
                    self.put(entity.id, payload.tool_name, payload.status, payload.result)
                case "ToolApprovalRequested":
                    self.decide(payload)
        self.ordinal = max(self.ordinal, snapshot.snapshot_ordinal)

    def event(self, ordinal, event):
        if ordinal < self.ordinal:
            return  # The snapshot has it.
        self.ordinal = ordinal
        match event.DESCRIPTOR.full_name.removeprefix(editor.CHAT):
            case "ChatUserMessageAccepted" | "ChatTextSegmentFinished" | "ChatReasoningSegmentFinished":
                self.put(event.message_id, event.role, event.status, event.text)
            case "ChatTextSegmentStarted" | "ChatReasoningSegmentStarted":
                self.view.setdefault(event.message_id, [event.role, event.status, ""])
            case "ChatTextPatch" | "ChatReasoningPatch":
                self.patch(event.message_id, event.role, event, event.text)
            case "ChatToolCallStarted":
                self.view.setdefault(event.tool_call_id, [event.tool_name, event.status, ""])
            case "ChatToolArgumentsPatch":
                self.patch(event.tool_call_id, event.tool_name, event, event.arguments)
            case "ChatToolCallRequested" | "ChatToolExecutionStarted":
                self.put(event.tool_call_id, event.tool_name, event.status, event.input)
            case "ChatToolResultReady":
                self.put(event.tool_call_id + ":result", event.tool_name, event.status, event.result)
            case "ChatToolCallFinished":
                self.view[event.tool_call_id][1] = event.status
            case "ChatRunFailed":
                self.put(event.message_id, "error", event.status, event.error)
            case "duologue.tools.v1.ToolApprovalRequested":
                self.decide(event)
            case "duologue.tools.v1.ToolApprovalResolved":
                self.questions.pop(event.tool_call_id, None)
            case "duologue.session.v1.UsageTotals":
                self.usage = json_format.MessageToDict(event.session)
            case "duologue.session.v1.TurnDropped":
                for entity in [*event.message_ids, *event.tool_call_ids]:
                    self.view.pop(entity, None)
                    self.view.pop(entity + ":result", None)

    def patch(self, entity, name, event, piece):
        shown = self.view.setdefault(entity, [name, event.status, ""])
        kept = shown[2].encode()[: event.offset] if event.mode <= APPEND else b""
        shown[2] = (kept + piece.encode()).decode()

    def decide(self, call):
        self.questions[call.tool_call_id] = call
        is_allowed = self.allows(call.tool_name, call.input)
        if is_allowed is not None:
            decision = "ALLOW_ONCE" if is_allowed else "DENY"
            self.send(approve={"toolCallId": call.tool_call_id, "decision": decision})


if __name__ == "__main__":
    load(sys.argv[1])
    editor.main(Editor, sys.argv[2:])
