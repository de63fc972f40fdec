import { AnswerError, DuologueError } from "./errors.js";
import type { Event } from "./events.js";
import type { Request } from "./requests.js";
import type { Result } from "./result.js";
import { valueOf, type Schema } from "./schema.js";
import { textOf } from "./tools.js";

/** What a stream needs of its client. */
export interface Owner {
  send(request: Request): Promise<void>;
  /** Stops a run that nobody waits for any more. A run that has not been sent is not sent, here and below. */
  abandon(request: Request): void;
  /** Stops a run; where the server does not say that it has, it counts as stopped after a while. */
  stop(request: Request): void;
  /** Stops a run; settles when the server has heard it. */
  cancelRun(request: Request): Promise<void>;
  steerRun(requestId: string, prompt: string): Promise<Result>;
  flow(): void;
}

// An iteration that is neither finished nor left, but forgotten, stops its run.
const forgotten = new FinalizationRegistry<() => void>((leave) => leave());

/**
 * A run: iterate over it for its events, or await it for its result. It is sent when that begins. The iteration ends with
 * the run's `done`, and a run that failed throws its error there. Leaving the iteration early stops the run.
 */
export class Stream<T = unknown> implements AsyncIterable<Event>, PromiseLike<Result<T>> {
  readonly #owner: Owner;
  readonly #request: Request;
  readonly #answer: Schema<T> | undefined;
  readonly #signal: AbortSignal | undefined;
  #hasBegun = false;
  #result: Result<T> | undefined;
  /** What the run has come to, an error too. */
  #outcome: Promise<Result<T>> | undefined;

  /** @internal */
  constructor(owner: Owner, request: Request, options: { answer?: Schema<T>; signal?: AbortSignal } = {}) {
    this.#owner = owner;
    this.#request = request;
    this.#answer = options.answer;
    this.#signal = options.signal;
  }

  /** The id of the request. */
  get requestId(): string {
    return this.#request.id;
  }

  /** What the run came to, once it has ended. */
  get result(): Result<T> {
    if (!this.#result) throw new DuologueError("The run has not ended: iterate to the end, or await the stream.");
    return this.#result;
  }

  /** Stops this run, or withdraws it if it waits. The iteration goes on to its end, with the status `stopped`. */
  cancel(): Promise<void> {
    return this.#owner.cancelRun(this.#request);
  }

  /** Adds a prompt to this run, which joins it at its next boundary. `joined` is false if the run was over. */
  steer(prompt: string): Promise<Result> {
    return this.#owner.steerRun(this.requestId, prompt);
  }

  then<A = Result<T>, B = never>(
    onResult?: ((result: Result<T>) => A | PromiseLike<A>) | null,
    onError?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#finish().then(onResult, onError);
  }

  [Symbol.asyncIterator](): AsyncIterator<Event, undefined> {
    this.#request.isStreamed = true;
    const unlisten = this.#begin();
    const request = this.#request;
    const owner = this.#owner;
    const end = async () => {
      unlisten();
      await this.#end();
      return { value: undefined, done: true } as const;
    };
    let isOver = false;
    const leave = () => {
      if (isOver) return;
      isOver = true;
      unlisten();
      owner.abandon(request);
    };
    const waitFor = (request: Request) => {
      const changed = request.changed();
      owner.flow(); // Another stream may be behind.
      return changed;
    };
    const iterator: AsyncIterator<Event, undefined> = {
      async next() {
        for (;;) {
          const event = request.take();
          if (event) {
            owner.flow();
            return { value: event as unknown as Event, done: false };
          }
          if (isOver) return { value: undefined, done: true };
          if (request.status) {
            isOver = true;
            return end();
          }
          try {
            if (request.isSent) await waitFor(request);
            else await owner.send(request);
          } catch (error) {
            leave();
            throw error;
          }
        }
      },
      async return() {
        leave();
        return { value: undefined, done: true };
      },
    };
    forgotten.register(iterator, leave);
    return iterator;
  }

  async #finish(): Promise<Result<T>> {
    if (this.#outcome) return this.#outcome;
    const unlisten = this.#begin();
    try {
      await this.#owner.send(this.#request);
      await this.#request.finished;
    } finally {
      unlisten();
    }
    return this.#end();
  }

  /** Begins to listen to the signal; gives what ends that. */
  #begin(): () => void {
    if (this.#hasBegun) throw new DuologueError("A stream can be used once.");
    this.#hasBegun = true;
    const signal = this.#signal;
    if (!signal) return () => undefined;
    const stop = () => this.#owner.stop(this.#request);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
    return () => signal.removeEventListener("abort", stop);
  }

  #end(): Promise<Result<T>> {
    return (this.#outcome ??= this.#resultOrError());
  }

  async #resultOrError(): Promise<Result<T>> {
    const request = this.#request;
    const result = request.summary.finish(request.status) as Result<T>;
    this.#result = result;
    if (request.error) {
      if (request.error instanceof AnswerError) request.error.text = result.text;
      throw request.error;
    }
    if (this.#answer && result.values.length > 0) {
      try {
        result.value = await valueOf(this.#answer, result.values.at(-1));
      } catch (cause) {
        const error = new AnswerError("invalid_answer", `The answer is not what was asked for: ${textOf(cause)}`);
        error.text = result.text;
        throw error;
      }
    }
    return result;
  }
}
