const RETRYABLE = new Set(["timeout", "network"]);
// The detail of a provider's failure after which the same prompt may succeed, as the exit status 75 of the program has it.
const PASSING = /^provider: (?:status|code) (?:408|409|429|5(?!01|05)\d\d)(?!\d)/;
// A detail of the class `rate_limited` that is about an account without credit: waiting does not help.
const OUT_OF_CREDIT = new RegExp(
  "^rate_limited: (?:status|code) 402(?!\\d)|insufficient_quota|billing_hard_limit_reached|billing_not_active|" +
    "exceeded_current_quota|credit balance is too low|insufficient[_ ]balance",
  "i",
);
const CLASSES = new Set([...RETRYABLE, "rate_limited", "malformed_stream", "auth", "context_overflow", "provider", "tool", "config", "aborted", "internal"]);

// By whose presence in a message a text counts as said: a message has a long text cut.
const SAID_CHARS = 100;

/** Base of all errors of this package. */
export class DuologueError extends Error {
  constructor(message: string) {
    super(message);
    this.name = new.target.name;
  }
}

/** There is no program `duologue` where it was looked for; trying again does not help. */
export class NotInstalled extends DuologueError {}

/** The program does not speak the protocol, or has stopped doing so. */
export class ProtocolError extends DuologueError {}

/** The program is too old for this package. */
export class VersionError extends ProtocolError {}

/** A line is longer than a limit: of the server for a request, of the client for a frame. */
export class TooLong extends DuologueError {}

/** The client was closed, before the request was sent or before the process had answered it. */
export class Closed extends DuologueError {}

/** The process ended before it had answered; `Duologue.reconnect` goes on from the store. */
export class ProcessEnded extends DuologueError {
  constructor(
    message: string,
    /** Exit status; null if a signal ended the process. */
    readonly status: number | null,
    /** The signal that ended it. */
    readonly signal: string | null,
    /** The end of its standard error. */
    readonly stderr: string,
  ) {
    super(message);
  }
}

/**
 * The server refused a request, or its run failed. `code` is for programs. The message is for people: it is the server's
 * own, which `summary` is alone, and what its `detail` says besides.
 */
export class RequestError extends DuologueError {
  readonly summary: string;

  constructor(
    readonly code: string,
    message: string,
    readonly detail: string = "",
  ) {
    super(withDetail(message || code, detail));
    this.summary = message;
  }
}

/**
 * The message, and in parentheses what it does not have of the detail: parts after a class, up to a rest that is said, or
 * else all of it.
 */
function withDetail(message: string, detail: string): string {
  const lower = message.toLowerCase();
  const isSaid = (text: string) => lower.includes(text.slice(0, SAID_CHARS).toLowerCase());
  // What the detail of a failed run begins with.
  const [start = "", name = ""] = /^([a-z_]+):(?: |$)/.exec(detail) ?? [];
  const added: string[] = [];
  for (let rest = detail.slice(start.length).trim(); !isSaid(rest); ) {
    const end = name === "" ? -1 : rest.indexOf(": ");
    const part = end < 0 ? rest : rest.slice(0, end).trim();
    if (!isSaid(part)) added.push(part);
    rest = end < 0 ? "" : rest.slice(end + 2).trim();
  }
  if (added.length === 0) return message;
  if (name) added.unshift(name);
  return `${message} (${added.join(": ")})`;
}

/** A run is active, and the client was started with `onBusy: "reject"`. */
export class Busy extends RequestError {}

/** The request names another session than the process holds. */
export class SessionMismatch extends RequestError {}

/** The model could not answer. */
export class ProviderError extends RequestError {
  /** Class of the failure, as `rate_limited`. */
  readonly errorClass: string;
  /** The same prompt may succeed later. */
  readonly isRetryable: boolean;
  /** The wait in seconds that the provider has asked for, where it is too long for the server's own retries. */
  readonly retryAfter: number | undefined;

  constructor(code: string, message: string, detail = "") {
    super(code, message, detail);
    const word = detail.split(":", 1)[0] ?? "";
    this.errorClass = CLASSES.has(word) ? word : "internal";
    this.isRetryable = isRetryable(this.errorClass, detail);
    const wait = /requests a wait of (\d+) s/.exec(message);
    this.retryAfter = wait ? Number(wait[1]) : undefined;
  }
}

function isRetryable(errorClass: string, detail: string): boolean {
  if (errorClass === "rate_limited") return !OUT_OF_CREDIT.test(detail);
  return RETRYABLE.has(errorClass) || PASSING.test(detail);
}

/** The command line, a file, a key or a model is wrong; trying again does not help. */
export class ConfigError extends ProviderError {}

/** A list of tools, or a result, is not what the server can take; or a run ended because of its tools. */
export class ToolError extends RequestError {}

/** The conversation can't be stored or read, or another process holds it (`session_locked`). */
export class StoreError extends RequestError {}

/** The model has answered, but not with what was asked for. */
export class AnswerError extends RequestError {
  /** Its answer. */
  text = "";
}

/** The members of an `error` frame. */
export interface ErrorFrameJson {
  code?: string;
  message?: string;
  detail?: string;
  terminal?: boolean;
}

/** The error that an `error` frame stands for. */
export function errorOf({ code = "", message = "", detail = "" }: ErrorFrameJson): RequestError {
  switch (code) {
    case "session_busy":
      return new Busy(code, message, detail);
    case "session_mismatch":
      return new SessionMismatch(code, message, detail);
    case "store_failed":
    case "session_locked":
    case "snapshot_failed":
      return new StoreError(code, message, detail);
    case "invalid_tools":
    case "unknown_tool_call":
      return new ToolError(code, message, detail);
    case "invalid_answer":
      return new AnswerError(code, message, detail);
    case "run_failed":
    case "engine_init_failed":
      if (detail.startsWith("config:")) return new ConfigError(code, message, detail);
      if (detail.startsWith("tool:")) return new ToolError(code, message, detail);
      return new ProviderError(code, message, detail);
    default: // also the codes of later versions
      return new RequestError(code, message, detail);
  }
}
