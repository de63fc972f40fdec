"""Follows a conversation: rebuilds it from the frames of one process, whatever else is in them.

    follow.py DESCRIPTORS < frames.jsonl

Prints a line for each message: role, status, text. docs/clients.md quotes this file.
"""

import json
import pathlib
import sys

from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory

APPEND = 1  # CHAT_STREAM_PATCH_MODE_APPEND; 0, unspecified, means the same

pool = descriptor_pool.DescriptorPool()


def load(descriptors):
    """Makes the types of a file that `duologue schema descriptors` has printed."""
    for file in descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(descriptors).read_bytes()).file:
        pool.Add(file)


def message_class(name):
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def read_frame(line):
    """The frame on `line`, and the payload of its event or of each of its entities."""
    members = json.loads(line)
    events = [members.get("uiEvent"), members.get("backendEvent")]
    holders = [*events, *members.get("snapshot", {}).get("entities", [])]
    # Taken out first: an Any of an unknown type would make the whole frame unreadable.
    payloads = [read_payload(holder.pop("payload", {})) for holder in holders if holder]
    frame = message_class("pinocchio.chatapp.rpc.v1.RpcLine")()
    return json_format.ParseDict(members, frame, ignore_unknown_fields=True), payloads


def read_payload(members):
    """None if this program does not know the type."""
    name = members.pop("@type", "").rpartition("/")[2]
    try:
        payload = message_class(name)()
    except KeyError:
        return None
    return json_format.ParseDict(members, payload, ignore_unknown_fields=True)


def apply_patch(text, patch):
    """The text of a segment after `patch`. The offset counts bytes of UTF-8, not characters."""
    if patch.mode > APPEND:
        return patch.text
    return (text.encode()[: patch.offset] + patch.text.encode()).decode()


class View:
    """The messages of a conversation, by id, in the order in which they were created."""

    def __init__(self):
        self.ordinal = 0  # of the last event that is in it
        self.messages = {}

    def apply(self, line):
        frame, payloads = read_frame(line)
        kind = frame.WhichOneof("frame")  # None for a frame of a newer version
        if kind == "snapshot":
            self.ordinal = max(self.ordinal, frame.snapshot.snapshot_ordinal)
            for entity, payload in zip(frame.snapshot.entities, payloads):
                self.put(entity, payload)
        elif kind == "ui_event" and frame.ui_event.ordinal >= self.ordinal:
            # Several events may share an ordinal, so equal ones count; applied twice they change nothing.
            self.ordinal = frame.ui_event.ordinal
            if payloads[0] is not None:
                self.update(payloads[0])

    def put(self, entity, payload):
        """An entity takes the place of the one with its id."""
        if entity.tombstone:
            self.messages.pop(entity.id, None)
        elif payload is not None and entity.kind == "ChatMessage":
            self.messages[entity.id] = [payload.role, payload.status, payload.text]

    def update(self, event):
        match event.DESCRIPTOR.name:
            case "ChatUserMessageAccepted" | "ChatTextSegmentFinished" | "ChatReasoningSegmentFinished":
                self.messages[event.message_id] = [event.role, event.status, event.text]
            case "ChatTextSegmentStarted" | "ChatReasoningSegmentStarted":
                self.messages.setdefault(event.message_id, [event.role, event.status, ""])
            case "ChatTextPatch" | "ChatReasoningPatch":
                message = self.messages.setdefault(event.message_id, [event.role, event.status, ""])
                message[2] = apply_patch(message[2], event)


def main():
    load(sys.argv[1])
    view = View()
    for line in sys.stdin.buffer:
        view.apply(line)
    for role, status, text in view.messages.values():
        sys.stdout.buffer.write(f"{role} {status}: {text}\n".encode())


if __name__ == "__main__":
    main()
