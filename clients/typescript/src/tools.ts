import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { ToolApprovalRequested } from "./messages/duologue/tools/v1/tools_pb.js";
import { jsonSchemaOf, valueOf, type Schema } from "./schema.js";
import { within } from "./time.js";

const TOOL_MS = 60_000;

/** A function that the model may call. */
export interface Tool<T = any> {
  name: string;
  /** What the tool does, for the model. */
  description?: string;
  /** Type of the arguments, an object. */
  parameters: Schema<T>;
  /** Longest time in milliseconds; 60,000 by default, Infinity for the server's. */
  timeoutMs?: number;
  /** Runs the tool. What it throws is a result that the model reads. `signal` is aborted when nobody waits any more. */
  run(args: T, context: { signal: AbortSignal }): unknown;
}

/** Makes a tool, with the types of its arguments. */
export function tool<T>(definition: Tool<T>): Tool<T> {
  return definition;
}

/** The tool as `declareTools` has it. */
export function descriptorOf({ name, description = "", parameters }: Tool): JsonObject {
  return { name, description, inputSchema: jsonSchemaOf(parameters) };
}

/** The members of a `toolResult`. */
export async function callTool(tool: Tool, input: JsonObject, signal: AbortSignal): Promise<JsonObject> {
  const ms = tool.timeoutMs ?? TOOL_MS;
  const ended = new AbortController();
  const any = AbortSignal.any([signal, ended.signal]);
  try {
    const work = (async () => tool.run(await valueOf(tool.parameters, input), { signal: any }))();
    const value = await within(work, ms, () => new Error(`The tool took longer than ${ms / 1000} s.`), signal);
    // Through text: what JSON does not have is an error here, and not when the line is written.
    const json = JSON.parse(JSON.stringify(value ?? null) ?? "null") as JsonValue;
    const isObject = typeof json === "object" && json !== null && !Array.isArray(json);
    return { status: "success", result: isObject ? json : { result: json } };
  } catch (error) {
    return { status: "error", error: textOf(error).replace(/^Error: /, "") };
  } finally {
    ended.abort();
  }
}

/** What was thrown, as text: all kinds of values can be thrown, also one that has none. */
export function textOf(thrown: unknown): string {
  try {
    return String(thrown);
  } catch {
    return `(a value of the type ${typeof thrown}, which can't be shown as text)`;
  }
}

/** A decision about a call of a tool server: true, false, the reason for a no, or "ALLOW_SESSION". */
export type Decision = boolean | string;

/** Decides about calls of tool servers. */
export type Approve = (request: ToolApprovalRequested, context: { signal: AbortSignal }) => Decision | Promise<Decision>;

/** The members of an `approve`. Nobody to ask, no answer in time, and an error are a no. */
export async function decide(
  approve: Approve | undefined,
  request: ToolApprovalRequested,
  ms: number,
  signal: AbortSignal,
): Promise<JsonObject> {
  if (!approve) return { decision: "DENY", reason: "This program approves no tool calls." };
  let isLate = false;
  try {
    const work = (async () => approve(request, { signal }))();
    const answer = await within(work, ms, () => ((isLate = true), new Error()), signal);
    if (answer === true) return { decision: "ALLOW_ONCE" };
    if (answer === "ALLOW_SESSION") return { decision: "ALLOW_SESSION" };
    return { decision: "DENY", reason: typeof answer === "string" && answer ? answer : "It was denied." };
  } catch {
    const reason = isLate ? `Nobody decided within ${ms / 1000} s.` : "The program could not decide.";
    return { decision: "DENY", reason };
  }
}
