import type { JsonObject, Message } from "@bufbuild/protobuf";
import { readPayload } from "./events.js";

/** An entity of the conversation: a message, a tool call or its result. */
export interface Entity {
  kind: string;
  id: string;
  createdOrdinal: bigint;
  lastEventOrdinal: bigint;
  /** It is gone from the conversation. */
  tombstone: boolean;
  /** As `ChatMessageEntity`; undefined if this version of the library does not know its type. */
  payload: Message | undefined;
  /** The payload as JSON. */
  json: JsonObject;
}

/** The conversation, or a part of it. */
export interface Snapshot {
  /** Ordinal of the last event of the session. */
  ordinal: bigint;
  entities: Entity[];
}

/** An entity that is new or different after `reconnect`. */
export interface Change {
  entity: Entity;
  /** The part of its text that was not shown before. */
  text: string;
}

/** The members of a `snapshot` frame. */
export function readSnapshot(json: JsonObject): Snapshot {
  const entities = (json.entities ?? []) as JsonObject[];
  return {
    ordinal: BigInt((json.snapshotOrdinal as string | undefined) ?? 0),
    entities: entities.map((entity) => ({
      kind: String(entity.kind ?? ""),
      id: String(entity.id ?? ""),
      createdOrdinal: BigInt((entity.createdOrdinal as string | undefined) ?? 0),
      lastEventOrdinal: BigInt((entity.lastEventOrdinal as string | undefined) ?? 0),
      tombstone: entity.tombstone === true,
      payload: readPayload((entity.payload ?? {}) as JsonObject),
      json: (entity.payload ?? {}) as JsonObject,
    })),
  };
}
