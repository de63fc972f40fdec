import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";
import type { JsonObject, Message } from "@bufbuild/protobuf";
import {
  Closed,
  DuologueError,
  errorOf,
  ProcessEnded,
  ProtocolError,
  RequestError,
  StoreError,
  TooLong,
  VersionError,
  type ErrorFrameJson,
} from "./errors.js";
import { FrameEvent, read, readPayload, type Event, type EventFrameJson, type Payloads } from "./events.js";
import { Lines, Overlong } from "./lines.js";
import { HelloFrameSchema, type HelloFrame } from "./messages/pinocchio/chatapp/rpc/v1/rpc_pb.js";
import { findBinary, Process } from "./process.js";
import { Request } from "./requests.js";
import type { Result } from "./result.js";
import { jsonSchemaOf, type Schema } from "./schema.js";
import { Stream, type Owner } from "./stream.js";
import { callTool, decide, descriptorOf, within, type Approve, type Tool } from "./tools.js";

const PROTOCOL = "pinocchio.chatapp.rpc.v1";
const SERVER_VERSION_MIN = [0, 1, 0];
const EXTENSIONS =
  "approvals,client-tools,edit,history,retries,settings,steer,store,structured,switch-model,targeted-cancel," +
  "timing,tool-servers,usage";
// Of later servers: each is asked for by itself, and may be unknown.
const NEWER_EXTENSIONS = ["tool-progress"];
const LINE_BYTES_MAX = 256 * 1024 * 1024;
const REQUEST_BYTES_MAX = 10 * 1024 * 1024;
const PAUSE_BYTES = 8 * 1024 * 1024;
const QUEUE_BYTES_MAX = 256 * 1024 * 1024;
const STDERR_CHARS = 2000;

/** What a client may be told when it starts. */
export interface Options {
  /** The program; otherwise `DUOLOGUE_BIN`, the package's own, or the one on the `PATH`. */
  binary?: string;
  /** Where the conversation is stored. */
  store?: string;
  /** Its name there: the same one goes on with it. */
  session?: string;
  engine?: string;
  model?: string;
  profile?: string;
  /** The system prompt. */
  system?: string;
  /** Further options of `duologue rpc`. */
  args?: string[];
  /** Functions that the model may call. */
  tools?: Tool[];
  /** Decides about calls of tool servers; without it they are denied. */
  approve?: Approve;
  /** Longest time of a decision; 3,600,000 by default. */
  approveTimeoutMs?: number;
  /** Gets events of the session that belong to no request, and errors of its store. */
  onNotice?: (notice: Event | DuologueError) => void;
  /** `reject` (the default) makes a prompt during a run the error `Busy`; with `queue` it waits for its turn. */
  onBusy?: "reject" | "queue";
  /** Variables in addition to those of this program. */
  env?: Record<string, string>;
  /** The folder of the process. */
  cwd?: string;
  /** 30,000 by default. */
  startTimeoutMs?: number;
  /** How long the process may take to end before it is made to; 5,000 by default. */
  closeTimeoutMs?: number;
  /** How long a run may take to stop; 5,000 by default. */
  cancelTimeoutMs?: number;
  /** Longest line of the server; 256 MiB by default. */
  lineBytesMax?: number;
  /** Most entities that `history` asks for at a time; 500 by default. */
  pageEntities?: number;
}

/** What a prompt may have. */
export interface PromptOptions<T = unknown> {
  /** Paths, URLs, or objects like `ChatAttachment`. */
  attachments?: (string | JsonObject)[];
  /** Resources of tool servers, which go with the prompt. */
  resources?: { server: string; uri: string }[];
  /** For this turn alone, as `model` or `temperature`. */
  settings?: JsonObject;
  /** The type of the answer: a Standard Schema such as zod's, or a JSON Schema. */
  answer?: Schema<T>;
  /** Stops the run when it is aborted. The result has the status `stopped` then. */
  signal?: AbortSignal;
}

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

interface Frame {
  sessionId?: string;
  requestId?: string;
  hello?: JsonObject;
  snapshot?: JsonObject;
  uiEvent?: EventFrameJson["uiEvent"];
  error?: ErrorFrameJson;
  done?: { status?: string };
}

interface Patch {
  messageId?: string;
  offset?: string;
  text?: string;
  mode?: string;
}

/** A conversation with a model, held by a process of its own. */
export class Duologue {
  readonly #options: Options;
  readonly #args: string[];
  #tools: Map<string, Tool>;
  // What streams need: not for users of the client.
  readonly #owner: Owner = {
    send: (request) => this.#send(request),
    abandon: (request) => this.#abandon(request),
    stop: (request) => this.#stop(request),
    cancelRun: (targetRequestId) => this.#cancel({ targetRequestId }),
    steerRun: async (targetRequestId, prompt) =>
      new Stream(this.#owner, this.#new({ submit: { prompt, targetRequestId } })),
    flow: () => {
      if (this.#isPaused) this.#flow();
    },
  };
  #numbers = 0;
  #process: Process | undefined;
  #failure: DuologueError | undefined;
  #fatal: RequestError | undefined;
  #hello: HelloFrame | undefined;
  #begun!: () => void;
  #requests = new Map<string, Request>();
  #abandoned = new Set<Request>();
  #work = new Map<string, AbortController>();
  #isClosing = false;
  #isPaused = false;
  #lastEvent: FrameEvent | undefined;
  #lastOrdinal = 0n;
  #shown = new Map<string, Patch>();
  #sessionId = "";
  /** What the store of this conversation has last complained of. */
  storeError: StoreError | undefined;
  /** The conversation that the process began with, in a stored session. */
  initial: Snapshot | undefined;

  private constructor(options: Options) {
    this.#options = options;
    const { engine, model, profile, system, store, session } = options;
    const named = Object.entries({ engine, model, profile, system, store, session });
    this.#args = [
      `--on-busy=${options.onBusy ?? "reject"}`,
      "--final-snapshot=none",
      "--approval=ask",
      `--extensions=${EXTENSIONS}`,
      ...named.filter(([, value]) => value !== undefined).map(([name, value]) => `--${name}=${value}`),
      ...(options.args ?? []),
    ];
    this.#tools = new Map((options.tools ?? []).map((tool) => [tool.name, tool]));
  }

  /** Starts the process, and checks what it is. */
  static async start(options: Options = {}): Promise<Duologue> {
    const chat = new Duologue(options);
    await chat.#start();
    return chat;
  }

  /** Stops what runs, and ends the process: shutdown, then SIGTERM, then SIGKILL. Nothing is left running. */
  async close(): Promise<void> {
    const process = this.#process;
    if (!process) return;
    this.#isClosing = true;
    this.#endWork();
    if (!this.#failure) {
      for (const body of [{ cancel: { waiting: true } }, { cancel: {} }, { shutdown: {} }]) this.#tell(body);
    }
    await process.end(this.#options.closeTimeoutMs ?? 5000);
    this.#process = undefined;
    this.#failure = undefined;
    this.#fail(new Closed("The client was closed."));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /**
   * Starts the process again after its end, and goes on with the stored session. Gives what has changed since the last
   * event that this client had. Requests that were in flight are not sent again.
   */
  async reconnect(): Promise<Change[]> {
    if (this.#options.store === undefined || this.#options.session === undefined) {
      throw new DuologueError("Only a conversation with `store` and `session` can go on in another process.");
    }
    if (!this.#failure) throw new DuologueError("The process runs.");
    const since = this.ordinal;
    await this.#process?.end(this.#options.closeTimeoutMs ?? 5000);
    await this.#start();
    const { entities } = await this.snapshot({ since });
    const changes = entities.map((entity) => ({ entity, text: this.#unseen(entity) }));
    this.#shown.clear();
    return changes;
  }

  /** What the process said of itself. */
  get hello(): HelloFrame {
    if (!this.#hello) throw this.#failure ?? new Closed("The process has said nothing yet.");
    return this.#hello;
  }

  /** The id of the session. */
  get sessionId(): string {
    return this.#sessionId;
  }

  /** The id of the process. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Ordinal of the last event that was received. */
  get ordinal(): bigint {
    const last = this.#lastEvent?.ordinal ?? 0n;
    return last > this.#lastOrdinal ? last : this.#lastOrdinal;
  }

  /** The end of what the process wrote to standard error, warnings among it. */
  get stderr(): string {
    return this.#process?.stderr ?? "";
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
    return new Stream<T>(this.#owner, this.#new({ submit }), { ...(answer && { answer }), ...(signal && { signal }) });
  }

  /** Stops the active run, whoever has started it; false if there is none. */
  cancel(): Promise<boolean> {
    return this.#cancel({});
  }

  /** Sends any request, as `request({enable: {extensions: ["timing"]}})`; settles when it has its `done`. */
  async request(body: JsonObject): Promise<JsonObject | undefined> {
    const request = this.#new(body);
    await this.#send(request);
    await request.finished;
    if (request.error) throw request.error;
    return request.snapshot;
  }

  /** The conversation, or what changed after the event `since`, or the last `limit` entities before one. */
  async snapshot({ since = 0n, limit = 0, before = 0n } = {}): Promise<Snapshot> {
    const snapshot = { sinceOrdinal: String(since), limit, beforeOrdinal: String(before) };
    return readSnapshot((await this.request({ snapshot })) ?? {});
  }

  /** All messages, tool calls and results, oldest first. They are asked for in pages. */
  async history(): Promise<Entity[]> {
    const limit = this.#options.pageEntities ?? 500;
    let entities: Entity[] = [];
    for (let before = 0n; ; ) {
      const page = (await this.snapshot({ limit, before })).entities;
      entities = [...page, ...entities];
      before = page[0]?.createdOrdinal ?? 0n;
      if (page.length < limit || before === 0n) return entities;
    }
  }

  /** Drops the last prompt and its answer. */
  async dropLastTurn(): Promise<void> {
    await this.request({ edit: { dropLastTurn: {} } });
  }

  /** Drops the last answer, and asks its prompt again. */
  regenerate(): Stream {
    return new Stream(this.#owner, this.#new({ edit: { regenerate: {} } }));
  }

  /**
   * Drops the turn that the prompt `messageId` began and all after it, and asks another prompt in its place. The
   * attachments of the earlier prompt stay, but for those that are removed.
   */
  replace(
    messageId: string,
    prompt: string,
    options: Pick<PromptOptions, "attachments" | "resources" | "signal"> & { removedAttachmentIds?: string[] } = {},
  ): Stream {
    const { removedAttachmentIds, signal } = options;
    const replace: JsonObject = { messageId, prompt, ...sentAlong(options) };
    if (removedAttachmentIds) replace.removedAttachmentIds = removedAttachmentIds;
    return new Stream(this.#owner, this.#new({ edit: { replace } }), signal && { signal });
  }

  /** A client of a copy of this stored conversation, or of its first turns. */
  async fork(turns?: number): Promise<Duologue> {
    const { store, env, cwd } = this.#options;
    if (store === undefined) throw new DuologueError("Only a conversation with `store` can be copied.");
    const args = ["sessions", "fork", "--store", store, ...(turns ? ["--turns", String(turns)] : []), "--", this.sessionId];
    const options = { env: { ...process.env, ...env }, ...(cwd !== undefined && { cwd }), timeout: 60_000 };
    try {
      const { stdout } = await promisify(execFile)(findBinary(this.#options.binary), args, options);
      return await Duologue.start({ ...this.#options, session: stdout.trim() });
    } catch (error) {
      const { stderr } = error as { stderr?: string };
      throw stderr === undefined ? error : new StoreError("store_failed", stderr.trim());
    }
  }

  /** Chooses what answers from the next prompt on. */
  async switchModel(choice: { model?: string; profile?: string; engine?: string; settings?: JsonObject }): Promise<void> {
    await this.request({ switchModel: choice as JsonObject });
  }

  /** Replaces the tools, from the next call of the model on. */
  async setTools(tools: Tool[]): Promise<void> {
    await this.request({ declareTools: { tools: tools.map(descriptorOf) } });
    this.#tools = new Map(tools.map((tool) => [tool.name, tool]));
  }

  async #send(request: Request): Promise<void> {
    if (request.isRun && this.#options.onBusy !== "queue") await this.#settle();
    if (request.status) return;
    if (this.#failure) throw this.#failure;
    const line = JSON.stringify({ requestId: request.id, ...request.body });
    const bytes = Buffer.byteLength(line);
    const limit = Number(this.#capability("max-request-bytes") || REQUEST_BYTES_MAX);
    if (bytes > limit) throw new TooLong(`The request has ${bytes} bytes, and the server takes ${limit}.`);
    this.#requests.set(request.id, request);
    request.isSent = true;
    this.#process?.hold(true);
    this.#flow();
    this.#process?.write(line + "\n");
  }

  #abandon(request: Request): void {
    request.dropEvents();
    if (request.isSent && !request.status && !this.#failure) {
      this.#abandoned.add(request);
      this.#tell({ cancel: { targetRequestId: request.id } });
    }
    this.#flow();
  }

  #stop(request: Request): void {
    this.#tell({ cancel: { targetRequestId: request.id } });
    const timer = setTimeout(() => request.done("stopped"), this.#options.cancelTimeoutMs ?? 5000);
    void request.finished.then(() => clearTimeout(timer));
  }

  #new(body: JsonObject): Request {
    return new Request(this.#id(), body);
  }

  #id(): string {
    this.#numbers += 1;
    return `js-${this.#numbers}`;
  }

  /** Writes a request whose answer nobody waits for. */
  #tell(body: JsonObject): void {
    this.#process?.write(JSON.stringify({ requestId: this.#id(), ...body }) + "\n");
  }

  async #cancel(cancel: JsonObject): Promise<boolean> {
    try {
      await this.request({ cancel });
      return true;
    } catch (error) {
      if (error instanceof RequestError && error.code === "no_active_request") return false;
      throw error;
    }
  }

  /** Waits for the end of runs that nobody waits for any more: a prompt before that would be refused. */
  async #settle(): Promise<void> {
    const ends = Promise.all([...this.#abandoned].map((request) => request.finished));
    if (this.#abandoned.size === 0) return;
    const late = () => new Error("late");
    await within(ends, this.#options.cancelTimeoutMs ?? 5000, late).catch(() => undefined);
  }

  // Life

  async #start(): Promise<void> {
    const command = [findBinary(this.#options.binary), "rpc", ...this.#args];
    this.#failure = this.#fatal = this.#hello = undefined;
    this.#isClosing = this.#isPaused = false;
    this.#abandoned.clear();
    const lines = new Lines(this.#options.lineBytesMax ?? LINE_BYTES_MAX);
    const begun = new Promise<void>((resolve) => (this.#begun = resolve));
    const { env, cwd } = this.#options;
    const child: Process = new Process(
      command,
      { env: { ...process.env, ...env }, cwd: cwd && resolve(cwd) },
      {
        bytes: (chunk) => this.#process === child && this.#bytes(lines, chunk),
        end: (failure) => this.#process === child && this.#ended(child, failure),
      },
    );
    this.#process = child;
    try {
      const ms = this.#options.startTimeoutMs ?? 30_000;
      const late = () => new ProtocolError(`${command[0]} did not begin within ${ms / 1000} s.${this.#tail()}`);
      await within(this.#begin(begun), ms, late);
    } catch (error) {
      this.#isClosing = true;
      await child.end(0);
      this.#failure ??= error as DuologueError;
      this.#process = undefined;
      throw error;
    }
  }

  async #begin(begun: Promise<void>): Promise<void> {
    await begun;
    if (this.#failure) throw this.#fatal ?? this.#failure;
    // The first answers: until then a wrong command line, or a store that can't be opened, would not be noticed.
    try {
      for (const name of NEWER_EXTENSIONS) await this.#enableIfKnown(name);
      const tools = [...this.#tools.values()].map(descriptorOf);
      if (tools.length > 0) await this.request({ declareTools: { tools } });
    } catch (error) {
      // What it was that ended the process says more.
      throw error instanceof ProcessEnded ? (this.#fatal ?? error) : error;
    }
  }

  async #enableIfKnown(name: string): Promise<void> {
    try {
      await this.request({ enable: { extensions: [name] } });
    } catch (error) {
      if (!(error instanceof RequestError && error.code === "unknown_extension")) throw error;
    }
  }

  #ended(child: Process, failure: Error | undefined): void {
    const how = child.signal ? `was killed by ${child.signal}` : `ended with status ${child.status}`;
    const cause = this.#fatal ? `: ${this.#fatal.message}` : ".";
    const message = `duologue ${how}${cause}${this.#tail()}`;
    this.#fail((failure as DuologueError) ?? new ProcessEnded(message, child.status, child.signal, child.stderr));
  }

  /** What the process writes can't be read any more. */
  #break(failure: DuologueError): void {
    this.#fail(failure);
    void this.#process?.end(0);
  }

  #fail(failure: DuologueError): void {
    this.#failure ??= failure;
    this.#endWork();
    const requests = [...this.#requests.values()];
    this.#requests.clear();
    this.#abandoned.clear();
    for (const request of requests) request.end(this.#failure);
    this.#begun();
  }

  #endWork(): void {
    for (const work of this.#work.values()) work.abort();
    this.#work.clear();
  }

  // Receiving

  #bytes(lines: Lines, chunk: Buffer): void {
    for (const line of lines.feed(chunk)) {
      if (this.#failure) return;
      if (line instanceof Overlong) {
        this.#overlong(line);
        continue;
      }
      try {
        this.#frame(JSON.parse(line) as Frame, line.length);
      } catch (error) {
        if (error instanceof DuologueError) throw error;
        const excerpt = JSON.stringify(line.slice(0, 200));
        this.#break(new ProtocolError(`The process wrote a line that is no frame: ${excerpt}.${this.#tail()}`));
      }
    }
  }

  #frame(frame: Frame, size: number): void {
    if (!this.#hello) return this.#greet(frame);
    const request = frame.requestId === undefined ? undefined : this.#requests.get(frame.requestId);
    if (frame.uiEvent) this.#event(request, new FrameEvent(frame as EventFrameJson), size);
    else if (request) this.#answer(request, frame);
    else if (frame.requestId === undefined) this.#ofSession(frame);
  }

  #event(request: Request | undefined, event: FrameEvent, size: number): void {
    this.#lastEvent = event;
    this.#act(event);
    if (request) {
      request.event(event, size);
      if (request.waitingBytes > PAUSE_BYTES) this.#crowd(request);
    } else if (!event.requestId) {
      this.#options.onNotice?.(event as unknown as Event);
    }
  }

  #act(event: FrameEvent): void {
    switch (event.name) {
      case "ChatTextPatch":
      case "ChatReasoningPatch": {
        const patch = event.json as Patch;
        this.#shown.set(patch.messageId ?? "", patch);
        break;
      }
      case "FrontendToolCallRequested":
        void this.#runTool(event.payload as Payloads["FrontendToolCallRequested"]);
        break;
      case "ToolApprovalRequested":
        void this.#decide(event.payload as Payloads["ToolApprovalRequested"]);
        break;
      case "ChatToolResultReady":
        this.#over((event.payload as Payloads["ChatToolResultReady"]).toolCallId);
        break;
      case "ToolApprovalResolved":
        this.#over((event.payload as Payloads["ToolApprovalResolved"]).toolCallId + ":approval");
        break;
      case "StoreDegraded": {
        const { firstMissingOrdinal } = event.payload as Payloads["StoreDegraded"];
        // The ordinals from there on are given out again.
        if (firstMissingOrdinal) [this.#lastOrdinal, this.#lastEvent] = [firstMissingOrdinal - 1n, undefined];
        break;
      }
    }
  }

  #answer(request: Request, frame: Frame): void {
    if (frame.done) {
      this.#requests.delete(request.id);
      this.#abandoned.delete(request);
      if (request.isRun) this.#shown.clear();
      request.done(frame.done.status ?? "");
      this.#flow();
      if (this.#requests.size === 0) this.#process?.hold(false);
    } else if (frame.error) {
      request.fail(frame.error);
      if (frame.error.terminal) this.#fatal = errorOf(frame.error);
    } else if (frame.snapshot) {
      request.snapshot = frame.snapshot;
    }
  }

  #ofSession(frame: Frame): void {
    if (frame.snapshot) {
      this.initial = readSnapshot(frame.snapshot);
      this.#sessionId = frame.sessionId ?? "";
      if (this.initial.ordinal > this.#lastOrdinal) this.#lastOrdinal = this.initial.ordinal;
    } else if (frame.error) {
      const error = errorOf(frame.error);
      if (frame.error.terminal) this.#fatal = error;
      if (error instanceof StoreError) this.storeError = error;
      this.#options.onNotice?.(error);
    }
  }

  #greet(frame: Frame): void {
    const hello = frame.hello && read(HelloFrameSchema, frame.hello);
    if (hello?.protocol !== PROTOCOL) {
      const begins = hello ? `speaks ${hello.protocol}` : "does not begin with `hello`";
      return this.#break(new ProtocolError(`The process ${begins}; this package needs ${PROTOCOL}.${this.#tail()}`));
    }
    this.#hello = hello;
    this.#sessionId = frame.sessionId ?? "";
    const version = this.#capability("server-version");
    if (isOlder(version, SERVER_VERSION_MIN)) {
      const least = SERVER_VERSION_MIN.join(".");
      const message = `duologue ${version || "(unknown)"} is too old: this package needs ${least} or later.`;
      return this.#break(new VersionError(message));
    }
    this.#begun();
  }

  #overlong(line: Overlong): void {
    const error = new TooLong(`The server wrote a line of more than ${this.#options.lineBytesMax ?? LINE_BYTES_MAX} bytes.`);
    for (const request of [...this.#requests.values()]) {
      if (line.requestId !== undefined && line.requestId !== request.id) continue;
      request.error ??= error;
      if (request.isRun) this.#abandon(request);
    }
  }

  #crowd(request: Request): void {
    if (request.waitingBytes > QUEUE_BYTES_MAX) {
      request.error = new TooLong(`More than ${QUEUE_BYTES_MAX} bytes of events wait to be read.`);
      this.#abandon(request);
    }
    this.#flow();
  }

  /** Reads on, unless a stream is behind and nobody waits for anything else. */
  #flow(): void {
    const requests = [...this.#requests.values()];
    const isBehind = requests.some((request) => request.waitingBytes > PAUSE_BYTES);
    this.#isPaused = isBehind && requests.every((request) => request.isStreamed);
    this.#process?.pause(this.#isPaused);
  }

  // Tools and approvals

  async #runTool(call: Payloads["FrontendToolCallRequested"]): Promise<void> {
    const { toolCallId, toolName } = call;
    const signal = this.#begins(toolCallId);
    const tool = this.#tools.get(toolName);
    const result = tool
      ? await callTool(tool, call.input ?? {}, signal)
      : { status: "error", error: `There is no tool ${toolName}.` };
    if (signal.aborted) return;
    try {
      await this.request({ toolResult: { toolCallId, ...result } });
    } catch (error) {
      // The model has to know of a result that is too long; any other error means that the call does not wait.
      if (!(error instanceof TooLong)) return;
      await this.request({ toolResult: { toolCallId, status: "error", error: error.message } }).catch(() => undefined);
    }
  }

  async #decide(request: Payloads["ToolApprovalRequested"]): Promise<void> {
    const { toolCallId } = request;
    const signal = this.#begins(toolCallId + ":approval");
    const { approve, approveTimeoutMs = 3_600_000 } = this.#options;
    const decision = await decide(approve, request, approveTimeoutMs, signal);
    if (signal.aborted) return;
    await this.request({ approve: { toolCallId, ...decision } }).catch(() => undefined);
  }

  #begins(id: string): AbortSignal {
    const controller = new AbortController();
    this.#work.set(id, controller);
    return controller.signal;
  }

  /** The run does not wait for a call or a decision any more. */
  #over(id: string): void {
    this.#work.get(id)?.abort();
    this.#work.delete(id);
  }

  // Small things

  #unseen({ id, json }: Entity): string {
    const text = typeof json.text === "string" ? json.text : "";
    const patch = this.#shown.get(id);
    if (!patch) return text;
    const isPiece = patch.mode === "CHAT_STREAM_PATCH_MODE_APPEND";
    const shown = Number((isPiece && patch.offset) || 0) + Buffer.byteLength(patch.text ?? "");
    return Buffer.from(text).subarray(shown).toString();
  }

  #tail(): string {
    const tail = this.stderr.trim().slice(-STDERR_CHARS);
    return tail ? ` It wrote to standard error: ${tail}` : "";
  }

  #capability(name: string): string {
    const word = this.#hello?.capabilities.find((word) => word.startsWith(name + "="));
    return word?.slice(name.length + 1) ?? "";
  }
}

/** The members of what goes with a prompt. */
function sentAlong({ attachments, resources }: PromptOptions): JsonObject {
  return {
    ...(attachments && { attachments: attachments.map((item) => (typeof item === "string" ? { url: item } : item)) }),
    ...(resources && { resources }),
  };
}

function readSnapshot(json: JsonObject): Snapshot {
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

function isOlder(version: string, least: number[]): boolean {
  const numbers = version.split(/[-+]/)[0]!.split(".").map(Number);
  if (numbers.some(Number.isNaN) || version === "") return true;
  const difference = least.map((number, at) => (numbers[at] ?? 0) - number).find((difference) => difference !== 0);
  return (difference ?? 0) < 0;
}
