import { AsyncResource } from "node:async_hooks";
import type { JsonObject } from "@bufbuild/protobuf";
import { errorOf, type DuologueError, type ErrorFrameJson } from "./errors.js";
import type { FrameEvent } from "./events.js";
import { Summary } from "./result.js";

// Slots of events that were taken which may stay in a queue, whatever waits there.
const TAKEN_MAX = 1024;

/**
 * A request in flight. The client's reader fills it; what waits for it may be dropped at any time. What comes after its
 * end, of a run that counts as stopped, changes nothing.
 */
export class Request {
  /** It has the model answer, and its result is made of its events. */
  readonly isPrompt: boolean;
  isStreamed = false;
  isSent = false;
  /** Acts in the context of whoever has sent it (`AsyncLocalStorage`): tools and approvals of its run have that. */
  within: <T>(act: () => T) => T = (act) => act();
  status = "";
  error: DuologueError | undefined;
  snapshot: JsonObject | undefined;
  waitingBytes = 0;
  readonly summary = new Summary();
  readonly finished: Promise<void>;
  /** Those before `#next` were taken. */
  #events: ([FrameEvent, number] | undefined)[] = [];
  #next = 0;
  #finish!: () => void;
  #waiters: (() => void)[] = [];

  constructor(
    readonly id: string,
    readonly body: JsonObject,
  ) {
    this.finished = new Promise((resolve) => (this.#finish = resolve));
    const edit = (body.edit ?? {}) as JsonObject;
    this.isPrompt = body.submit !== undefined || edit.regenerate !== undefined || edit.replace !== undefined;
  }

  /** It starts a run, or waits for one. A compaction is stopped like a run. */
  get isRun(): boolean {
    const { submit, compact } = this.body as { submit?: JsonObject; compact?: JsonObject };
    const isCompaction = compact !== undefined && !compact.decline;
    return this.body.edit !== undefined || isCompaction || (submit !== undefined && submit.targetRequestId === undefined);
  }

  /** It is sent now, by this caller. */
  sent(): void {
    this.isSent = true;
    this.within = AsyncResource.bind((act) => act());
  }

  event(event: FrameEvent, size: number): void {
    if (this.status) return;
    this.summary.apply(event);
    if (this.isStreamed) {
      this.#events.push([event, size]);
      this.waitingBytes += size;
      if (this.#waiters.length > 0) this.#wake();
    }
  }

  /** The next event that nobody has taken. */
  take(): FrameEvent | undefined {
    const next = this.#events[this.#next];
    if (!next) return undefined;
    this.#events[this.#next] = undefined;
    this.#next += 1;
    this.waitingBytes -= next[1];
    this.#shorten();
    return next[0];
  }

  dropEvents(): void {
    this.isStreamed = false;
    this.waitingBytes = 0;
    this.#clear();
  }

  fail(error: ErrorFrameJson): void {
    // The first error is the cause of those that follow.
    if (!this.status) this.error ??= errorOf(error);
  }

  done(status: string): void {
    if (this.status) return;
    this.status = status || "failed";
    this.#finish();
    this.#wake();
  }

  /** The request gets no `done` any more. */
  end(error: DuologueError): void {
    if (!this.status) this.error ??= error;
    this.done("failed");
  }

  /** Waits for an event or the end. */
  changed(): Promise<void> {
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  /** Somebody waits for its answer, or for the next of its events. */
  get isAwaited(): boolean {
    return !this.isStreamed || (this.waitingBytes === 0 && this.#waiters.length > 0);
  }

  /** Leaves out what was taken. A stream that lags never gets to the end of what waits. */
  #shorten(): void {
    if (this.#next === this.#events.length) {
      this.#clear();
    } else if (this.#next > TAKEN_MAX && 2 * this.#next > this.#events.length) {
      // Only then, so that each event is moved about once.
      this.#events.splice(0, this.#next);
      this.#next = 0;
    }
  }

  #clear(): void {
    this.#events = [];
    this.#next = 0;
  }

  #wake(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const wake of waiters) wake();
  }
}
