import type { JsonObject } from "@bufbuild/protobuf";

/** What this package needs of a Standard Schema (https://standardschema.dev), as zod, ArkType and Valibot make them. */
export interface StandardSchema<Output = unknown> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => Validated<Output> | Promise<Validated<Output>>;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
    readonly jsonSchema?: { readonly input: (options: { target: "draft-2020-12" }) => Record<string, unknown> };
  };
}

type Validated<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly { readonly message: string }[] };

/** A type of values: a Standard Schema that knows its JSON Schema, one with the JSON Schema beside it, or a JSON Schema. */
export type Schema<T = unknown> = StandardSchema<T> | { type: StandardSchema<T>; jsonSchema: JsonObject } | JsonObject;

function standardOf<T>(schema: Schema<T>): StandardSchema<T> | undefined {
  if ("~standard" in schema) return schema as StandardSchema<T>;
  const { type } = schema as { type?: unknown };
  return type && typeof type !== "string" && !Array.isArray(type) && "~standard" in (type as object)
    ? (type as StandardSchema<T>)
    : undefined;
}

/** The JSON Schema of a type. */
export function jsonSchemaOf(schema: Schema): JsonObject {
  const standard = standardOf(schema);
  if (!standard) return schema as JsonObject;
  if ("jsonSchema" in schema) return schema.jsonSchema as JsonObject;
  const make = standard["~standard"].jsonSchema;
  if (!make) {
    const { vendor } = standard["~standard"];
    throw new TypeError(`This schema of ${vendor} does not know its JSON Schema: pass {type, jsonSchema}.`);
  }
  return make.input({ target: "draft-2020-12" }) as JsonObject;
}

/** The value of a type that `value`, as JSON has it, stands for; throws a TypeError if there is none. */
export async function valueOf<T>(schema: Schema<T>, value: unknown): Promise<T> {
  const standard = standardOf(schema);
  if (!standard) return value as T;
  const validated = await standard["~standard"].validate(value);
  if (validated.issues) throw new TypeError(validated.issues.map((issue) => issue.message).join("; "));
  return validated.value;
}
