import type { JsonObject } from "@bufbuild/protobuf";
import { Calls } from "./calls.js";
import {
  Closed,
  DuologueError,
  errorOf,
  ProcessEnded,
  ProtocolError,
  RequestError,
  StoreError,
  TooLong,
  type ErrorFrameJson,
} from "./errors.js";
import { FrameEvent, type Event, type EventFrameJson, type Payloads } from "./events.js";
import { checkHello, requestBytesMax } from "./hello.js";
import { Lines, Overlong } from "./lines.js";
import type { HelloFrame } from "./messages/pinocchio/chatapp/rpc/v1/rpc_pb.js";
import { commandLine, settled, type Options, type SettledOptions } from "./options.js";
import { Process } from "./process.js";
import { Request } from "./requests.js";
import type { Result } from "./result.js";
import { readSnapshot, type Snapshot } from "./snapshot.js";
import { Stream, type Owner } from "./stream.js";
import { after, within } from "./time.js";
import { descriptorOf, type Tool } from "./tools.js";

// Of later servers: each is asked for by itself, and may be unknown.
const NEWER_EXTENSIONS = ["tool-progress"];
const LINE_BYTES_MAX = 256 * 1024 * 1024;
const PAUSE_BYTES = 8 * 1024 * 1024;
const QUEUE_BYTES_MAX = 256 * 1024 * 1024;
// Half a character, as of a text that was cut: JSON.stringify writes it alone as an escape, which the server can't read.
const HALF = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g;
// What the program writes to standard error where nobody has chosen what answers.
const ECHO = "the built-in echo engine answers";
// The warning of that came: of one process it is enough, however many clients this has.
let hasWarned = false;
const STDERR_CHARS = 2000;
const START_MS = 30_000;
const CLOSE_MS = 5000;
const CANCEL_MS = 5000;

interface Frame {
  sessionId?: string;
  requestId?: string;
  hello?: JsonObject;
  snapshot?: JsonObject;
  uiEvent?: EventFrameJson["uiEvent"];
  error?: ErrorFrameJson;
  done?: { status?: string };
}

/** A patch of an answer or of its reasoning, as JSON has it. */
export interface Patch {
  messageId?: string;
  offset?: string;
  text?: string;
  mode?: string;
}

/** A process, its one reader, and the requests in flight. It is started again after its end with the same options. */
export class Connection implements Owner {
  failure: DuologueError | undefined;
  hello: HelloFrame | undefined;
  initial: Snapshot | undefined;
  sessionId = "";
  storeError: StoreError | undefined;
  tools: Map<string, Tool>;
  /** The last patch of each text of the active run that a stream has shown. */
  readonly shown = new Map<string, Patch>();
  readonly #calls: Calls;
  #numbers = 0;
  #process: Process | undefined;
  #fatal: RequestError | undefined;
  #begun!: () => void;
  #requests = new Map<string, Request>();
  /** Runs that are to stop, and have not yet. */
  #stopping = new Set<Request>();
  #shownBy: Request | undefined;
  /** The session has tools of an earlier program. */
  #hasEarlierTools = false;
  #isClosing = false;
  #isPaused = false;
  #lastEvent: FrameEvent | undefined;
  #lastOrdinal = 0n;

  readonly options: SettledOptions;

  constructor(options: Options) {
    this.options = settled(options);
    this.tools = new Map((options.tools ?? []).map((tool) => [tool.name, tool]));
    this.#calls = new Calls((body) => this.request(body), options.approve, options.approveTimeoutMs);
  }

  /** Starts the process, and checks what it is. */
  async start(): Promise<void> {
    const command = [this.options.binary, ...commandLine(this.options)];
    const lines = new Lines(this.options.lineBytesMax ?? LINE_BYTES_MAX);
    const begun = new Promise<void>((resolve) => (this.#begun = resolve));
    const { env, cwd } = this.options;
    // These are meant for scripts: a client needs all events, and programs print the patches of a stream one by one.
    const { DUOLOGUE_EVENTS: _events, DUOLOGUE_PATCH_MODE: _mode, ...inherited } = process.env;
    const child: Process = new Process(
      command,
      { env: { ...inherited, ...env }, cwd },
      {
        bytes: (chunk) => this.#process === child && this.#bytes(lines, chunk),
        end: (failure) => this.#process === child && this.#ended(child, failure),
        stderr: warn,
      },
    );
    this.#process = child;
    this.failure = this.#fatal = this.hello = undefined;
    this.#isClosing = this.#isPaused = this.#hasEarlierTools = false;
    this.#stopping.clear();
    try {
      const ms = this.options.startTimeoutMs ?? START_MS;
      const late = () => new ProtocolError(`${command[0]} did not begin within ${ms / 1000} s.${this.#tail()}`);
      await within(this.#begin(begun), ms, late);
    } catch (error) {
      await this.giveUp(error as DuologueError, child);
      throw error;
    }
  }

  /** Ends a process that can't be gone on with. */
  async giveUp(failure: DuologueError, process = this.#process): Promise<void> {
    // The client may have another by then.
    if (this.#process === process) this.#fail(failure);
    await process?.end(0);
    if (this.#process === process) this.#process = undefined;
  }

  async #begin(begun: Promise<void>): Promise<void> {
    await begun;
    if (this.failure) throw this.#fatal ?? this.failure;
    // The first answers: until then a wrong command line, or a store that can't be opened, would not be noticed.
    try {
      for (const name of NEWER_EXTENSIONS) await this.#enableIfKnown(name);
      const tools = [...this.tools.values()].map(descriptorOf);
      // Without tools of its own it takes back those of an earlier program: nobody would run them.
      if (tools.length > 0 || this.#hasEarlierTools) await this.request({ declareTools: { tools } });
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

  /** Stops what runs, and ends the process. */
  async close(): Promise<void> {
    const process = this.#process;
    if (!process) return;
    this.#isClosing = true;
    this.#calls.endAll();
    if (!this.failure) {
      for (const body of [{ cancel: { waiting: true } }, { cancel: {} }, { shutdown: {} }]) this.#tell(body);
    }
    await process.end(this.options.closeTimeoutMs ?? CLOSE_MS);
    this.#process = undefined;
    this.failure = undefined;
    this.#fail(closed());
  }

  /** Starts the process again after its end. */
  async restart(): Promise<void> {
    await this.#process?.end(this.options.closeTimeoutMs ?? CLOSE_MS);
    await this.start();
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  get ordinal(): bigint {
    const last = this.#lastEvent?.ordinal ?? 0n;
    return last > this.#lastOrdinal ? last : this.#lastOrdinal;
  }

  get stderr(): string {
    return this.#process?.stderr ?? "";
  }

  // Sending

  /** A request that has not been sent. */
  new(body: JsonObject): Request {
    return new Request(this.#id(), body);
  }

  /** Sends a request; settles when it has its `done`. */
  async request(body: JsonObject): Promise<JsonObject | undefined> {
    const request = this.new(body);
    await this.send(request);
    await request.finished;
    if (request.error) throw request.error;
    return request.snapshot;
  }

  async send(request: Request): Promise<void> {
    if (request.isRun && this.options.onBusy !== "queue") await this.#settle(request);
    // It was stopped before it was sent; or two wait for the first event of one stream.
    if (request.status || request.isSent) return;
    if (this.failure) throw this.failure;
    const line = JSON.stringify({ requestId: request.id, ...request.body }).replace(HALF, "$1\\ufffd");
    const bytes = Buffer.byteLength(line);
    const limit = requestBytesMax(this.hello);
    if (bytes > limit) throw new TooLong(`The request has ${bytes} bytes, and the server takes ${limit}.`);
    this.#requests.set(request.id, request);
    request.sent();
    this.#process?.hold(true);
    this.#flow();
    this.#process?.write(line + "\n");
  }

  abandon(request: Request): void {
    request.dropEvents();
    if (this.#marksStopping(request)) this.#tell({ cancel: { targetRequestId: request.id } });
    this.#flow();
  }

  stop(request: Request): void {
    if (!this.#marksStopping(request)) return;
    this.#tell({ cancel: { targetRequestId: request.id } });
    this.#flow();
    const end = after(this.options.cancelTimeoutMs ?? CANCEL_MS, () => this.#countAsStopped(request));
    void request.finished.then(end);
  }

  async cancelRun(request: Request): Promise<void> {
    if (this.#marksStopping(request)) await this.#cancel({ targetRequestId: request.id });
  }

  /** Stops the active run; false if there is none. */
  cancel(): Promise<boolean> {
    for (const request of this.#requests.values()) if (request.isRun) this.#stopping.add(request);
    return this.#cancel({});
  }

  /** Has the next prompt wait for the end of a run that the server has to stop; false if it has none to stop. */
  #marksStopping(request: Request): boolean {
    if (!request.isSent) request.done("stopped");
    if (request.status || this.failure) return false;
    this.#stopping.add(request);
    return true;
  }

  #countAsStopped(request: Request): void {
    // Its run may go on, and what nobody takes would hold up the frames of others.
    request.dropEvents();
    request.done("stopped");
    this.#flow();
  }

  async steerRun(targetRequestId: string, prompt: string): Promise<Result> {
    return new Stream(this, this.new({ submit: { prompt, targetRequestId } }));
  }

  flow(): void {
    if (this.#isPaused) this.#flow();
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

  /** Waits for the end of runs that are to stop: a prompt before that would be refused. */
  async #settle(request: Request): Promise<void> {
    if (this.#stopping.size === 0) return;
    const ends = Promise.all([...this.#stopping].map((run) => run.finished));
    const late = () => new Error("late");
    const either = Promise.race<unknown>([ends, request.finished]);
    await within(either, this.options.cancelTimeoutMs ?? CANCEL_MS, late).catch(() => undefined);
  }

  #ended(child: Process, failure: Error | undefined): void {
    // As it was told to.
    if (this.#isClosing) return this.#fail(closed());
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
    this.failure ??= failure;
    this.#calls.endAll();
    const requests = [...this.#requests.values()];
    this.#requests.clear();
    this.#stopping.clear();
    for (const request of requests) request.end(this.failure);
    this.#begun();
  }

  // Receiving

  #bytes(lines: Lines, chunk: Buffer): void {
    for (const line of lines.feed(chunk)) {
      if (this.failure) return;
      if (line instanceof Overlong) {
        this.#overlong(line);
        continue;
      }
      try {
        this.#frame(frameOf(line), line.length);
      } catch {
        const excerpt = JSON.stringify(line.slice(0, 200));
        this.#break(new ProtocolError(`The process wrote a line that is no frame: ${excerpt}.${this.#tail()}`));
      }
    }
  }

  #frame(frame: Frame, size: number): void {
    if (!this.hello) return this.#greet(frame);
    const request = frame.requestId === undefined ? undefined : this.#requests.get(frame.requestId);
    if (frame.uiEvent) this.#event(request, new FrameEvent(frame as EventFrameJson), size);
    else if (request) this.#answer(request, frame);
    else if (frame.requestId === undefined) this.#ofSession(frame);
  }

  #event(request: Request | undefined, event: FrameEvent, size: number): void {
    this.#lastEvent = event;
    this.#act(event, request);
    if (request) {
      request.event(event, size);
      if (request.waitingBytes > PAUSE_BYTES) this.#crowd(request);
      // Nobody else would get it.
      if (!request.isPrompt && !request.isStreamed) this.#notice(event as unknown as Event);
    } else if (!event.requestId) {
      this.#notice(event as unknown as Event);
    }
  }

  #act(event: FrameEvent, request: Request | undefined): void {
    if (event.name === "ChatTextPatch" || event.name === "ChatReasoningPatch") {
      if (!request?.isStreamed) return;
      const patch = event.json as Patch;
      this.shown.set(patch.messageId ?? "", patch);
      this.#shownBy = request;
    } else if (event.name === "StoreDegraded") {
      const { firstMissingOrdinal } = event.payload as Payloads["StoreDegraded"];
      // The ordinals from there on are given out again.
      if (firstMissingOrdinal) [this.#lastOrdinal, this.#lastEvent] = [firstMissingOrdinal - 1n, undefined];
    } else if (event.name === "FrontendToolManifestUpdated" && !event.requestId) {
      this.#hasEarlierTools = (event.payload as Payloads["FrontendToolManifestUpdated"]).tools.length > 0;
    } else if (request) {
      request.within(() => this.#calls.see(event, this.tools));
    } else {
      this.#calls.see(event, this.tools);
    }
  }

  #answer(request: Request, frame: Frame): void {
    if (frame.done) {
      this.#requests.delete(request.id);
      this.#stopping.delete(request);
      if (request === this.#shownBy) this.shown.clear(); // And not a prompt that was refused meanwhile.
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
      this.sessionId = frame.sessionId ?? "";
      if (this.initial.ordinal > this.#lastOrdinal) this.#lastOrdinal = this.initial.ordinal;
    } else if (frame.error) {
      const error = errorOf(frame.error);
      if (frame.error.terminal) this.#fatal = error;
      if (error instanceof StoreError) this.storeError = error;
      this.#notice(error);
    }
  }

  #notice(notice: Event | DuologueError): void {
    try {
      this.options.onNotice?.(notice);
    } catch (error) {
      // As that of an event listener: nobody here can catch it, and the frame is no worse for it.
      queueMicrotask(() => {
        throw error;
      });
    }
  }

  #greet(frame: Frame): void {
    try {
      this.hello = checkHello(frame.hello, this.#tail());
    } catch (error) {
      if (!(error instanceof DuologueError)) throw error;
      return this.#break(error);
    }
    this.sessionId = frame.sessionId ?? "";
    this.#begun();
  }

  #overlong(line: Overlong): void {
    const error = new TooLong(`The server wrote a line of more than ${this.options.lineBytesMax ?? LINE_BYTES_MAX} bytes.`);
    for (const request of [...this.#requests.values()]) {
      if (line.requestId !== undefined && line.requestId !== request.id) continue;
      request.error ??= error;
      if (request.isRun) this.abandon(request);
    }
  }

  #crowd(request: Request): void {
    if (request.waitingBytes > QUEUE_BYTES_MAX) {
      request.error = new TooLong(`More than ${QUEUE_BYTES_MAX} bytes of events wait to be read.`);
      this.abandon(request);
    }
    this.#flow();
  }

  /** Reads on, unless a stream is behind and nobody waits for anything, be it for the end of the client or of a run. */
  #flow(): void {
    const requests = [...this.#requests.values()];
    const isBehind = requests.some((request) => request.waitingBytes > PAUSE_BYTES);
    const isEnding = this.#isClosing || this.#stopping.size > 0;
    this.#isPaused = isBehind && !isEnding && !requests.some((request) => request.isAwaited);
    this.#process?.pause(this.#isPaused);
  }

  #tail(): string {
    const tail = this.stderr.trim().slice(-STDERR_CHARS);
    return tail ? ` It wrote to standard error: ${tail}` : "";
  }
}

/** The frame of a line; throws where it is not even an object. */
function frameOf(line: string): Frame {
  const json = JSON.parse(line) as Frame | null;
  if (typeof json !== "object" || json === null || Array.isArray(json)) throw new TypeError("no object");
  return json;
}

function closed(): Closed {
  return new Closed("The client was closed.");
}

function warn(stderr: string): void {
  if (hasWarned || !stderr.includes(ECHO)) return;
  hasWarned = true;
  process.emitWarning(
    "no provider is configured, so the built-in echo engine of duologue answers with what it was asked: run " +
      '`duologue profiles init`, or set the key of a provider; args: ["--require-provider"] makes this an error, ' +
      'and engine: "echo" has no warning',
    "DuologueWarning",
  );
}
