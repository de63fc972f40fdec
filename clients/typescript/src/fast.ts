import { ScalarType, type DescField, type DescMessage, type JsonObject, type JsonValue, type Message } from "@bufbuild/protobuf";

// Patches are most of a stream, and the library's own reader of JSON takes twice as long as parsing them. This one makes
// the same objects of messages whose fields are scalars, enums and such messages; others, and errors, are left to it.

type Plain = Record<string, unknown>;
type ReadField = (message: Plain, json: JsonValue | undefined) => boolean;
type Reader = (json: JsonObject) => Plain | undefined;

const readers = new WeakMap<DescMessage, Reader | null>();

/** The message, or undefined if it has to be read in another way. */
export function readFast(schema: DescMessage, json: JsonObject): Message | undefined {
  return readerOf(schema)?.(json) as Message | undefined;
}

function readerOf(schema: DescMessage): Reader | null {
  let reader = readers.get(schema);
  if (reader === undefined) {
    readers.set(schema, null); // A message that has itself as a field is left to the library.
    reader = makeReader(schema);
    readers.set(schema, reader);
  }
  return reader;
}

function makeReader(schema: DescMessage): Reader | null {
  const fields: [string, ReadField][] = [];
  for (const field of schema.fields) {
    const read = field.oneof ? undefined : readField(field);
    if (!read) return null;
    fields.push([field.jsonName, read]);
  }
  const { typeName } = schema;
  return (json) => {
    const message: Plain = { $typeName: typeName };
    for (const [name, read] of fields) if (!read(message, json[name] ?? undefined)) return undefined;
    return message;
  };
}

function readField(field: DescField): ReadField | undefined {
  const name = field.localName;
  switch (field.fieldKind) {
    case "scalar":
      return readScalar(field, name);
    case "enum": {
      const numbers = new Map(field.enum.values.map((value) => [value.name, value.number]));
      return (message, json) => {
        message[name] = numbers.get(json as string) ?? 0;
        return json === undefined || typeof json === "string";
      };
    }
    case "message": {
      const read = field.message.typeName.startsWith("google.") ? null : readerOf(field.message);
      return read
        ? (message, json) => {
            if (json === undefined) return true;
            if (typeof json !== "object" || Array.isArray(json)) return false;
            message[name] = read(json as JsonObject);
            return message[name] !== undefined;
          }
        : undefined;
    }
    default:
      return undefined;
  }
}

function readScalar(field: DescField & { fieldKind: "scalar" }, name: string): ReadField | undefined {
  const isImplicit = field.presence === 2; // FeatureSet_FieldPresence.IMPLICIT
  const plain = (type: string, zero: unknown): ReadField => (message, json) => {
    if (json !== undefined) message[name] = json;
    else if (isImplicit) message[name] = zero;
    return json === undefined || typeof json === type;
  };
  switch (field.scalar) {
    case ScalarType.STRING:
      return plain("string", "");
    case ScalarType.BOOL:
      return plain("boolean", false);
    case ScalarType.INT32:
    case ScalarType.UINT32:
      return plain("number", 0);
    case ScalarType.INT64:
    case ScalarType.UINT64:
      return (message, json) => {
        if (json === undefined) {
          if (isImplicit) message[name] = 0n;
          return true;
        }
        if (typeof json !== "string" || !/^-?\d+$/.test(json)) return false;
        message[name] = BigInt(json);
        return true;
      };
    default:
      return undefined;
  }
}
