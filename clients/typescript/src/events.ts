import { createRegistry, fromJson, type DescMessage, type JsonObject, type JsonValue, type Message } from "@bufbuild/protobuf";
import { readFast } from "./fast.js";
import type { GenMessage } from "@bufbuild/protobuf/codegenv2";
import * as extract from "./messages/duologue/extract/v1/extract_pb.js";
import * as provider from "./messages/duologue/provider/v1/provider_pb.js";
import * as session from "./messages/duologue/session/v1/session_pb.js";
import * as toolServers from "./messages/duologue/tools/v1/tools_pb.js";
import * as frontend from "./messages/pinocchio/chatapp/frontendtools/v1/frontend_tool_pb.js";
import * as rpc from "./messages/pinocchio/chatapp/rpc/v1/rpc_pb.js";
import * as chat from "./messages/pinocchio/chatapp/v1/chat_pb.js";

type Schemas = typeof chat & typeof frontend & typeof toolServers & typeof session & typeof provider & typeof extract;

/** All messages that are payloads of events or entities, by the short names of their types. */
export type Payloads = {
  [K in keyof Schemas as K extends `${infer Name}Schema` ? Name : never]: Schemas[K] extends GenMessage<infer M> ? M : never;
};

interface EventBase {
  /** Number of the event in its session. */
  readonly ordinal: bigint;
  /** Request whose event this is; empty for an event of the session. */
  readonly requestId: string;
  /** The payload as JSON, with the fields that this version of the library does not know. */
  readonly json: JsonObject;
}

/** An event of one name, as `EventOf<"ChatTextPatch">`. */
export type EventOf<Name extends keyof Payloads> = EventBase & { readonly name: Name; readonly payload: Payloads[Name] };

/** An event of a type that this version of the library does not know. */
export type UnknownEvent = EventBase & {
  readonly name: "Unknown";
  /** Full name of the type, as `example.v1.Message`. */
  readonly type: string;
  readonly payload: undefined;
};

/** One step of a run, or of the session. `name` says which: `if (event.name === "ChatTextPatch") event.payload.text`. */
export type Event = { [Name in keyof Payloads]: EventOf<Name> }[keyof Payloads] | UnknownEvent;

const files = [
  chat.file_pinocchio_chatapp_v1_chat,
  rpc.file_pinocchio_chatapp_rpc_v1_rpc,
  frontend.file_pinocchio_chatapp_frontendtools_v1_frontend_tool,
  toolServers.file_duologue_tools_v1_tools,
  session.file_duologue_session_v1_session,
  provider.file_duologue_provider_v1_provider,
  extract.file_duologue_extract_v1_extract,
];
const registry = createRegistry(...files);
const TYPE_URL = "type.googleapis.com/";
const schemas = new Map<string, DescMessage>();
for (const file of files) for (const message of file.messages) schemas.set(TYPE_URL + message.typeName, message);

/** Reads a message, and ignores the fields that it does not know. */
export function read<Desc extends DescMessage>(schema: Desc, json: JsonValue) {
  return fromJson(schema, json, { ignoreUnknownFields: true, registry });
}

/** The payload of an event or an entity; undefined if this version of the library does not know its type. */
export function readPayload(json: JsonObject): Message | undefined {
  const schema = schemas.get(String(json["@type"]));
  // `@type` is a field that no message has, and ignored as such.
  return schema && (readFast(schema, json) ?? read(schema, json));
}

/** The members of a frame with an event. */
export interface EventFrameJson {
  requestId?: string;
  uiEvent: { ordinal?: string; name?: string; payload?: JsonObject };
}

/** An event whose payload is read when it is asked for. */
export class FrameEvent {
  readonly name: string;
  readonly #frame: EventFrameJson;
  #payload: Message | undefined;

  constructor(frame: EventFrameJson) {
    this.#frame = frame;
    const schema = schemas.get(String(frame.uiEvent.payload?.["@type"]));
    this.name = schema ? schema.name : "Unknown";
  }

  get ordinal(): bigint {
    return BigInt(this.#frame.uiEvent.ordinal ?? 0);
  }

  get requestId(): string {
    return this.#frame.requestId ?? "";
  }

  get json(): JsonObject {
    return this.#frame.uiEvent.payload ?? {};
  }

  get type(): string {
    return String(this.json["@type"] ?? "").split("/").pop()!;
  }

  get payload(): Message | undefined {
    return (this.#payload ??= readPayload(this.json));
  }
}
