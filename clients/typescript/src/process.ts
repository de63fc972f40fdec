import { spawn, type ChildProcess } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join, resolve } from "node:path";
import { DuologueError, NotInstalled } from "./errors.js";
import { after } from "./time.js";

const STDERR_BYTES = 16 * 1024;
const TERM_MS = 2000;

/** The program: the option, `DUOLOGUE_BIN`, the package's own, or the one on the `PATH`. */
export function findBinary(named: string | undefined): string {
  if (named !== undefined) return mustRun(named, "the option `binary`");
  const variable = process.env.DUOLOGUE_BIN;
  if (variable) return mustRun(variable, "the variable DUOLOGUE_BIN");
  const own = ownBinary();
  if (own && canRun(own)) return own;
  const found = onPath("duologue");
  if (found) return resolve(found);
  throw new NotInstalled(
    "duologue is not installed: it is not in this package and not on the PATH. " +
      "Install it, or name the program with the option `binary` or the variable DUOLOGUE_BIN.",
  );
}

function mustRun(name: string, source: string): string {
  const found = name.includes("/") ? (canRun(name) ? name : undefined) : onPath(name);
  if (!found) throw new NotInstalled(`${name}, which ${source} names, is not a program that can be run.`);
  return resolve(found); // The process may get another folder than that of this program.
}

/** The program in the package of this platform. */
function ownBinary(): string | undefined {
  try {
    return createRequire(import.meta.url).resolve(`@duologue/${process.platform}-${process.arch}/duologue`);
  } catch {
    return undefined;
  }
}

function onPath(name: string): string | undefined {
  const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder);
  return folders.map((folder) => join(folder, name)).find(canRun);
}

function canRun(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** The error of a program that could not be started: the system does not say whether it is missing or its folder. */
export function notRun(program: string, cwd: string | undefined, error: Error): DuologueError {
  if (cwd !== undefined && !isFolder(cwd)) {
    return new DuologueError(`${program} can't be run in ${cwd}, which is no folder that can be used.`);
  }
  return new NotInstalled(`${program} can't be run: ${error.message}`);
}

function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false; // Also one in a folder that may not be read.
  }
}

/** Starts a process. Of some errors of the system, as of a folder that is a file, `spawn` has no event: it throws them. */
function started(program: string, args: string[], options: { env: NodeJS.ProcessEnv; cwd: string | undefined }): ChildProcess {
  try {
    // In a group of its own: Ctrl-C at the terminal is for this program, which decides what stops.
    return spawn(program, args, { stdio: "pipe", detached: true, ...options });
  } catch (error) {
    const isOfSystem = (error as NodeJS.ErrnoException).syscall !== undefined;
    throw isOfSystem ? notRun(program, options.cwd, error as Error) : error;
  }
}

// One listener for all clients: what is still there when this program ends, ends too.
const running = new Set<ChildProcess>();
process.on("exit", () => running.forEach((child) => child.kill("SIGTERM")));

/** A process and its three pipes. */
export class Process {
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  #stderr = Buffer.alloc(0);
  #hasEnded = false;

  constructor(
    command: string[],
    options: { env: NodeJS.ProcessEnv; cwd: string | undefined },
    on: { bytes: (chunk: Buffer) => void; end: (failure?: Error) => void; stderr: (tail: string) => void },
  ) {
    const [program = "", ...args] = command;
    const child = started(program, args, options);
    this.#child = child;
    running.add(child);
    this.#ended = new Promise((resolve) => {
      const end = (failure?: Error) => {
        if (this.#hasEnded) return;
        this.#hasEnded = true;
        running.delete(child);
        resolve();
        on.end(failure);
      };
      child.on("close", () => end());
      child.on("error", (error) => {
        if (child.pid === undefined) end(notRun(program, options.cwd, error));
      });
    });
    child.stdout!.on("data", on.bytes);
    child.stderr!.on("data", (chunk: Buffer) => {
      // A copy: a part would hold the memory of the whole.
      this.#stderr = Buffer.from(Buffer.concat([this.#stderr, chunk]).subarray(-STDERR_BYTES));
      on.stderr(this.stderr);
    });
    // A process that has ended reads no more; its end is reported elsewhere.
    for (const pipe of [child.stdin!, child.stdout!, child.stderr!]) pipe.on("error", () => undefined);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get stderr(): string {
    return this.#stderr.toString();
  }

  get status(): number | null {
    return this.#child.exitCode;
  }

  get signal(): string | null {
    return this.#child.signalCode;
  }

  write(line: string): void {
    if (!this.#hasEnded && this.#child.stdin!.writable) this.#child.stdin!.write(line);
  }

  /** Leaves output in the pipe, so that the server waits; or goes on reading. */
  pause(isPaused: boolean): void {
    if (isPaused) this.#child.stdout!.pause();
    else if (this.#child.stdout!.isPaused()) this.#child.stdout!.resume();
  }

  /** Whether this program goes on because of the process: only while a request waits for its answer. */
  hold(isHeld: boolean): void {
    const pipes = [this.#child.stdin, this.#child.stdout, this.#child.stderr] as unknown as Partial<ChildProcess>[];
    for (const handle of [this.#child, ...pipes]) {
      if (isHeld) handle.ref?.();
      else handle.unref?.();
    }
  }

  /** Closes standard input, waits, and then makes the process end: SIGTERM, SIGKILL. */
  async end(ms: number): Promise<void> {
    this.hold(true);
    this.pause(false);
    this.#child.stdin!.end();
    for (const [signal, wait] of [[undefined, ms], ["SIGTERM", TERM_MS], ["SIGKILL", TERM_MS]] as const) {
      if (signal && !this.#hasEnded) this.#child.kill(signal);
      if (await this.#hasEndedWithin(wait)) return;
    }
  }

  async #hasEndedWithin(ms: number): Promise<boolean> {
    if (this.#hasEnded) return true;
    let end = () => {};
    const timeout = new Promise<void>((resolve) => (end = after(ms, resolve)));
    await Promise.race([this.#ended, timeout]);
    end();
    return this.#hasEnded;
  }
}
