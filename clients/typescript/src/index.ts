/**
 * Conversations with language models, held by the program duologue.
 *
 * ```ts
 * const chat = await Duologue.start({ store: "chat.db", session: "ada" });
 * console.log((await chat.run("What is a duologue?")).text);
 * for await (const event of chat.stream("Explain it to a child.")) {
 *   if (event.name === "ChatTextPatch") process.stdout.write(event.payload.text);
 * }
 * await chat.close();
 * ```
 *
 * @packageDocumentation
 */

export { Duologue } from "./client.js";
export * from "./errors.js";
export type { Event, EventOf, Payloads, UnknownEvent } from "./events.js";
export type { Options, PromptOptions } from "./options.js";
export type { Result, ToolCall } from "./result.js";
export type { Schema, StandardSchema } from "./schema.js";
export type { Change, Entity, Snapshot } from "./snapshot.js";
export type { Stream } from "./stream.js";
export { tool, type Approve, type Decision, type Tool } from "./tools.js";
