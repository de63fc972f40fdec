// Conversations with the real program.
import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { test } from "node:test";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { AnswerError, Duologue, ProcessEnded, ProviderError, RequestError, tool, type Approve, type Event, type EventOf, type Options } from "duologue";
import { CLOCK, difficult, hold, inFolder, real, ROOT, unreachable, withScript } from "./support.js";

const CALLS = [
  { text: "Let me look.", tools: [{ name: "get_time", arguments: { city: "Berlin" } }] },
  { text: "It is noon." },
];
const never = () => new Promise<never>(() => undefined);
const anything = { type: "object" };

test("a run has a result", async () => {
  await hold(real(["--echo-reasoning"]), async (chat) => {
    const result = await chat.run("hello");
    assert.deepEqual([result.status, result.text], ["ok", "Turn 1. You said: hello"]);
    assert.equal(result.reasoning, "This is turn 1. I repeat what I was told.");
    assert.deepEqual([result.finishClass, result.usage?.uncountedCalls], ["completed", 1]);
  });
});

test("a stream has typed events and ends at its done", async () => {
  await hold(real(), async (chat) => {
    const stream = chat.stream("hello");
    const events: Event[] = [];
    for await (const event of stream) events.push(event);
    const texts = events.flatMap((event) => (event.name === "ChatTextPatch" ? [event.payload.text] : []));
    assert.equal(texts.join(""), "Turn 1. You said: hello");
    assert.deepEqual([events[0]?.name, events.at(-1)?.name], ["ChatUserMessageAccepted", "ChatRunFinished"]);
    assert.deepEqual(events.slice(0, 3).map((event) => event.ordinal), [1n, 2n, 3n]);
    assert.deepEqual([...new Set(events.map((event) => event.requestId))], [stream.requestId]);
    assert.equal(stream.result.text, "Turn 1. You said: hello");
  });
});

test("events of the environment are not filtered", async () => {
  Object.assign(process.env, { DUOLOGUE_EVENTS: "ChatRun*", DUOLOGUE_PATCH_MODE: "snapshot" });
  const texts: string[] = [];
  try {
    await hold(real(["--echo-delay-ms=1"]), async (chat) => {
      for await (const event of chat.stream("hello")) if (event.name === "ChatTextPatch") texts.push(event.payload.text);
    });
  } finally {
    delete process.env.DUOLOGUE_EVENTS;
    delete process.env.DUOLOGUE_PATCH_MODE;
  }
  assert.equal(texts.join(""), "Turn 1. You said: hello");
});

test("text with half a character is sent", async () => {
  const prompts = {
    ["hello 😀".slice(0, 7)]: "hello \ufffd",
    "\ude00 \ud83d\ud83d 😀": "\ufffd \ufffd\ufffd 😀",
    // The text of an escape is none.
    "\\ud83d \\\\ud83d \\\ud83d": "\\ud83d \\\\ud83d \\\ufffd",
  };
  for (const [prompt, sent] of Object.entries(prompts)) {
    await hold(real(), async (chat) => assert.equal((await chat.run(prompt)).text, `Turn 1. You said: ${sent}`));
  }
  const get = tool({ name: "get", parameters: anything, run: () => ({ "caf\udce9": "\ud83d" }) });
  await withScript([{ tools: [{ name: "get", arguments: {} }] }, { text: "I see." }], (option) =>
    hold(real([option], { tools: [get] }), async (chat) => {
      assert.equal((await chat.run("x")).toolCalls[0]?.result, '{"caf\ufffd":"\ufffd"}');
    }),
  );
});

test("requests in flight get their own frames", async () => {
  await hold(real(["--echo-delay-ms=1"], { onBusy: "queue" }), async (chat) => {
    let second: Promise<{ text: string }> | undefined;
    let text = "";
    for await (const event of chat.stream("one")) {
      if (event.name !== "ChatTextPatch") continue;
      text += event.payload.text;
      second ??= chat.run("two");
      assert.equal((await chat.snapshot()).entities[0]?.json.text, "one");
    }
    assert.equal(text, "Turn 1. You said: one");
    assert.equal((await second)?.text.split("\n")[0], "Turn 2. You said: two");
  });
});

test("leaving a stream stops its run and the next prompt works", async () => {
  await hold(real(["--echo-delay-ms=20"]), async (chat) => {
    for await (const event of chat.stream("one ".repeat(1000))) if (event.name === "ChatTextPatch") break;
    const result = await chat.run("two");
    assert.equal(result.text.split("\n")[0], "Turn 2. You said: two");
    const statuses = (await chat.history()).map((entity) => entity.json.status);
    assert.deepEqual(statuses, ["accepted", "stopped", "accepted", "finished"]);
  });
});

test("an aborted signal stops its run, which is no error", async () => {
  await hold(real(["--echo-delay-ms=60000"], { onBusy: "queue" }), async (chat) => {
    const [first, second] = [new AbortController(), new AbortController()];
    const stream = chat.stream("one", { signal: first.signal });
    const waiting = chat.run("two", { signal: second.signal });
    for await (const event of stream) {
      if (event.name !== "ChatProviderCallStarted") continue;
      second.abort();
      assert.equal((await waiting).status, "stopped");
      first.abort();
    }
    assert.equal(stream.result.status, "stopped");
    assert.equal((await chat.run("three", { signal: AbortSignal.abort() })).status, "stopped");
    assert.equal(await chat.cancel(), false);
    assert.equal((await chat.history()).length, 1);
  });
});

test("a cancel is a status and no error", async () => {
  await hold(real(["--echo-delay-ms=60000"]), async (chat) => {
    for (const cancel of ["its own", "the session's"]) {
      const stream = chat.stream("one");
      for await (const event of stream) {
        if (event.name === "ChatProviderCallStarted") await (cancel === "its own" ? stream.cancel() : chat.cancel());
      }
      assert.equal(stream.result.status, "stopped");
    }
  });
});

test("steering joins the run", async () => {
  await withScript(CALLS, async (option) => {
    let steered: Promise<{ joined: boolean }> | undefined;
    const get_time = tool({
      name: "get_time",
      parameters: anything,
      async run() {
        steered = stream.steer("And in Oz?");
        await chat.snapshot(); // The server has read the prompt before it answers this.
        return "12:00";
      },
    });
    const chat = await Duologue.start(real([option], { tools: [get_time] }));
    const stream = chat.stream("What time is it?");
    await stream;
    assert.equal((await steered)?.joined, true);
    await chat.close();
  });
});

test("a failed run throws after its events", async () => {
  await hold(unreachable(), async (chat) => {
    const names: string[] = [];
    const stream = chat.stream("hello");
    await assert.rejects(
      async () => {
        for await (const event of stream) names.push(event.name);
      },
      (error) => error instanceof ProviderError && error.errorClass === "network" && error.isRetryable,
    );
    assert.equal(names.at(-1), "ChatRunFailed");
    // Whoever asks for its result, and whenever.
    const awaited = chat.stream("hello");
    for (const failed of [stream, awaited, awaited]) await assert.rejects(async () => failed, ProviderError);
  });
});

test("tools are functions", async () => {
  const getTime = tool({
    name: "get_time",
    description: "The local time in a city.",
    parameters: z.object({ city: z.string() }),
    run: async ({ city }) => ({ Berlin: "12:00" })[city],
  });
  await withScript(CALLS, (option) =>
    hold(real([option], { tools: [getTime] }), async (chat) => {
      const result = await chat.run("What time is it?");
      assert.equal(result.toolCalls[0]?.result, '{"result":"12:00"}');
      assert.deepEqual([result.text, result.texts], ["It is noon.", ["Let me look.", "It is noon."]]);
    }),
  );
});

test("a tool that throws or takes too long is a result", async () => {
  const nested = Array.from({ length: 200 }).reduce((value) => [value], 0 as unknown);
  const tools = [
    tool({ name: "broken", parameters: anything, run: () => { throw new Error("no such city"); } }),
    tool({ name: "nested", parameters: anything, run: () => nested }),
    tool({ name: "wordless", parameters: anything, run: () => { throw Object.create(null); } }),
    tool({ name: "empty", parameters: anything, run: () => ({ toJSON() { throw Object.create(null); } }) }),
    tool({ name: "slow", parameters: anything, timeoutMs: 10, run: never }),
    tool({ name: "unreadable", parameters: anything, run: () => 1n }),
    tool({ name: "picky", parameters: z.object({ city: z.number() }), run: () => "never" }),
  ];
  const calls = [{ tools: tools.map(({ name }) => ({ name, arguments: { city: "x" } })) }, { text: "I see." }];
  await withScript(calls, (option) =>
    hold(real([option], { tools }), async (chat) => {
      const { toolCalls } = await chat.run("x");
      const results = Object.fromEntries(toolCalls.map((call) => [call.name, call.result]));
      assert.deepEqual([...new Set(toolCalls.map((call) => call.status))], ["error"]);
      assert.equal(results.broken, "no such city");
      assert.equal(results.slow, "The tool took longer than 0.01 s.");
      for (const name of ["wordless", "empty"]) assert.match(results[name] ?? "", /a value of the type object/);
      assert.match(results.nested ?? "", /The server does not take the result/);
      assert.match(results.unreadable ?? "", /BigInt/);
      assert.match(results.picky ?? "", /expected number/);
    }),
  );
});

test("what a tool gives is what its JSON is", async () => {
  const values = { date: new Date(0), address: new URL("http://a/b"), list: { toJSON: () => [1] }, nothing: undefined, object: { toJSON: () => ({ a: 1 }) } };
  const tools = Object.entries(values).map(([name, value]) => tool({ name, parameters: anything, run: () => value }));
  const calls = [{ tools: tools.map(({ name }) => ({ name, arguments: {} })) }, { text: "I see." }];
  await withScript(calls, (option) =>
    hold(real([option], { tools }), async (chat) => {
      const { toolCalls } = await chat.run("x");
      assert.deepEqual([...new Set(toolCalls.map((call) => call.status))], ["success"]);
      assert.deepEqual(Object.fromEntries(toolCalls.map((call) => [call.name, JSON.parse(call.result)])), {
        date: { result: "1970-01-01T00:00:00.000Z" },
        address: { result: "http://a/b" },
        list: { result: [1] },
        nothing: { result: null },
        object: { a: 1 },
      });
    }),
  );
});

test("a tool ends with its run", async () => {
  const aborted = deferred();
  const slow = tool({
    name: "get_time",
    parameters: anything,
    run: (_, { signal }) => new Promise(() => signal.addEventListener("abort", () => aborted.resolve())),
  });
  await withScript(CALLS, (option) =>
    hold(real([option], { tools: [slow] }), async (chat) => {
      const stream = chat.stream("x");
      for await (const event of stream) if (event.name === "FrontendToolCallRequested") await stream.cancel();
      await aborted.promise;
      assert.equal(stream.result.status, "stopped");
    }),
  );
});

function deferred() {
  let resolve!: () => void;
  const promise = new Promise<void>((set) => (resolve = set));
  return { promise, resolve };
}

test("a tool has the context of its prompt", async () => {
  const user = new AsyncLocalStorage<string>();
  const whose = tool({ name: "whose", parameters: anything, run: async () => user.getStore() });
  const calls = [{ tools: ["whose", "get_time"].map((name) => ({ name, arguments: { city: "x" } })) }, { text: "I see." }];
  await withScript(calls, (option) =>
    hold(real([option, "--mcp", CLOCK], { tools: [whose], approve: () => `${user.getStore()} says no.` }), async (chat) => {
      for (const name of ["Ada", "Bob"]) {
        const { toolCalls } = await user.run(name, () => chat.run("x"));
        const results = Object.fromEntries(toolCalls.map((call) => [call.name, call.result]));
        assert.equal(results.whose, JSON.stringify({ result: name }));
        assert.match(results.get_time ?? "", new RegExp(`${name} says no`));
      }
    }),
  );
});

test("tools can be replaced", async () => {
  await withScript(CALLS, (option) =>
    hold(real([option]), async (chat) => {
      await chat.setTools([tool({ name: "get_time", parameters: anything, run: () => "12:00" })]);
      assert.equal((await chat.run("x")).toolCalls[0]?.status, "success");
    }),
  );
});

test("tools of an earlier program are offered no more", () =>
  inFolder(async (folder) => {
    const place = { store: join(folder, "chat.db"), session: "ada" };
    const tools = [tool({ name: "delete_file", parameters: anything, run: () => "deleted" })];
    await hold(real([], { ...place, tools }), (chat) => chat.run("x"));
    // What the session has when a process begins, and then what it has without tools, which are taken back.
    for (const expected of [[["delete_file"], []], [[]]]) {
      const lists: string[][] = [];
      const onNotice: Options["onNotice"] = (notice) => {
        if (!(notice instanceof Error) && notice.name === "FrontendToolManifestUpdated") lists.push(notice.payload.tools.map(({ name }) => name));
      };
      await hold(real([], { ...place, onNotice }), (chat) => chat.run("x"));
      assert.deepEqual(lists, expected);
    }
  }));

test("a reconnect and a fork have the tools that were set", () =>
  inFolder(async (folder) => {
    const [earlier, later] = ["earlier", "later"].map((name) => tool({ name, parameters: anything, run: () => name }));
    const place = { store: join(folder, "chat.db"), session: "ada" };
    await withScript([{ tools: [{ name: "later", arguments: {} }] }, { text: "I see." }], (option) =>
      hold(real([option], { ...place, tools: [earlier!] }), async (chat) => {
        await chat.setTools([later!]);
        const result = async (of: Duologue) => (await of.run("x")).toolCalls[0]?.result;
        assert.equal(await result(chat), '{"result":"later"}');
        const copy = await chat.fork();
        assert.equal(await result(copy).finally(() => copy.close()), '{"result":"later"}');
        process.kill(chat.pid!, "SIGKILL");
        await assert.rejects(chat.run("lost"), ProcessEnded);
        await chat.reconnect();
        assert.equal(await result(chat), '{"result":"later"}');
      }),
    );
  }));

test("what belongs to no request is a notice", async () => {
  const states: unknown[] = [];
  const onNotice: NonNullable<Options["onNotice"]> = (notice) => {
    if (notice.name === "ToolServerChanged") states.push((notice as EventOf<"ToolServerChanged">).json.state);
  };
  await hold(real(["--mcp", CLOCK], { onNotice }), (chat) => chat.run("x"));
  assert(states.includes("READY"));
});

const decision = (approve: Approve | undefined, options: Options = {}) =>
  withScript(CALLS, (option) =>
    hold(real([option, "--mcp", CLOCK], { ...(approve && { approve }), ...options }), async (chat) => {
      return (await chat.run("x")).toolCalls[0];
    }),
  );

test("approvals are a callback", async () => {
  const seen: string[][] = [];
  const call = await decision(async (request) => seen.push([request.toolName, request.input]) > 0);
  assert.equal(call?.status, "success");
  assert.deepEqual(seen, [["get_time", '{"city":"Berlin"}']]);
  assert.match((await decision(() => "Not now."))?.result ?? "", /Not now\./);
});

test("without a decision calls are denied", async () => {
  assert.match((await decision(undefined))?.result ?? "", /approves no tool calls/);
  const broken = await decision(() => { throw new Error("a secret"); });
  assert.match(broken?.result ?? "", /could not decide/);
  assert.doesNotMatch(broken?.result ?? "", /secret/);
  assert.match((await decision(never, { approveTimeoutMs: 10 }))?.result ?? "", /Nobody decided within/);
});

const City = z.object({ name: z.string(), twins: z.array(z.string()).default([]) });
const ask = <T>(text: string, answer: import("duologue").Schema<T>) =>
  withScript([{ text }], (option) => hold(real([option]), (chat) => chat.run("Where?", { answer })));

test("an answer is a value of a type", async () => {
  const text = '{"name": "Köln", "twins": ["Cork"]}';
  const { value } = await ask(text, City);
  assert.equal(value?.twins[0]?.toUpperCase(), "CORK");
  assert.deepEqual((await ask(text, { type: "object", required: ["name"] })).value, JSON.parse(text));
  const type = { "~standard": { version: 1 as const, vendor: "own", validate: () => ({ value: 7 }) } };
  assert.equal((await ask("[1]", { type, jsonSchema: { type: "array" } })).value, 7);
  await assert.rejects(ask("[1]", type), /does not know its JSON Schema/);
});

test("another answer is an error", async () => {
  const isAnswer = (text: string) => (error: unknown) => error instanceof AnswerError && error.text === text;
  await assert.rejects(ask('{"name": 3}', City), isAnswer('{"name": 3}'));
  // What the JSON Schema can't say, the type checks here.
  await assert.rejects(ask('"x"', z.string().refine((text) => text !== "x")), isAnswer('"x"'));
});

test("a session goes on", () =>
  inFolder(async (folder) => {
    const place = { store: join(folder, "chat.db"), session: "ada" };
    const seen = await hold(real([], place), async (chat) => {
      await chat.run("one");
      return chat.ordinal;
    });
    await hold(real([], place), async (chat) => {
      assert.deepEqual([chat.sessionId, chat.ordinal, chat.initial?.entities.length], ["ada", seen, 2]);
      assert.equal((await chat.run("two")).text.split("\n")[0], "Turn 2. You said: two");
      const changed = await chat.snapshot({ since: seen });
      assert.deepEqual(changed.entities.map((entity) => entity.json.role), ["user", "assistant"]);
      assert.equal((await chat.snapshot({ limit: 1 })).entities.length, 1);
      assert.equal((await chat.history()).length, 4);
    });
  }));

test("the end of a conversation is edited", async () => {
  await hold(real(), async (chat) => {
    const first = await chat.run("one");
    await chat.run("two");
    assert.equal((await chat.regenerate()).text.split("\n")[0], "Turn 2. You said: two");
    await chat.replace(first.messageId, "three");
    const texts = (await chat.history()).map((entity) => entity.json.text);
    assert.deepEqual(texts, ["three", "Turn 1. You said: three"]);
    await chat.dropLastTurn();
    assert.deepEqual(await chat.history(), []);
  });
});

test("an edit is stopped by its signal and has no type", async () => {
  await hold(real(["--echo-delay-ms=5"]), async (chat) => {
    const { messageId } = await chat.run("one");
    const controller = new AbortController();
    const stream = chat.regenerate({ signal: controller.signal });
    for await (const event of stream) if (event.name === "ChatProviderCallStarted") controller.abort();
    assert.equal(stream.result.status, "stopped");
    const typed = { answer: z.string() } as object;
    assert.throws(() => chat.regenerate(typed), /An edit has no `answer`/);
    assert.throws(() => chat.replace(messageId, "two", typed), /An edit has no `answer`/);
    assert.throws(() => chat.replace(messageId, "two", { settings: {} } as object), /no `settings`/);
  });
});

/** Whether this notice is an event whose name has the word. */
const isEvent = (notice: Event | Error, word: string) => !(notice instanceof Error) && notice.name.includes(word);

test("a compaction is stopped like a run", async () => {
  const notices: (Event | Error)[] = [];
  await hold(real(["--echo-delay-ms=20"], { onNotice: (notice) => void notices.push(notice) }), async (chat) => {
    for (const prompt of ["one", "two"]) await chat.run(prompt);
    const stream = chat.compact({ keepTurns: 1 });
    for await (const event of stream) if (event.name === "CompactionStarted") await stream.cancel();
    assert.equal(stream.result.status, "stopped");
    assert.deepEqual(notices.filter((notice) => isEvent(notice, "Compact")), []);
    for await (const _ of chat.compact({ keepTurns: 1 })) break;
    assert.equal((await chat.run("three")).status, "ok");
    const controller = new AbortController();
    const aborted = chat.compact({ keepTurns: 1, signal: controller.signal });
    for await (const _ of aborted) controller.abort();
    assert.equal(aborted.result.status, "stopped");
    assert.equal((await chat.run("four")).status, "ok");
  });
});

test("events of other requests are notices", async () => {
  const notices: (Event | Error)[] = [];
  await hold(real([], { onNotice: (notice) => void notices.push(notice) }), async (chat) => {
    for (const prompt of ["one", "two"]) await chat.run(prompt);
    assert.equal((await chat.compact({ instructions: "Keep names.", keepTurns: 1 })).status, "ok");
    await chat.switchModel({ engine: "echo" });
    await chat.dropLastTurn();
  });
  const names = ["CompactionStarted", "UsageTotals", "Compacted", "ModelSwitched", "TurnDropped"];
  assert.deepEqual(notices.map(({ name }) => name), names);
});

test("a session is copied", () =>
  inFolder((folder) =>
    hold(real([], { store: join(folder, "chat.db"), session: "ada" }), async (chat) => {
      await chat.run("one");
      await chat.run("two");
      const copy = await chat.fork(1);
      assert.notEqual(copy.sessionId, "ada");
      assert.equal(copy.initial?.entities.length, 2);
      await copy.close();
      assert.equal((await chat.history()).length, 4);
    }),
  ));

test("history comes in pages", async () => {
  await hold(real([], { pageEntities: 3 }), async (chat) => {
    for (const number of [0, 1, 2, 3]) await chat.run(`prompt ${number}`);
    const texts = (await chat.history()).map((entity) => entity.json.text);
    assert.deepEqual(texts.filter((_, at) => at % 2 === 0), ["prompt 0", "prompt 1", "prompt 2", "prompt 3"]);
  });
});

test("a history in pages is that of a snapshot", async () => {
  await hold(real([], { pageEntities: 2 }), async (chat) => {
    for (const number of [0, 1, 2, 3]) {
      await chat.run(`prompt ${number}`);
      if (number > 1) await chat.compact({ keepTurns: 1 });
    }
    const { entities } = await chat.snapshot();
    assert.deepEqual(await chat.history(), entities);
    const compactions = entities.map(({ kind }) => kind === "Compaction");
    assert.deepEqual(compactions, [...Array(8).fill(false), true, true]);
  });
});

test("a store that fails is a notice", () =>
  inFolder((folder) => {
    const store = join(folder, "chat.db");
    const notices: unknown[] = [];
    const options = { store, session: "ada", onNotice: (notice: unknown) => void notices.push(notice) };
    return hold(real([], options), async (chat) => {
      await chat.run("one");
      rmSync(store);
      assert.equal((await chat.run("two")).status, "ok");
      // The error comes before the answer to a later request.
      await chat.snapshot();
      assert.equal(chat.storeError?.code, "store_failed");
      assert(notices.includes(chat.storeError));
    });
  }));

test("models and settings", async () => {
  await hold(real(), async (chat) => {
    await chat.switchModel({ engine: "echo" });
    assert.equal((await chat.run("x", { settings: { temperature: 0.5 } })).status, "ok");
    const isInvalid = (error: unknown) => error instanceof RequestError && error.code === "invalid_settings";
    await assert.rejects(chat.run("x", { settings: { nonsense: 1 } }), isInvalid);
  });
});

test("the text of an error has its reason", async () => {
  await hold(real(), async (chat) => {
    const failure = chat.run("x", { settings: { temprature: 1 } }).catch((error: unknown) => error);
    const error = (await failure) as RequestError;
    assert.match(error.message, /\(there is no setting "temprature"; the settings are /);
    assert.equal(error.message, `${error.summary} (${error.detail})`);
    await assert.rejects(chat.switchModel({ profile: "nope" }), /\(there is no profile "nope"; there are: /);
  });
  const cases = JSON.parse(readFileSync(join(ROOT, "clients/error_texts.json"), "utf8"));
  for (const { message, detail, text } of cases as { message: string; detail: string; text: string }[]) {
    assert.equal(new RequestError("run_failed", message, detail).message, text);
  }
});

test("an account without credit is not retryable", () => {
  const cases = JSON.parse(readFileSync(join(ROOT, "clients/retryable_errors.json"), "utf8"));
  for (const { detail, isRetryable } of cases as { detail: string; isRetryable: boolean }[]) {
    assert.equal(new ProviderError("run_failed", "x", detail).isRetryable, isRetryable, detail);
  }
});

test("resources of tool servers go with a prompt", async () => {
  await hold(difficult("repeat"), async (chat) => {
    const resources = [{ server: "docs", uri: "file:///a.md" }];
    const { text } = await chat.run("x", { resources });
    assert.deepEqual(JSON.parse(text).submit, { prompt: "x", resources });
  });
});

test("an attachment's path is the program's own", () =>
  inFolder((own) =>
    inFolder(async (other) => {
      writeFileSync(join(own, "a b.txt"), "own");
      writeFileSync(join(other, "a b.txt"), "the other's");
      const before = process.cwd();
      await hold(real([], { cwd: other }), async (chat) => {
        try {
          process.chdir(own);
          for (const attachment of ["a b.txt", { url: "a b.txt", filename: "c" }]) {
            assert.match((await chat.run("What?", { attachments: [attachment] })).text.split("\n")[1] ?? "", /\b3 bytes/);
          }
        } finally {
          process.chdir(before);
        }
      });
      await hold(difficult("repeat"), async (chat) => {
        const urls = ["https://a/b.png", "DATA:text/plain,x", "file:///a", "gopher://a", " "];
        const { text } = await chat.run("x", { attachments: [...urls, "a:b.txt"] });
        const sent = JSON.parse(text).submit.attachments.map(({ url }: { url: string }) => url);
        assert.deepEqual(sent, [...urls, join(before, "a:b.txt")]);
      });
    }),
  ));

test("attachments", async () => {
  await hold(real(), async (chat) => {
    const { text, messageId } = await chat.run("What?", { attachments: [join(ROOT, "examples/squares.png")] });
    assert.match(text, /squares\.png \(image\/png, 8x8, 82 bytes\)/);
    const attachments = [{ url: join(ROOT, "examples/clock.py"), filename: "clock.txt" }];
    const again = await chat.replace(messageId, "And this?", { attachments, removedAttachmentIds: ["attachment-1"] });
    assert.match(again.text, /Attached: clock\.txt/);
    assert.doesNotMatch(again.text, /squares\.png/);
  });
});
