import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { JsonObject } from "@bufbuild/protobuf";
import { Connection, type Patch } from "./connection.js";
import { Closed, DuologueError, StoreError } from "./errors.js";
import type { HelloFrame } from "./messages/pinocchio/chatapp/rpc/v1/rpc_pb.js";
import { sentAlong, storeOf, type Options, type PromptOptions } from "./options.js";
import { notRun } from "./process.js";
import type { Result } from "./result.js";
import { jsonSchemaOf } from "./schema.js";
import { readSnapshot, type Change, type Entity, type Snapshot } from "./snapshot.js";
import { Stream } from "./stream.js";
import { descriptorOf, type Tool } from "./tools.js";

const FORK_MS = 60_000;
// Kinds of entities that come after the others of a page, and don't count for its limit.
const APART = new Set(["Compaction", "ToolApproval"]);

/** A conversation with a model, held by a process of its own. */
export class Duologue {
  readonly #connection: Connection;
  /** What was seen of processes that have ended, until `reconnect` has told what was not. */
  #seen: { ordinal: bigint; shown: ReadonlyMap<string, Patch> } | undefined;
  #reconnecting: Promise<Change[]> | undefined;

  private constructor(options: Options) {
    this.#connection = new Connection(options);
  }

  /** Starts the process, and checks what it is. */
  static async start(options: Options = {}): Promise<Duologue> {
    const chat = new Duologue(options);
    await chat.#connection.start();
    return chat;
  }

  /** Stops what runs, and ends the process: shutdown, then SIGTERM, then SIGKILL. Nothing is left running. */
  close(): Promise<void> {
    return this.#connection.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /**
   * Starts the process again after its end, and goes on with the stored session. Gives what has changed since the last
   * event that this client had; text that no stream has shown, as that of `run`, is new. Requests that were in flight are
   * not sent again. If it fails, no process is left, and the next attempt gives what this one would have. Calls while one
   * is under way are the same.
   */
  reconnect(): Promise<Change[]> {
    this.#reconnecting ??= this.#goOn().finally(() => (this.#reconnecting = undefined));
    return this.#reconnecting;
  }

  async #goOn(): Promise<Change[]> {
    const connection = this.#connection;
    if (storeOf(connection.options) === undefined || connection.options.session === undefined) {
      throw new DuologueError("Only a conversation with a store and `session` can go on in another process.");
    }
    if (!connection.failure) throw new DuologueError("The process runs.");
    // The next process has ordinals and texts of its own as soon as it begins.
    const { ordinal, shown } = (this.#seen ??= { ordinal: this.ordinal, shown: new Map(connection.shown) });
    connection.shown.clear();
    await connection.restart();
    const entities = await this.#changed(ordinal);
    this.#seen = undefined;
    return entities.map((entity) => ({ entity, text: unseen(entity, shown.get(entity.id)) }));
  }

  async #changed(since: bigint): Promise<Entity[]> {
    try {
      return (await this.snapshot({ since })).entities;
    } catch (error) {
      await this.#connection.giveUp(error as DuologueError);
      throw error;
    }
  }

  /** What the process said of itself. */
  get hello(): HelloFrame {
    const { hello, failure } = this.#connection;
    if (!hello) throw failure ?? new Closed("The process has said nothing yet.");
    return hello;
  }

  /** The conversation that the process began with, in a stored session. */
  get initial(): Snapshot | undefined {
    return this.#connection.initial;
  }

  /** The id of the session. */
  get sessionId(): string {
    return this.#connection.sessionId;
  }

  /** The id of the process. */
  get pid(): number | undefined {
    return this.#connection.pid;
  }

  /** Ordinal of the last event that was received. */
  get ordinal(): bigint {
    return this.#connection.ordinal;
  }

  /** What the store of this conversation has last complained of. */
  get storeError(): StoreError | undefined {
    return this.#connection.storeError;
  }

  /** The end of what the process wrote to standard error, warnings among it. */
  get stderr(): string {
    return this.#connection.stderr;
  }

  /** Asks the model, and gives what the run came to. */
  async run<T>(prompt: string, options: PromptOptions<T> = {}): Promise<Result<T>> {
    return this.stream(prompt, options);
  }

  /** Like `run`, as the events come: `for await (const event of chat.stream(prompt))`. */
  stream<T>(prompt: string, options: PromptOptions<T> = {}): Stream<T> {
    const { settings, answer, signal } = options;
    const submit: JsonObject = { prompt, ...sentAlong(options) };
    if (settings) submit.settings = settings;
    if (answer) submit.responseSchema = jsonSchemaOf(answer);
    return new Stream<T>(this.#connection, this.#connection.new({ submit }), { ...(answer && { answer }), ...(signal && { signal }) });
  }

  /** Stops the active run, whoever has started it; false if there is none. */
  cancel(): Promise<boolean> {
    return this.#connection.cancel();
  }

  /** Sends any request, as `request({enable: {extensions: ["timing"]}})`; settles when it has its `done`. */
  request(body: JsonObject): Promise<JsonObject | undefined> {
    return this.#connection.request(body);
  }

  /** The conversation, or what changed after the event `since`, or the last `limit` entities before one. */
  async snapshot({ since = 0n, limit = 0, before = 0n } = {}): Promise<Snapshot> {
    const snapshot = { sinceOrdinal: String(since), limit, beforeOrdinal: String(before) };
    return readSnapshot((await this.request({ snapshot })) ?? {});
  }

  /** All messages, tool calls and results, oldest first. They are asked for in pages. */
  async history(): Promise<Entity[]> {
    const limit = this.#connection.options.pageEntities ?? 500;
    let entities: Entity[] = [];
    let apart: Entity[] = [];
    for (let before = 0n; ; ) {
      const page = (await this.snapshot({ limit, before })).entities;
      const counted = page.filter(({ kind }) => !APART.has(kind));
      entities = [...counted, ...entities];
      // Several pages may have one of these.
      const isKnown = ({ kind, id }: Entity) => apart.some((known) => known.kind === kind && known.id === id);
      apart = [...page.filter((entity) => APART.has(entity.kind) && !isKnown(entity)), ...apart];
      before = counted[0]?.createdOrdinal ?? 0n;
      if (counted.length < limit || before === 0n) return [...entities, ...apart];
    }
  }

  /** Drops the last prompt and its answer. */
  async dropLastTurn(): Promise<void> {
    await this.request({ edit: { dropLastTurn: {} } });
  }

  /**
   * Drops the last answer, and asks its prompt again. The answer is text: the type that the prompt was asked with is
   * not asked for again, nor its settings. For these, `dropLastTurn` and `run`.
   */
  regenerate(options: Pick<PromptOptions, "signal"> = {}): Stream {
    return this.#edit({ regenerate: {} }, options);
  }

  /**
   * Drops the turn that the prompt `messageId` began and all after it, and asks another prompt in its place. The
   * attachments of the earlier prompt stay, but for those that are removed. The answer is text, as with `regenerate`.
   */
  replace(
    messageId: string,
    prompt: string,
    options: Pick<PromptOptions, "attachments" | "resources" | "signal"> & { removedAttachmentIds?: string[] } = {},
  ): Stream {
    const { removedAttachmentIds } = options;
    const replace: JsonObject = { messageId, prompt, ...sentAlong(options) };
    if (removedAttachmentIds) replace.removedAttachmentIds = removedAttachmentIds;
    return this.#edit({ replace }, options);
  }

  #edit(edit: JsonObject, options: PromptOptions): Stream {
    const { signal, answer, settings } = options;
    if (answer ?? settings) {
      throw new DuologueError("An edit has no `answer` and no `settings`: use `dropLastTurn`, and `run` with these.");
    }
    return new Stream(this.#connection, this.#connection.new({ edit }), signal && { signal });
  }

  /**
   * Has the model sent a summary in place of the earlier turns; `history` stays as it is. `instructions` say what the
   * summary should keep; the last `keepTurns` are sent as they are, by default as many as have room. It is stopped like
   * a run, and has no text: await it for its status, or iterate for `Compacted` and what else it says, which `onNotice`
   * gets otherwise.
   */
  compact(options: { instructions?: string; keepTurns?: number; signal?: AbortSignal } = {}): Stream {
    const { instructions = "", keepTurns = 0, signal } = options;
    const request = this.#connection.new({ compact: { instructions, keepTurns } });
    return new Stream(this.#connection, request, signal && { signal });
  }

  /** A client of a copy of this stored conversation, or of its first turns. */
  async fork(turns?: number): Promise<Duologue> {
    const { binary, env, cwd } = this.#connection.options;
    const store = storeOf(this.#connection.options);
    if (store === undefined) throw new DuologueError("Only a conversation with a store can be copied.");
    const args = ["sessions", "fork", "--store", store, ...(turns ? ["--turns", String(turns)] : []), "--", this.sessionId];
    const options = { env: { ...process.env, ...env }, ...(cwd !== undefined && { cwd }), timeout: FORK_MS };
    let copy: string;
    try {
      copy = (await promisify(execFile)(binary, args, options)).stdout.trim();
    } catch (error) {
      throw forkError(binary, cwd, error as ForkError);
    }
    const tools = [...this.#connection.tools.values()];
    return await Duologue.start({ ...this.#connection.options, tools, session: copy });
  }

  /** Chooses what answers from the next prompt on. */
  async switchModel(choice: { model?: string; profile?: string; engine?: string; settings?: JsonObject }): Promise<void> {
    await this.request({ switchModel: choice as JsonObject });
  }

  /** Replaces the tools, from the next call of the model on. */
  async setTools(tools: Tool[]): Promise<void> {
    await this.request({ declareTools: { tools: tools.map(descriptorOf) } });
    this.#connection.tools = new Map(tools.map((tool) => [tool.name, tool]));
  }
}

/** An error of `execFile`: its `code` is a text where the program did not run. */
type ForkError = Error & { code?: number | string | null; killed?: boolean; stderr?: string };

function forkError(binary: string, cwd: string | undefined, error: ForkError): DuologueError {
  if (typeof error.code === "string") return notRun(binary, cwd, error);
  const late = `the copy took longer than ${FORK_MS / 1000} s`;
  return new StoreError("store_failed", error.killed ? late : error.stderr?.trim() || error.message);
}

/** The part of an entity's text that comes after the last patch of it that was shown. */
function unseen({ json }: Entity, patch: Patch | undefined): string {
  const text = typeof json.text === "string" ? json.text : "";
  if (!patch) return text;
  // A lean patch has no mode then.
  const isPiece = patch.mode === undefined || patch.mode === "CHAT_STREAM_PATCH_MODE_APPEND";
  const shown = Number((isPiece && patch.offset) || 0) + Buffer.byteLength(patch.text ?? "");
  return Buffer.from(text).subarray(shown).toString();
}
