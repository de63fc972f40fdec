import { resolve } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import type { DuologueError } from "./errors.js";
import type { Event } from "./events.js";
import { findBinary } from "./process.js";
import type { Schema } from "./schema.js";
import type { Approve, Tool } from "./tools.js";

const EXTENSIONS =
  "approvals,client-tools,edit,history,retries,settings,steer,store,structured,switch-model,targeted-cancel," +
  "timing,tool-servers,usage";

/** What a client may be told when it starts. */
export interface Options {
  /** The program; otherwise `DUOLOGUE_BIN`, the package's own, or the one on the `PATH`. */
  binary?: string;
  /** Where the conversation is stored; otherwise where `DUOLOGUE_STORE` says. */
  store?: string;
  /** Its name there: the same one goes on with it. */
  session?: string;
  /**
   * What answers. Where no provider is configured it is the built-in engine, and a warning of the process says so;
   * `args: ["--require-provider"]` makes that a `ConfigError`.
   */
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
  /**
   * Gets events of the session that belong to no request, or to one that has no result and is no stream, as
   * `ModelSwitched`, and errors of its store. What it throws is an uncaught error of the program, as that of an event
   * listener is; the conversation goes on.
   */
  onNotice?: (notice: Event | DuologueError) => void;
  /** `reject` (the default) makes a prompt during a run the error `Busy`; with `queue` it waits for its turn. */
  onBusy?: "reject" | "queue";
  /** Variables in addition to those of this program, of which `DUOLOGUE_EVENTS` and `DUOLOGUE_PATCH_MODE` are left out. */
  env?: Record<string, string>;
  /** The folder of the process; by default that which this program has at the start, also for a process that is started later. */
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

/** Where the conversation is stored: the option, or the variable that the process has. */
export function storeOf({ store, env }: Options): string | undefined {
  return store ?? ((env?.DUOLOGUE_STORE ?? process.env.DUOLOGUE_STORE) || undefined);
}

/** Options with the path of the program. */
export type SettledOptions = Options & { binary: string };

/** The options with the program and the folder of the process, which is to have the same when it is started again. */
export function settled(options: Options): SettledOptions {
  const found = { ...options, binary: findBinary(options.binary) };
  try {
    return { ...found, cwd: resolve(options.cwd ?? "") };
  } catch {
    return found; // The folder of this program is gone.
  }
}

/** The command line of the process, without the program. */
export function commandLine(options: Options): string[] {
  const { engine, model, profile, system, store, session } = options;
  const named = Object.entries({ engine, model, profile, system, store, session });
  return [
    "rpc",
    `--on-busy=${options.onBusy ?? "reject"}`,
    "--final-snapshot=none",
    "--approval=ask",
    `--extensions=${EXTENSIONS}`,
    ...named.filter(([, value]) => value !== undefined).map(([name, value]) => `--${name}=${value}`),
    ...(options.args ?? []),
  ];
}

/** The members of what goes with a prompt. */
export function sentAlong({ attachments, resources }: PromptOptions): JsonObject {
  return {
    ...(attachments && { attachments: attachments.map(attachmentOf) }),
    ...(resources && { resources }),
  };
}

// What the server takes for a URL, and not for a path with a colon.
const URL = /^(?:(?:https?|data|file):|[a-z0-9+.-]+:\/\/)/i;

/** An attachment whose path is one from the folder of this program, which the process may have left or never had. */
function attachmentOf(item: string | JsonObject): JsonObject {
  if (typeof item === "string") return { url: URL.test(item) || item.trim() === "" ? item : resolve(item) };
  return typeof item.url === "string" ? { ...item, ...attachmentOf(item.url) } : item;
}
