// A strict client: reads the frames of one process and says which of them a client would choke on.
//
//     check_frames.mjs DESCRIPTORS < frames.jsonl
//     check_frames.mjs DESCRIPTORS --self-test SAMPLES
//
// DESCRIPTORS is a serialized FileDescriptorSet. What is checked stands in ../README.md.

import { readFileSync } from "node:fs";
import path from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { isDeepStrictEqual } from "node:util";
import { createFileRegistry, fromBinary, fromJson, toJson } from "@bufbuild/protobuf";
import { isReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { AnySchema, FileDescriptorSetSchema, anyUnpack } from "@bufbuild/protobuf/wkt";

const FRAME_TYPE = "pinocchio.chatapp.rpc.v1.RpcLine";
const PROTOCOL_VERSION = 1;
// Extensions have field numbers from here up, and files of their own.
const EXTENSION_NUMBER_MIN = 200;
const KNOWN_FILES = /^(pinocchio|google\/protobuf)\//;
// What one reader or another takes for the end of a line, beside LF.
const SEPARATORS = /[\r\u0085\u2028\u2029]/;

class Rejected extends Error {}

// Parses lines as a client that knows the published messages and nothing else.
class Client {
  constructor(descriptors) {
    this.registry = createFileRegistry(knownMessages(descriptors));
    this.schema = this.registry.getMessage(FRAME_TYPE);
  }

  parse(line) {
    if (SEPARATORS.test(line)) throw new Rejected("some readers see more than one line");
    const json = JSON.parse(line);
    const frame = fromJson(this.schema, json, {
      ignoreUnknownFields: false,
      registry: this.registry,
    });
    this.unpackPayloads(reflect(this.schema, frame));
    const canonical = toJson(this.schema, frame, { registry: this.registry });
    if (!isDeepStrictEqual(canonical, json)) {
      throw new Rejected(`not canonical protobuf JSON, which is ${JSON.stringify(canonical)}`);
    }
    return frame;
  }

  // Turns every Any in `message` into its own type: a wrong type name or wrong bytes throw.
  unpackPayloads(message) {
    if (message.desc.typeName === AnySchema.typeName) {
      const any = message.message;
      const payload = anyUnpack(any, this.registry);
      if (!payload) throw new Rejected(`cannot unpack ${any.typeUrl}`);
      message = reflect(this.registry.getMessage(payload.$typeName), payload);
    }
    for (const field of message.fields) {
      if (!message.isSet(field)) continue;
      const value = message.get(field);
      const children = field.fieldKind === "list" ? [...value] : [value];
      children.filter((child) => isReflectMessage(child)).forEach((child) => this.unpackPayloads(child));
    }
  }
}

// What the frames of one process owe each other.
class Stream {
  lastLines = new Map(); // request id -> line of its last frame
  done = new Set();
  ordinal = 0n;
  ordinalRequest = "";
  backendOrdinal = 0n;
  lastFrame = null;

  // Takes the next frame; throws `Rejected` if it cannot follow those before it.
  add(number, frame) {
    const first = this.lastFrame === null;
    this.lastFrame = frame;
    const kind = frame.frame.case;
    if ((kind === "hello") !== first) throw new Rejected("hello is the first frame and no other");
    if (frame.version !== PROTOCOL_VERSION) throw new Rejected(`version ${frame.version}`);
    this.addToRequest(number, frame.requestId, kind);
    if (kind === "uiEvent" || kind === "backendEvent") this.addEvent(frame);
    if (kind === undefined) throw new Rejected("a line without a frame");
  }

  addToRequest(number, request, kind) {
    if (request === "") return;
    if (this.done.has(request)) throw new Rejected(`request ${request} is done already`);
    this.lastLines.set(request, number);
    if (kind === "done") this.done.add(request);
  }

  addEvent(frame) {
    const { case: kind, value: event } = frame.frame;
    const messageName = event.payload?.typeUrl.split(/[./]/).at(-1);
    if (event.name !== messageName) {
      throw new Rejected(`event ${event.name} carries a ${messageName}`);
    }
    if (event.ordinal === 0n || event.ordinal < this.ordinal) {
      throw new Rejected(`ordinal ${event.ordinal} after ${this.ordinal}`);
    }
    if (event.ordinal === this.ordinal && frame.requestId !== this.ordinalRequest) {
      throw new Rejected(`ordinal ${event.ordinal} belongs to ${this.ordinalRequest}`);
    }
    if (kind === "backendEvent") {
      if (event.ordinal === this.backendOrdinal) {
        throw new Rejected(`a second backend event ${event.ordinal}`);
      }
      this.backendOrdinal = event.ordinal;
    }
    this.ordinal = event.ordinal;
    this.ordinalRequest = frame.requestId;
  }

  // What is missing after the last frame, which stood on line `number`.
  unfinished(number) {
    const failures = [...this.lastLines]
      .filter(([request]) => !this.done.has(request))
      .map(([request, line]) => ({ line, reason: `request ${request} has no done` }));
    if (!isLastFrame(this.lastFrame)) failures.push({ line: number, reason: "the stream breaks off" });
    return failures;
  }
}

// Whether a process may end with `frame`.
function isLastFrame(frame) {
  const { case: kind, value } = frame?.frame ?? {};
  return kind === "hello" || kind === "done" || (kind === "error" && value.terminal);
}

// What is published: a default stream that needs more is an error of the server.
function knownMessages(descriptors) {
  const set = fromBinary(FileDescriptorSetSchema, descriptors);
  set.file = set.file.filter((file) => KNOWN_FILES.test(file.name));
  for (const file of set.file) {
    file.dependency = file.dependency.filter((path) => KNOWN_FILES.test(path));
    for (const message of file.messageType) {
      message.field = message.field.filter((field) => field.number < EXTENSION_NUMBER_MIN);
    }
  }
  return set;
}

// The failures in `data`, all that a process wrote, and the number of its lines.
async function check(client, data) {
  const failures = [];
  const lines = splitLines(data);
  if (lines.pop().length > 0) {
    failures.push({ line: lines.length + 1, reason: "no line feed after the last frame" });
  }
  const stream = new Stream();
  for (const [index, bytes] of lines.entries()) {
    try {
      const line = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
      stream.add(index + 1, client.parse(line));
    } catch (error) {
      failures.push({ line: index + 1, reason: error.message });
    }
  }
  failures.push(...stream.unfinished(lines.length), ...(await readlineDifference(data, lines)));
  return { failures, lineCount: lines.length };
}

// The pieces of `data` between line feeds, the one after the last included.
function splitLines(data) {
  const lines = [];
  let start = 0;
  for (let end; (end = data.indexOf("\n", start)) >= 0; start = end + 1) {
    lines.push(data.subarray(start, end));
  }
  return [...lines, data.subarray(start)];
}

// The first line that node:readline sees otherwise. What it splits on differs from version to version.
async function readlineDifference(data, lines) {
  let index = 0;
  for await (const line of createInterface({ input: Readable.from([data]) })) {
    if (line !== lines[index]?.toString()) {
      return [{ line: index + 1, reason: "node:readline sees another line" }];
    }
    index += 1;
  }
  return [];
}

function failedLines(failures) {
  return [...new Set(failures.map(({ line }) => line))].sort((a, b) => a - b);
}

async function report(client, data) {
  const { failures, lineCount } = await check(client, data);
  for (const { line, reason } of failures) console.log(`line ${line}: ${reason}`);
  const failed = failedLines(failures).length;
  console.log(`${Math.max(lineCount - failed, 0)} passed, ${failed} failed`);
  return failures.length === 0;
}

// Whether each sample is rejected at the lines that are listed for it, and at no others.
async function selfTest(client, samples) {
  const listed = Object.entries(JSON.parse(readFileSync(path.join(samples, "index.json"), "utf8")));
  let wrong = 0;
  for (const [name, lines] of listed) {
    const { failures } = await check(client, readFileSync(path.join(samples, name)));
    const found = failedLines(failures);
    if (!isDeepStrictEqual(found, lines)) {
      wrong += 1;
      console.log(`${name}: rejected lines ${found}, not ${lines}: ${JSON.stringify(failures)}`);
    }
  }
  console.log(`${listed.length - wrong} passed, ${wrong} failed`);
  return wrong === 0;
}

const [descriptors, mode, samples] = process.argv.slice(2);
const client = new Client(readFileSync(descriptors));
const good =
  mode === "--self-test" ? await selfTest(client, samples) : await report(client, readFileSync(0));
process.exitCode = good ? 0 : 1;
