// Servers that make it difficult, ends of all kinds, and errors.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import * as duologue from "duologue";
import { Duologue, type Event } from "duologue";
import { FrameEvent } from "#internal/events";
import { Lines, Overlong } from "#internal/lines";
import { Request } from "#internal/requests";
import { BINARY, CLOCK, DIFFICULT, difficult, gone, hold, inFolder, real, ROOT, unreachable, until, withProvider, withScript, WITHOUT_PROVIDER } from "./support.js";

const LINES_OF_A_RUN = 10;
const LONG = 64 * 1024 * 1024;
const STARTS_AT_ONCE = 16;
// Lines of the difficult server that are no frames.
const KINDS_OF_GARBAGE = 7;
const CLOSE_MS = 5000;
// A program that has nothing left to do ends in less.
const EXIT_MS = 10_000;
// More events than may wait of a stream that is behind.
const PAUSED_AT = 20_000n;

// Patches of 10,000 bytes, more than may wait of a stream that is behind.
const LONG_ANSWER = 2000;

const textOf = (event: Event) => (event.name === "ChatTextPatch" ? [event.payload.text] : []);

test("halves of lines", async () => {
  await hold(difficult("halves"), async (chat) => assert.equal((await chat.run("x")).text, "Hello, wörld!"));
});

test("long lines", async () => {
  await hold(difficult(`long:${LONG}`), async (chat) => assert.equal((await chat.run("x")).text.length, LONG));
});

test("a line past the limit fails its run alone", async () => {
  await hold(difficult(`long:${LONG / 16}`, { lineBytesMax: LONG / 64 }), async (chat) => {
    await assert.rejects(chat.run("x"), duologue.TooLong);
    await assert.rejects(chat.run("x"), duologue.TooLong);
    await chat.snapshot();
  });
});

test("lines of all sizes in chunks of all sizes", () => {
  const sizes = [...Array(20).keys()];
  const text = Buffer.from(sizes.map((size) => "x".repeat(size) + "\n").join("") + "rest");
  const expected = sizes.map((size) => (size <= 10 ? "x".repeat(size) : undefined));
  for (let size = 1; size <= text.length; size += 1) {
    const lines = new Lines(10);
    const found: (string | undefined)[] = [];
    for (let at = 0; at < text.length; at += size) {
      for (const line of lines.feed(text.subarray(at, at + size))) found.push(line instanceof Overlong ? undefined : line);
    }
    assert.deepEqual(found, expected, `chunks of ${size}`);
  }
});

test("what is newer than the client is kept", async () => {
  await hold(difficult("unknown"), async (chat) => {
    const stream = chat.stream("x");
    const events: Event[] = [];
    for await (const event of stream) events.push(event);
    const unknown = events.flatMap((event) => (event.name === "Unknown" ? [[event.type, event.json.mood]] : []));
    assert.deepEqual(unknown, [["example.mood.v9.MoodChanged", "curious"]]);
    const patch = events.find((event) => event.name === "ChatTextPatch");
    assert.deepEqual(patch?.json.novelty, { deep: [1, 2] });
    assert.equal(patch?.json.mode, "CHAT_STREAM_PATCH_MODE_SIDEWAYS");
    assert.equal(patch?.payload.mode, 0);
    assert.equal(stream.result.text, "Hello, wörld!");
    const { entities } = await chat.snapshot();
    assert.deepEqual(entities.map((entity) => [entity.kind, entity.payload?.$typeName.split(".").pop()]), [
      ["ChatMessage", "ChatMessageEntity"],
      ["Mood", undefined],
    ]);
    assert(chat.hello.capabilities.includes("telepathy"));
  });
});

test("frames of others reach nobody", async () => {
  await hold(difficult("leftovers"), async (chat) => {
    for (const prompt of ["x", "y", "z"]) {
      const texts: string[] = [];
      for await (const event of chat.stream(prompt)) texts.push(...textOf(event));
      assert.deepEqual(texts, ["Hello, ", "wörld!"]);
    }
  });
});

test("a flood of standard error", async () => {
  await hold(difficult("flood"), async (chat) => {
    assert.equal((await chat.run("x")).status, "ok");
    assert(chat.stderr.length <= 16 * 1024);
  });
});

test("text among the frames is an error", async () => {
  await hold(difficult("garbage"), async (chat) => {
    await assert.rejects(chat.run("x"), (error: Error) => {
      return error instanceof duologue.ProtocolError && error.message.includes("INFO this is no frame");
    });
  });
  for (let number = 1; number < KINDS_OF_GARBAGE; number += 1) {
    await hold(difficult(`garbage:${number}`), (chat) => assert.rejects(chat.run("x"), /a line that is no frame/));
  }
});

test("what the callback of notices throws does not end the conversation", async () => {
  // In a program of its own: here an exception that nobody catches fails the test.
  const { child } = await program(`
    process.exitCode = 1;
    const uncaught = [];
    process.on("uncaughtException", (error) => uncaught.push(error.code ?? error.message));
    const onNotice = (notice) => {
      throw notice instanceof Error ? notice : new Error(notice.name);
    };
    const chat = await Duologue.start({ binary: ${JSON.stringify(DIFFICULT)}, env: { DIFFICULT: "notices" }, onNotice });
    console.log(chat.pid);
    const texts = [(await chat.run("x")).text, (await chat.run("y")).text];
    await chat.close();
    const expected = ["Hello, wörld!", "Hello, wörld!", "ToolServerChanged", "store_failed", "ToolServerChanged", "store_failed"];
    if (String([...texts, ...uncaught]) === String(expected)) process.exitCode = 0;`);
  if (child.exitCode === null) await once(child, "exit");
  assert.equal(child.exitCode, 0);
});

/** Waits until the reader has stopped, because a stream is behind: nothing arrives any more. */
async function untilPaused(chat: Duologue): Promise<void> {
  for (let [before, still] = [0n, 0]; before < 1000n || still < 20; await sleep(5)) {
    still = chat.ordinal === before ? still + 1 : 0;
    before = chat.ordinal;
  }
}

test("a stream that is awaited does not wait for one that is not read", { timeout: 60_000 }, async () => {
  await hold(difficult(`long-first:${LONG_ANSWER}`, { onBusy: "queue" }), async (chat) => {
    const first = chat.stream("x")[Symbol.asyncIterator]();
    await first.next();
    await sleep(0);
    const texts: string[] = [];
    for await (const event of chat.stream("y")) texts.push(...textOf(event));
    assert.deepEqual(texts, ["Hello, ", "wörld!"]);
    let rest = 0;
    for (let next = await first.next(); !next.done; next = await first.next()) rest += textOf(next.value).length;
    assert.equal(rest, LONG_ANSWER);
  });
});

const follow = async (stream: duologue.Stream) => {
  for await (const _ of stream);
  return stream.result.status;
};

test("the next prompt waits for a run that was stopped", { timeout: 60_000 }, async () => {
  await hold(difficult("slow-stop"), async (chat) => {
    const ways: ((stream: duologue.Stream, controller: AbortController) => unknown)[] = [
      (_, controller) => controller.abort(),
      (stream) => stream.cancel(),
      () => chat.cancel(),
    ];
    for (const [at, stop] of ways.entries()) {
      const [controller, before] = [new AbortController(), chat.ordinal];
      const stream = chat.stream("on", { signal: controller.signal });
      const following = follow(stream);
      await until(() => chat.ordinal > before);
      await stop(stream, controller);
      const next = chat.run("next");
      await sleep(0);
      await chat.snapshot(); // Only now the run ends.
      assert.equal((await next).text, `prompt ${2 * at + 2}`);
      assert.equal(await following, "stopped");
    }
  });
});

test("a cancel before the prompt is sent", { timeout: 60_000 }, async () => {
  await hold(difficult("slow-stop"), async (chat) => {
    for await (const _ of chat.stream("on")) break;
    const stream = chat.stream("y");
    const following = follow(stream);
    await stream.cancel();
    assert.equal(await following, "stopped");
    const controller = new AbortController();
    const run = chat.run("z", { signal: controller.signal });
    controller.abort();
    assert.equal((await run).status, "stopped");
    const left = chat.stream("z")[Symbol.asyncIterator]();
    const waiting = left.next();
    await left.return?.();
    await chat.snapshot();
    assert.equal((await waiting).done, true);
    const never = chat.stream("not yet");
    await never.cancel();
    assert.equal((await never).status, "stopped");
    assert.equal((await chat.run("next")).text, "prompt 2");
  });
});

test("two that wait for the first event send one prompt", { timeout: 60_000 }, async () => {
  await hold(difficult("slow-stop"), async (chat) => {
    for await (const _ of chat.stream("on")) break; // The next prompt waits for the end of this run.
    const events = chat.stream("x")[Symbol.asyncIterator]();
    const firsts = [events.next(), events.next()];
    await sleep(0);
    await chat.snapshot();
    assert.deepEqual((await Promise.all(firsts)).map(({ done }) => done), [false, false]);
    while (!(await events.next()).done);
    assert.equal((await chat.run("next")).text, "prompt 3"); // That of the stream was the second.
  });
});

test("a time that no timer has is no limit", { timeout: 60_000 }, async () => {
  const warnings: Error[] = [];
  const warn = (warning: Error) => void warnings.push(warning);
  process.on("warning", warn); // Of a timer that ends at once.
  const forever = 2 ** 31;
  const times = { startTimeoutMs: forever, closeTimeoutMs: Infinity, cancelTimeoutMs: forever, approveTimeoutMs: forever };
  await hold(difficult("slow-stop", times), async (chat) => {
    const controller = new AbortController();
    const before = chat.ordinal;
    const following = follow(chat.stream("on", { signal: controller.signal }));
    await until(() => chat.ordinal > before);
    controller.abort();
    const next = chat.run("next");
    await sleep(0);
    await chat.snapshot();
    assert.equal(await following, "stopped");
    assert.equal((await next).text, "prompt 2");
  });
  const get_time = duologue.tool({ name: "get_time", parameters: {}, timeoutMs: forever, run: () => sleep(0, "12:00") });
  const calls = [{ tools: [{ name: "get_time", arguments: {} }] }, { text: "It is noon." }];
  await withScript(calls, (option) =>
    hold(real([option], { ...times, tools: [get_time] }), async (chat) => {
      assert.equal((await chat.run("x")).toolCalls[0]?.result, '{"result":"12:00"}');
    }),
  );
  process.off("warning", warn);
  assert.deepEqual(warnings, []);
});

test("values are those of the last call", async () => {
  await hold(difficult("calls"), async (chat) => {
    const { values, value } = await chat.run("x", { answer: { type: "object" } });
    assert.deepEqual([values, value], [[{ call: 2 }], { call: 2 }]);
  });
});

test("a stream that is not read is left in the pipe", async () => {
  await hold(difficult("endless"), async (chat) => {
    for await (const event of chat.stream("x")) if (event.name === "ChatTextPatch") break;
    const events = chat.stream("x")[Symbol.asyncIterator]();
    await events.next();
    await untilPaused(chat);
    // A request that waits for its answer gets it, whoever is behind.
    await chat.snapshot();
    await events.return?.();
    assert.equal((await chat.snapshot()).entities.length, 1);
  });
});

test("a stream that lags keeps nothing that it has given", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const used = () => (collect(), process.memoryUsage().heapUsed);
  const request = new Request("r", {});
  request.isStreamed = true;
  const put = () => request.event(new FrameEvent({ uiEvent: {} }), 1);
  put();
  const before = used();
  // One event always waits.
  for (let number = 0; number < 1_000_000; number += 1) {
    put();
    request.take();
  }
  assert(used() - before < 4 * 1024 * 1024, `it holds ${used() - before} bytes`);
  assert.equal(request.waitingBytes, 1);
});

test("requests past the limit of the server are not sent", async () => {
  await hold(real(["--max-request-bytes=1000"]), async (chat) => {
    await assert.rejects(chat.run("x".repeat(1000)), duologue.TooLong);
    assert.equal((await chat.run("x")).status, "ok");
  });
});

test("an end at every point", async () => {
  for (const scenario of ["die", "die-half"]) {
    for (let number = 0; number < LINES_OF_A_RUN + 2; number += 1) {
      const use = async (chat: Duologue) => {
        await chat.run("x");
        await chat.run("y");
      };
      await assert.rejects(hold(difficult(`${scenario}:${number}`), use), (error: Error) => {
        assert(error instanceof duologue.ProcessEnded, `${scenario}:${number}: ${error}`);
        assert.equal(error.status, 9);
        assert.match(error.stderr, /the difficult server has died/);
        return error.message.includes("the difficult server has died");
      });
    }
  }
});

test("a server that never answers", async () => {
  for (const scenario of ["silent", "mute"]) {
    await assert.rejects(Duologue.start(difficult(scenario, { startTimeoutMs: 300 })), /did not begin within/);
  }
});

test("a run that can not be stopped", async () => {
  await hold(difficult("stubborn", { cancelTimeoutMs: 10 }), async (chat) => {
    for await (const event of chat.stream("x")) if (event.name === "ChatTextPatch") break;
    // The prompt waits for the end of the run as long as it should, and the answer of the server counts then.
    await assert.rejects(chat.run("y"), duologue.Busy);
  });
});

test("a run that counts as stopped holds up no other", { timeout: 60_000 }, async () => {
  await hold(difficult("stubborn", { cancelTimeoutMs: 10 }), async (chat) => {
    const controller = new AbortController();
    const stream = chat.stream("x", { signal: controller.signal });
    for await (const event of stream) if (event.name === "ChatTextPatch") controller.abort();
    assert.equal(stream.result.status, "stopped");
    // It goes on, with more than may wait of a stream.
    await until(() => chat.ordinal > PAUSED_AT);
    const next = chat.stream("y");
    await assert.rejects(next[Symbol.asyncIterator]().next(), duologue.Busy);
  });
});

test("a run that counts as stopped stays stopped", async () => {
  await hold(difficult("stubborn", { cancelTimeoutMs: 10 }), async (chat) => {
    const controller = new AbortController();
    const stream = chat.stream("x", { signal: controller.signal });
    for await (const event of stream) {
      if (event.name !== "ChatTextPatch") continue;
      controller.abort();
      await sleep(100);
      process.kill(chat.pid!, "SIGKILL");
      await assert.rejects(chat.snapshot(), duologue.ProcessEnded);
    }
    assert.equal(stream.result.status, "stopped");
  });
});

test("hello is checked", async () => {
  const start = (scenario: string) => Duologue.start(difficult(scenario));
  await assert.rejects(start("old"), (error: Error) => error instanceof duologue.VersionError && /0\.0\.1 is too old/.test(error.message));
  await assert.rejects(start("foreign"), /speaks example\.other\.v1/);
  await assert.rejects(start("no-hello"), /does not begin with `hello`/);
});

test("closing goes as far as it has to", async () => {
  const chat = await Duologue.start(real());
  const pid = chat.pid!;
  await chat.close();
  await gone(pid);
  await assert.rejects(chat.run("x"), duologue.Closed);
  // It hears neither the shutdown, nor the end of its input, nor SIGTERM.
  await assert.rejects(Duologue.start(difficult("deaf", { startTimeoutMs: 500, closeTimeoutMs: 50 })), duologue.ProtocolError);
});

test("a signal to the group of the program does not reach the process", async () => {
  await hold(real(), async (chat) => {
    const groupOf = (pid: number) => readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[2];
    assert.notEqual(groupOf(chat.pid!), groupOf(process.pid));
  });
});

test("closing stops what runs", async () => {
  const chat = await Duologue.start(real(["--echo-delay-ms=60000"]));
  const run = chat.run("x");
  await until(() => chat.ordinal >= 3n);
  await chat.close();
  assert.equal((await run).status, "stopped");
});

test("closing stops a run whose stream is behind", async () => {
  const chat = await Duologue.start(difficult("endless"));
  const stream = chat.stream("x");
  const events = stream[Symbol.asyncIterator]();
  await events.next();
  await untilPaused(chat);
  const begin = Date.now();
  await chat.close();
  assert(Date.now() - begin < CLOSE_MS, "the process had to be made to end");
  while (!(await events.next()).done);
  assert.equal(stream.result.status, "stopped");
});

test("a run that closing does not stop is closed", async () => {
  const chat = await Duologue.start(difficult("stubborn"));
  const closed = assert.rejects(chat.run("x"), duologue.Closed);
  await until(() => chat.ordinal > 3n);
  await chat.close();
  await closed;
});

const crashAndGoOn = (fields: string) =>
  inFolder((folder) => {
    const options = { store: join(folder, "chat.db"), session: "ada" };
    return hold(real(["--echo-delay-ms=5", `--patch-fields=${fields}`], options), async (chat) => {
      const shown: string[] = [];
      const follow = async () => {
        for await (const event of chat.stream("word ".repeat(1000))) {
          shown.push(...textOf(event));
          if (shown.length === 20) process.kill(chat.pid!, "SIGKILL");
        }
      };
      await assert.rejects(follow(), (error) => error instanceof duologue.ProcessEnded && error.signal === "SIGKILL");
      await assert.rejects(chat.run("next"), duologue.ProcessEnded);
      const changes = await chat.reconnect();
      const whole = (await chat.history()).at(-1)!;
      const rest = changes.filter((change) => change.entity.id === whole.id).map((change) => change.text);
      assert.equal(shown.join("") + rest.join(""), whole.json.text);
      assert.equal(whole.json.status, "stopped");
      assert(!changes.some((change) => change.entity.json.role === "user"));
      assert.equal((await chat.run("hello")).status, "ok");
    });
  });

test("nothing is shown twice after a reconnect", async () => {
  for (const fields of ["full", "lean"]) await crashAndGoOn(fields);
});

// It ends in the first answer, after the first of its patches, which is event 4.
const SEEN = 4n;
type Dying = (chat: Duologue, become: (scenario: string) => void) => Promise<void>;
const dying = (scenario: string, use: Dying, more: duologue.Options = {}) => {
  const env = { DIFFICULT: scenario };
  const options = { binary: DIFFICULT, env, store: "chat.db", session: "ada", ...more };
  return hold(options, (chat) => use(chat, (scenario) => void (env.DIFFICULT = scenario)));
};

test("a reconnect gives the text of a run that showed none", () =>
  dying("die:7", async (chat, become) => {
    await assert.rejects(chat.run("x"), duologue.ProcessEnded);
    become("resumed");
    assert.deepEqual((await chat.reconnect()).map((change) => change.text), [`Hello, since ${SEEN}`]);
  }));

test("a reconnect that fails loses nothing", () =>
  dying("die:7", async (chat, become) => {
    const shown: string[] = [];
    const follow = async () => {
      for await (const event of chat.stream("x")) shown.push(...textOf(event));
    };
    await assert.rejects(follow(), duologue.ProcessEnded);
    // In turn: it can't read the session, ends before it has said all of itself, and does not speak the protocol.
    for (const scenario of ["unreadable", "die:2", "foreign"]) {
      become(scenario);
      await assert.rejects(chat.reconnect(), duologue.DuologueError);
      await assert.rejects(chat.run("x"), duologue.DuologueError);
    }
    become("resumed");
    const changes = await chat.reconnect();
    assert.deepEqual([...shown, ...changes.map((change) => change.text)], ["Hello, ", `since ${SEEN}`]);
    assert.equal((await chat.run("x")).text, "Hello, wörld!");
  }));

test("reconnects at once are one", { timeout: 60_000 }, () =>
  dying("die:7", async (chat, become) => {
    await assert.rejects(chat.run("x"), duologue.ProcessEnded);
    become("resumed");
    const [first, second] = await Promise.all([chat.reconnect(), chat.reconnect()]);
    assert.deepEqual(first.map((change) => change.text), [`Hello, since ${SEEN}`]);
    assert.equal(first, second);
    assert.equal((await chat.run("x")).text, "Hello, wörld!");
    await assert.rejects(chat.reconnect(), /The process runs/);
  }));

// A program that is a while in ending: at its prompt it writes what is no frame, and hears nothing any more.
const SLOW_TO_END = `#!/bin/sh
echo $$ >> "$PIDS"
[ "$DIFFICULT" = deaf ] || exec "$SERVER"
trap "" TERM
echo '{"hello":{"protocol":"pinocchio.chatapp.rpc.v1","capabilities":["server-version=0.1.0"]}}'
read -r enable && echo '{"requestId":"js-1","done":{"status":"ok"}}'
read -r submit && echo no frame
exec sleep 60
`;

test("closing during a reconnect leaves nothing running", () =>
  inFolder(async (folder) => {
    const [binary, pids] = [join(folder, "server"), join(folder, "pids")];
    writeFileSync(binary, SLOW_TO_END, { mode: 0o755 });
    const env = { DIFFICULT: "deaf", PIDS: pids, SERVER: DIFFICULT };
    const chat = await Duologue.start({ binary, env, store: "chat.db", session: "ada" });
    await assert.rejects(chat.run("x"), duologue.ProtocolError);
    env.DIFFICULT = "resumed";
    const reconnect = assert.rejects(chat.reconnect(), duologue.Closed);
    await chat.close();
    await reconnect;
    await assert.rejects(chat.run("y"), duologue.Closed);
    for (const pid of readFileSync(pids, "utf8").trim().split("\n")) await gone(Number(pid));
  }));

test("a refused prompt does not forget what was shown", () =>
  dying("die-asked", async (chat, become) => {
    const events = chat.stream("x")[Symbol.asyncIterator]();
    const shown: string[] = [];
    while (shown.length === 0) shown.push(...textOf((await events.next()).value!));
    await assert.rejects(chat.run("y"), duologue.Busy);
    await assert.rejects(chat.snapshot(), duologue.ProcessEnded);
    become("resumed");
    const changes = await chat.reconnect();
    assert.deepEqual([...shown, ...changes.map((change) => change.text)], ["Hello, ", `since ${SEEN}`]);
  }));

test("a prompt during a reconnect that fails", { timeout: 60_000 }, () =>
  dying(
    "die:7",
    async (chat, become) => {
      await assert.rejects(chat.run("x"), duologue.ProcessEnded);
      const { pid } = chat;
      become("silent");
      const reconnect = chat.reconnect();
      const late = assert.rejects(reconnect, /did not begin within/);
      await until(() => chat.pid !== pid);
      await assert.rejects(chat.run("y"), duologue.ProtocolError);
      await late;
      await assert.rejects(chat.run("z"), duologue.ProtocolError);
    },
    { startTimeoutMs: 3000 },
  ));

const killed = async (chat: Duologue) => {
  process.kill(chat.pid!, "SIGKILL");
  await assert.rejects(chat.run("lost"), duologue.ProcessEnded);
};

test("a store that the environment names", () =>
  inFolder(async (folder) => {
    const before = process.env.DUOLOGUE_STORE;
    const store = join(folder, "chat.db");
    try {
      for (const [own, outer] of [[{ DUOLOGUE_STORE: store }, ""], [{}, store]] as const) {
        process.env.DUOLOGUE_STORE = outer;
        await hold(real([], { session: "ada", env: own }), async (chat) => {
          await chat.run("one");
          const seen = (await chat.history()).length;
          const copy = await chat.fork();
          assert.equal((await copy.history().finally(() => copy.close())).length, seen);
          await killed(chat);
          await chat.reconnect();
          assert.equal((await chat.history()).length, seen);
        });
      }
      await hold(real([], { env: { DUOLOGUE_STORE: "" } }), (chat) => assert.rejects(chat.fork(), /Only a conversation with a store/));
    } finally {
      if (before === undefined) delete process.env.DUOLOGUE_STORE;
      else process.env.DUOLOGUE_STORE = before;
    }
  }));

test("a program that changes its folder", () =>
  inFolder(async (folder) => {
    const before = process.cwd();
    mkdirSync(join(folder, "inner"));
    symlinkSync(BINARY, join(folder, "program"));
    try {
      for (const [cwd, store] of [[{}, "chat.db"], [{ cwd: "inner" }, "inner/chat.db"]] as const) {
        process.chdir(folder);
        await hold(real([], { binary: "./program", store: "chat.db", session: "ada", ...cwd }), async (chat) => {
          await chat.run("one");
          process.chdir("/");
          await killed(chat);
          await chat.reconnect();
          assert.equal((await chat.history()).length, 2);
          const copy = await chat.fork();
          assert.equal((await copy.history().finally(() => copy.close())).length, 2);
        });
        assert(existsSync(join(folder, store)));
      }
    } finally {
      process.chdir(before);
    }
  }));

test("the error of a copy is that of what failed", () =>
  inFolder(async (folder) => {
    const binary = join(folder, "server");
    // A copy has a process that ends at once.
    const text = `#!/bin/sh
case "$1$*" in
  sessions*) echo copy;;
  *session=copy*) echo "it is gone" >&2; exit 9;;
  *) exec ${DIFFICULT};;
esac
`;
    writeFileSync(binary, text, { mode: 0o755 });
    await hold({ binary, store: "chat.db", session: "ada" }, async (chat) => {
      await assert.rejects(chat.fork(), (error) => error instanceof duologue.ProcessEnded && error.stderr.includes("it is gone"));
      writeFileSync(binary, "#!/bin/sh\necho no such session >&2; exit 1\n");
      await assert.rejects(chat.fork(), (error) => error instanceof duologue.StoreError && error.message === "no such session");
      rmSync(binary);
      await assert.rejects(chat.fork(), duologue.NotInstalled);
    });
  }));

test("only a stored session goes on", async () => {
  await hold(real(), async (chat) => assert.rejects(chat.reconnect(), duologue.DuologueError));
});

/** Runs a program that prints the id of the process that it holds. */
async function program(text: string) {
  const url = new URL("../../dist/index.js", import.meta.url).href;
  const code = `import { Duologue } from ${JSON.stringify(url)};\n${text}`;
  const args = ["--input-type=module", "-e", code, BINARY];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  const [pid] = (await once(child.stdout, "data")) as [Buffer];
  return { child, pid: Number(pid.toString()) };
}

test("the process ends with a program that is killed", async () => {
  const { child, pid } = await program(`
    const chat = await Duologue.start({ binary: process.argv[1], engine: "echo", args: ["--echo-delay-ms=60000"] });
    for await (const event of chat.stream("x")) if (event.name === "ChatProviderCallStarted") console.log(chat.pid);`);
  child.kill("SIGKILL");
  await gone(pid);
});

test("the process ends with a program that does not close it", async () => {
  const { child, pid } = await program(`
    const chat = await Duologue.start({ binary: process.argv[1], engine: "echo" });
    console.log(chat.pid);`);
  if (child.exitCode === null) await once(child, "exit");
  assert.equal(child.exitCode, 0);
  await gone(pid);
});

test("a tool or an approval that never ends does not keep the program", async () => {
  const never = "() => new Promise(() => {})";
  const tools = `tools: [{ name: "get_time", parameters: { type: "object" }, run: ${never} }]`;
  const approve = `approve: ${never}`;
  const call = { tools: [{ name: "get_time", arguments: { city: "Berlin" } }] };
  await withScript([call], async (script) => {
    const cases = [[tools, "FrontendToolCallRequested", []], [approve, "ToolApprovalRequested", ["--mcp", CLOCK]]] as const;
    for (const [options, asked, args] of cases) {
      const { child } = await program(`
        const args = ${JSON.stringify([script, ...args])};
        const chat = await Duologue.start({ binary: process.argv[1], engine: "echo", args, ${options} });
        for await (const event of chat.stream("x")) if (event.name === "${asked}") break;
        await chat.close();
        console.log(0);`);
      try {
        if (child.exitCode === null) await once(child, "exit", { signal: AbortSignal.timeout(EXIT_MS) });
      } finally {
        child.kill();
      }
    }
  });
});

test("busy", async () => {
  await hold(real(["--echo-delay-ms=60000"]), async (chat) => {
    for await (const _ of chat.stream("x")) {
      await assert.rejects(chat.run("y"), duologue.Busy);
      break;
    }
  });
});

test("another session", async () => {
  await hold(real(), async (chat) => {
    await chat.run("x");
    await assert.rejects(chat.request({ sessionId: "another", snapshot: {} }), duologue.SessionMismatch);
  });
});

test("errors of a provider", async () => {
  await withProvider(429, { "retry-after": "90" }, async (address) => {
    const options = { binary: BINARY, engine: "openai", model: "m", args: [`--base-url=${address}`] };
    await hold({ ...options, env: { OPENAI_API_KEY: "not-a-secret" } }, (chat) =>
      assert.rejects(chat.run("x"), (error) => {
        return error instanceof duologue.ProviderError && error.errorClass === "rate_limited" && error.retryAfter === 90;
      }),
    );
  });
  await hold(unreachable(), (chat) =>
    assert.rejects(chat.run("x"), (error) => {
      return error instanceof duologue.ProviderError && error.errorClass === "network" && error.retryAfter === undefined;
    }),
  );
});

test("errors of tools", async () => {
  await hold(real(), async (chat) => {
    await assert.rejects(chat.request({ toolResult: { toolCallId: "unknown" } }), duologue.ToolError);
    const bad = { name: "no name", parameters: {}, run: () => 0 };
    await assert.rejects(chat.setTools([bad]), duologue.ToolError);
  });
});

test("errors of a store", () =>
  inFolder((folder) => {
    const options = real([], { store: join(folder, "chat.db"), session: "ada" });
    return hold(options, async () => {
      const isLocked = (error: unknown) => error instanceof duologue.StoreError && error.code === "session_locked";
      await assert.rejects(Duologue.start(options), isLocked);
    });
  }));

test("errors of a command line", async () => {
  const isNamed = (error: unknown) => error instanceof duologue.ConfigError && error.message.includes("--nonsense");
  // Many at once, so that some processes have ended before their first frame is read.
  const starts = Array.from({ length: STARTS_AT_ONCE }, () => Duologue.start(real(["--nonsense"])));
  await Promise.all(starts.map((start) => assert.rejects(start, isNamed)));
});

test("a relative path to the program and another folder", async () => {
  const [folder, named] = [process.cwd(), process.env.DUOLOGUE_BIN];
  process.chdir(join(ROOT, "clients"));
  process.env.DUOLOGUE_BIN = "./difficult_server.py";
  try {
    for (const binary of [{ binary: "./difficult_server.py" }, {}]) {
      await hold({ ...binary, cwd: "/", env: { DIFFICULT: "normal" } }, async (chat) => {
        assert.equal((await chat.run("x")).status, "ok");
      });
    }
  } finally {
    process.chdir(folder);
    if (named === undefined) delete process.env.DUOLOGUE_BIN;
    else process.env.DUOLOGUE_BIN = named;
  }
});

test("an echo nobody asked for is a warning", async () => {
  const warnings: Error[] = [];
  const note = (warning: Error) => void warnings.push(warning);
  process.on("warning", note);
  try {
    const unchosen = { binary: WITHOUT_PROVIDER, env: { DUOLOGUE_BIN: BINARY } };
    for (const options of [unchosen, unchosen, { ...unchosen, engine: "echo" }]) {
      const { text } = await hold(options, (chat) => chat.run("x"));
      assert.equal(text, "Turn 1. You said: x");
    }
    await assert.rejects(Duologue.start({ ...unchosen, args: ["--require-provider"] }), duologue.ConfigError);
    const about = warnings.filter(({ name }) => name === "DuologueWarning").map(({ message }) => message);
    assert.equal(about.length, 1);
    assert.match(about[0]!, /the built-in echo engine of duologue answers/);
  } finally {
    process.off("warning", note);
  }
});

test("a folder that is not there", () =>
  inFolder(async (folder) => {
    // Also a file, a link to itself, and one in a folder that may not be read.
    const [used, loop, locked] = [join(folder, "used"), join(folder, "loop"), join(folder, "locked")];
    symlinkSync(loop, loop);
    mkdirSync(join(locked, "inner"), { recursive: true });
    chmodSync(locked, 0);
    const folders = ["/nowhere", "/etc/passwd", loop, ...(process.getuid?.() === 0 ? [] : [join(locked, "inner")])];
    const isNamed = (error: Error, cwd: string) =>
      error instanceof duologue.DuologueError &&
      !(error instanceof duologue.NotInstalled) &&
      error.message.includes(`can't be run in ${cwd}, which is no folder that can be used`);
    for (const cwd of folders) await assert.rejects(Duologue.start(real([], { cwd })), (error: Error) => isNamed(error, cwd));
    // A copy is made by another process.
    mkdirSync(used);
    await hold(real([], { cwd: used, store: join(folder, "chat.db"), session: "ada" }), async (chat) => {
      rmdirSync(used);
      writeFileSync(used, "");
      await assert.rejects(chat.fork(), (error: Error) => isNamed(error, used));
    });
    chmodSync(locked, 0o700);
  }));

test("not installed", async () => {
  await assert.rejects(Duologue.start({ binary: "/nowhere/duologue" }), /the option `binary`/);
  const { PATH, DUOLOGUE_BIN } = process.env;
  try {
    process.env.PATH = "/nowhere";
    delete process.env.DUOLOGUE_BIN;
    await assert.rejects(Duologue.start(), (error: Error) => error instanceof duologue.NotInstalled && /not on the PATH/.test(error.message));
    process.env.DUOLOGUE_BIN = "/nowhere/duologue";
    await assert.rejects(Duologue.start(), /DUOLOGUE_BIN/);
    process.env.DUOLOGUE_BIN = BINARY;
    await (await Duologue.start({ engine: "echo" })).close();
  } finally {
    process.env.PATH = PATH;
    if (DUOLOGUE_BIN === undefined) delete process.env.DUOLOGUE_BIN;
    else process.env.DUOLOGUE_BIN = DUOLOGUE_BIN;
  }
});
