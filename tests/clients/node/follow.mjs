// Follows a conversation: rebuilds it from the frames of one process, whatever else is in them.
//
//     follow.mjs DESCRIPTORS < frames.jsonl
//
// Prints a line for each message: role, status, text. docs/clients.md quotes this file.

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { createFileRegistry, fromBinary, fromJson } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";

const APPEND = 1; // CHAT_STREAM_PATCH_MODE_APPEND; 0, unspecified, means the same

const descriptors = fromBinary(FileDescriptorSetSchema, readFileSync(process.argv[2]));
const registry = createFileRegistry(descriptors);
const RpcLineSchema = registry.getMessage("pinocchio.chatapp.rpc.v1.RpcLine");

// The frame on `line`, and the payload of its event or of each of its entities.
function readFrame(line) {
  const members = JSON.parse(line);
  const holders = [members.uiEvent, members.backendEvent, ...(members.snapshot?.entities ?? [])];
  const payloads = holders.filter((holder) => holder).map(takePayload);
  const frame = fromJson(RpcLineSchema, members, { ignoreUnknownFields: true });
  return { frame: frame.frame, payloads };
}

// Taken out first: an Any of an unknown type would make the whole frame unreadable. Undefined if
// this program does not know the type.
function takePayload(holder) {
  const { "@type": url = "", ...members } = holder.payload ?? {};
  delete holder.payload;
  const schema = registry.getMessage(url.slice(url.lastIndexOf("/") + 1));
  return schema && fromJson(schema, members, { ignoreUnknownFields: true, registry });
}

// The text of a segment after `patch`. The offset counts bytes of UTF-8; the length of a string
// counts UTF-16 units.
function applyPatch(text, patch) {
  if (patch.mode > APPEND) return patch.text;
  const kept = Buffer.from(text).subarray(0, Number(patch.offset));
  return Buffer.concat([kept, Buffer.from(patch.text)]).toString();
}

// The messages of a conversation, by id, in the order in which they were created.
class View {
  ordinal = 0n; // of the last event that is in it
  messages = new Map();

  apply(line) {
    const { frame, payloads } = readFrame(line);
    // The case of a frame of a newer version is undefined.
    if (frame.case === "snapshot") {
      const { snapshotOrdinal, entities } = frame.value;
      if (snapshotOrdinal > this.ordinal) this.ordinal = snapshotOrdinal;
      entities.forEach((entity, index) => this.put(entity, payloads[index]));
    } else if (frame.case === "uiEvent" && frame.value.ordinal >= this.ordinal) {
      // Several events may share an ordinal, so equal ones count; applied twice they change nothing.
      this.ordinal = frame.value.ordinal;
      if (payloads[0]) this.update(payloads[0]);
    }
  }

  // An entity takes the place of the one with its id.
  put(entity, payload) {
    if (entity.tombstone) this.messages.delete(entity.id);
    else if (payload && entity.kind === "ChatMessage") this.messages.set(entity.id, payload);
  }

  update(event) {
    const { messageId, role, status } = event;
    const known = this.messages.get(messageId) ?? { role, status, text: "" };
    switch (event.$typeName.split(".").at(-1)) {
      case "ChatUserMessageAccepted":
      case "ChatTextSegmentFinished":
      case "ChatReasoningSegmentFinished":
        this.messages.set(messageId, event);
        break;
      case "ChatTextSegmentStarted":
      case "ChatReasoningSegmentStarted":
        this.messages.set(messageId, known);
        break;
      case "ChatTextPatch":
      case "ChatReasoningPatch":
        this.messages.set(messageId, { ...known, text: applyPatch(known.text, event) });
        break;
    }
  }
}

const view = new View();
for await (const line of createInterface({ input: process.stdin })) view.apply(line);
for (const { role, status, text } of view.messages.values()) {
  process.stdout.write(`${role} ${status}: ${text}\n`);
}
