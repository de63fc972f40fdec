// What the tests share: the program, the difficult server, and its options.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { Duologue, type Options } from "duologue";

export const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
export const BINARY = process.env.DUOLOGUE_BIN ?? join(ROOT, "target/debug/duologue");
export const DIFFICULT = join(ROOT, "clients/difficult_server.py");
export const WITHOUT_PROVIDER = join(ROOT, "clients/without_provider");
export const CLOCK = `python3 ${join(ROOT, "examples/clock.py")}`;
const WAIT_MS = 30_000;

type Use<T> = (chat: Duologue) => Promise<T>;

/** Holds a conversation, and ends it. */
export async function hold<T>(options: Options, use: Use<T>): Promise<T> {
  const chat = await Duologue.start(options);
  try {
    return await use(chat);
  } finally {
    await chat.close();
  }
}

/** Options of the real program with its built-in engine. */
export function real(args: string[] = [], options: Options = {}): Options {
  return { binary: BINARY, engine: "echo", args, ...options };
}

/** Options of the real program whose provider can't be reached. */
export function unreachable(): Options {
  return { binary: BINARY, engine: "openai", model: "m", args: ["--base-url=http://127.0.0.1:9", "--retries=0"] };
}

/** Options of the difficult server. */
export function difficult(scenario: string, options: Options = {}): Options {
  return { binary: DIFFICULT, env: { DIFFICULT: scenario }, ...options };
}

export async function inFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "duologue-"));
  try {
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** An option that has the built-in engine play these calls of a model. */
export function withScript<T>(calls: object[], use: (option: string) => Promise<T>): Promise<T> {
  return inFolder((folder) => {
    const path = join(folder, "script.jsonl");
    writeFileSync(path, calls.map((call) => JSON.stringify(call) + "\n").join(""));
    return use(`--echo-script=${path}`);
  });
}

/** The address of a provider that refuses every request. */
export async function withProvider<T>(status: number, headers: object, use: (address: string) => Promise<T>): Promise<T> {
  const server = createServer((request, response) => {
    request.resume().on("end", () => response.writeHead(status, { ...headers }).end("{}"));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

function isRunning(pid: number): boolean {
  try {
    // One that has ended and waits for its parent does not run.
    return !/\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

export async function gone(pid: number): Promise<void> {
  for (const begin = Date.now(); isRunning(pid); await sleep(10)) {
    assert(Date.now() - begin < WAIT_MS, `the process ${pid} still runs`);
  }
}

/** Gives other work its turn until `is` holds. */
export async function until(is: () => boolean): Promise<void> {
  while (!is()) await new Promise((resolve) => setImmediate(resolve));
}
