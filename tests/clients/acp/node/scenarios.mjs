// The scenarios of ../README.md, driven by the official SDK for TypeScript.
//
//   node scenarios.mjs DUOLOGUE REPOSITORY [NAME...]
import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { methods } from "@agentclientprotocol/sdk";
import { Agent, current, fails, isGone } from "./agent.mjs";

const [binary, repository, ...named] = process.argv.slice(2);
const session = methods.agent.session;
const fixtures = join(repository, "tests/clients/acp/fixtures");
const clock = join(repository, "examples/clock.py");
const TOOLS = ["--engine", "echo", "--echo-script", join(repository, "examples/tool_calls.jsonl")];
const WITH_CLOCK = [...TOOLS, "--mcp", `python3 ${clock}`];
const SLOW = ["--engine", "echo", "--echo-delay-ms", "20"];
const LONG_PROMPT = "word ".repeat(500);
const SECONDS_MAX = 60;
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABpfZFQAAAAABJRU5ErkJggg==";

const script = (name) => ["--engine", "echo", "--echo-script", join(fixtures, name)];
const server = (name, path = join(fixtures, "server.py")) => ({ name, command: "python3", args: [path, name], env: [] });

const scenarios = {
  async prompt({ folder, start }) {
    const agent = await start(["--engine", "echo"]);
    const it = await agent.open(folder);
    assert.equal(await agent.ask(it, "hello"), "Turn 1. You said: hello");
    assert.equal(agent.of(it, "session_info_update")[0].title, "hello");
    assert.match(await agent.ask(it, "again"), /^Turn 2\. You said: again/);
    assert.deepEqual(agent.of(it, "user_message_chunk"), []);
    const ids = agent.of(it, "agent_message_chunk").map((chunk) => chunk.messageId);
    assert(ids.every(Boolean) && new Set(ids).size === 2, String(ids));
  },

  async thought({ folder, start }) {
    const agent = await start(["--engine", "echo", "--echo-reasoning"]);
    const it = await agent.open(folder);
    await agent.ask(it, "hello");
    assert.match(agent.text(it, "agent_thought_chunk"), /This is turn 1/);
    const [thought, answer] = ["agent_thought_chunk", "agent_message_chunk"].map((kind) => agent.of(it, kind)[0]);
    assert(agent.updates.indexOf(thought) < agent.updates.indexOf(answer));
    assert(thought.messageId && thought.messageId !== answer.messageId);
  },

  async allowed({ folder, start }) {
    const agent = await start(WITH_CLOCK);
    const it = await agent.open(folder);
    assert.match(await agent.ask(it, "What time is it?"), /It is noon in Berlin/);
    assert.deepEqual(agent.questions.map((question) => question.toolCall.rawInput.city), ["Berlin", "Oz"]);
    const { toolCall, options } = agent.questions[0];
    assert.equal(toolCall.title, 'get_time: {"city":"Berlin"}');
    assert.match(toolCall.content[0].content.text, /clock[^]*Berlin/);
    assert.deepEqual(options.map((option) => option.kind), ["allow_once", "allow_always", "reject_once", "reject_always"]);
    const [berlin, oz] = agent.of(it, "tool_call").map((call) => call.toolCallId);
    assert.equal(berlin, toolCall.toolCallId);
    assert.deepEqual(agent.states(it, berlin), ["pending", "in_progress", "completed"]);
    assert.deepEqual(agent.states(it, oz), ["pending", "in_progress", "failed"]);
    const done = agent.of(it, "tool_call_update").find((call) => call.status === "completed");
    assert.equal(done.content[0].content.text, "12:00");
  },

  async always({ folder, start }) {
    const agent = await start(WITH_CLOCK);
    for (const [decision, state] of [["allow_always", "completed"], ["reject_always", "failed"]]) {
      const it = await agent.open(folder);
      agent.decide = () => decision;
      await agent.ask(it, "What time is it?");
      const [asked, calls] = [agent.questions.length, agent.of(it, "tool_call").length];
      await agent.ask(it, "And now?");
      assert.equal(agent.questions.length, asked, "no more questions");
      const again = agent.of(it, "tool_call")[calls].toolCallId;
      assert.equal(agent.states(it, again).at(-1), state);
    }
  },

  async refused({ folder, start }) {
    const agent = await start(WITH_CLOCK);
    const it = await agent.open(folder);
    agent.decide = () => "reject_once";
    assert.match(await agent.ask(it, "What time is it?"), /It is noon/);
    for (const call of agent.of(it, "tool_call")) {
      assert.deepEqual(agent.states(it, call.toolCallId), ["pending", "failed"]);
    }
    agent.decide = () => "allow_once";
    await agent.ask(it, "And now?");
    assert.equal(agent.questions.length, 4);
  },

  async dismissed({ folder, start }) {
    const agent = await start(WITH_CLOCK);
    const it = await agent.open(folder);
    // The first question is closed by the person; the editor closes the second one when it is withdrawn.
    agent.decide = async ({ signal, toolCall }) => {
      if (toolCall.rawInput.city === "Berlin") return null;
      await new Promise((resolve) => (signal.aborted ? resolve() : signal.addEventListener("abort", resolve)));
      return null;
    };
    assert.equal((await agent.prompt(it, "What time is it?")).stopReason, "cancelled");
    for (const call of agent.of(it, "tool_call")) assert.equal(agent.states(it, call.toolCallId).at(-1), "failed");
    agent.decide = () => "allow_once";
    assert.match(await agent.ask(it, "And now?"), /It is noon/);
  },

  async "client-servers"({ folder, start }) {
    const configured = `python3 ${join(fixtures, "server.py")} configured_tool`;
    const agent = await start([...script("two_tools.jsonl"), "--mcp", configured, "--approval", "auto"]);
    for (const [servers, state] of [[[server("client_tool")], "completed"], [[], "failed"]]) {
      const it = await agent.open(folder, servers);
      assert.match(await agent.ask(it, "Call both."), /Done/);
      const calls = agent.of(it, "tool_call");
      const ends = calls.map((call) => [call.title, agent.states(it, call.toolCallId).at(-1)]);
      assert.deepEqual(ends, [["configured_tool", "completed"], ["client_tool", state]]);
    }
    assert.equal(agent.questions.length, 0);
  },

  async cancel({ folder, start }) {
    const slow = await start(SLOW);
    const it = await slow.open(folder);
    await slow.cancel(it);
    await slow.cancelled(it, LONG_PROMPT, () => {});
    const from = slow.updates.length;
    await slow.cancelled(it, LONG_PROMPT, () => slow.until(() => slow.of(it, "agent_message_chunk", from).length > 2));
    const said = slow.text(it);
    await slow.cancel(it);
    assert.match(await slow.ask(it, "hello"), /hello/);
    assert(slow.text(it).startsWith(said) && said.length < LONG_PROMPT.length);
    // While a question is open, which is withdrawn, and while a tool works.
    const tools = await start(WITH_CLOCK);
    const other = await tools.open(folder);
    let withdrawn = 0;
    tools.decide = ({ signal }) =>
      new Promise((resolve) => signal.addEventListener("abort", () => ((withdrawn += 1), resolve(null))));
    await tools.cancelled(other, LONG_PROMPT, () => tools.until(() => tools.questions.length === 2));
    assert.equal(withdrawn, 2);
    const waiting = await start([...script("wait.jsonl"), "--approval", "auto"]);
    const third = await waiting.open(folder, [server("wait")]);
    const isAtWork = () => waiting.of(third, "tool_call_update").some((call) => call.status === "in_progress");
    await waiting.cancelled(third, LONG_PROMPT, () => waiting.until(isAtWork));
    assert.equal(waiting.of(third, "tool_call_update").at(-1).status, "failed");
  },

  async waiting({ folder, start }) {
    const agent = await start(SLOW);
    const it = await agent.open(folder);
    const prompts = ["one", "two", "three"].map((text) => agent.prompt(it, text));
    for (const { stopReason } of await Promise.all(prompts)) assert.equal(stopReason, "end_turn");
    assert.match(agent.text(it), /^Turn 1\. You said: one.*Turn 2\. You said: two.*Turn 3\. You said: three/s);
    const both = [LONG_PROMPT, "four"].map((text) => agent.prompt(it, text));
    await agent.until(() => agent.text(it).includes("word"));
    await agent.cancel(it);
    for (const { stopReason } of await Promise.all(both)) assert.equal(stopReason, "cancelled");
    assert.match(await agent.ask(it, "five"), /You said: five/);
  },

  async killed({ folder, start }) {
    const first = await start(SLOW);
    const it = await first.open(folder);
    await first.ask(it, "hello");
    const messages = (agent, kind) => agent.of(it, kind).map(({ messageId }) => messageId);
    const [live, id] = [first.text(it), messages(first, "agent_message_chunk")[0]];
    first.prompt(it, LONG_PROMPT).catch(() => {});
    await first.until(() => first.text(it).includes("word word"));
    await first.kill();
    const second = await start(SLOW);
    const loaded = await second.call(session.load, { sessionId: it, cwd: folder, mcpServers: [] });
    assert.equal(current(loaded.configOptions, "mode"), "ask");
    assert.equal(second.text(it, "user_message_chunk"), `hello${LONG_PROMPT}`);
    assert.equal(messages(second, "agent_message_chunk")[0], id);
    assert(second.text(it).startsWith(`${live}Turn 2. You said: `), second.text(it));
    assert.match(await second.ask(it, "go on"), /^Turn 3\./);
  },

  async resume({ folder, start }) {
    const first = await start(["--engine", "echo"]);
    const it = await first.open(folder);
    await first.ask(it, "hello");
    assert.equal(await first.end(), 0);
    const second = await start(["--engine", "echo"]);
    const resumed = await second.call(session.resume, { sessionId: it, cwd: folder, mcpServers: [] });
    assert.equal(current(resumed.configOptions, "mode"), "ask");
    assert.match(await second.ask(it, "go on"), /^Turn 2\..*hello/s);
    assert.deepEqual(second.of(it, "user_message_chunk"), []);
    assert.match(second.text(it), /^Turn 2\./);
  },

  async list({ folder, start }) {
    const agent = await start(["--engine", "echo"]);
    const [here, there] = ["here", "there"].map((name) => join(folder, name));
    [here, there].forEach((path) => mkdirSync(path));
    const ids = [];
    for (const [cwd, text] of [[here, "first"], [there, "second"], [here, "third"]]) {
      ids.push(await agent.open(cwd));
      await agent.ask(ids.at(-1), text);
    }
    const listed = async (cwd) => (await agent.call(session.list, { cwd })).sessions;
    assert.deepEqual((await listed()).map((it) => it.sessionId), [ids[2], ids[1], ids[0]]);
    const found = await listed(here);
    assert.deepEqual(found.map((it) => [it.title, it.cwd]), [["third", here], ["first", here]]);
    assert(found.every((it) => Date.parse(it.updatedAt) > Date.parse("2020-01-01")));
  },

  async delete({ folder, start }) {
    const agent = await start(["--engine", "echo"]);
    const it = await agent.open(folder);
    await agent.ask(it, "hello");
    await agent.call(session.delete, { sessionId: it });
    await agent.call(session.delete, { sessionId: it });
    assert.deepEqual((await agent.call(session.list, {})).sessions, []);
    await fails(agent.call(session.load, { sessionId: it, cwd: folder, mcpServers: [] }), -32002);
  },

  async close({ folder, start }) {
    const agent = await start(SLOW);
    const it = await agent.open(folder);
    const asked = agent.prompt(it, LONG_PROMPT);
    await agent.until(() => agent.text(it).includes("word"));
    await agent.call(session.close, { sessionId: it });
    assert.equal((await asked).stopReason, "cancelled");
    await fails(agent.prompt(it, "hello"), -32002);
    await agent.call(session.load, { sessionId: it, cwd: folder, mcpServers: [] });
    const from = agent.updates.length;
    await agent.ask(it, "hello");
    assert.match(agent.text(it, "agent_message_chunk", from), /^Turn 2\./);
  },

  async "two-sessions"({ folder, start }) {
    const agent = await start(SLOW);
    const [one, two] = [await agent.open(folder), await agent.open(folder)];
    const asked = [agent.prompt(one, LONG_PROMPT), agent.prompt(two, "hello to the other")];
    assert.equal((await asked[1]).stopReason, "end_turn");
    assert.equal(agent.text(two), "Turn 1. You said: hello to the other");
    assert(agent.text(one).length > 0, "both answer at a time");
    await agent.cancel(one);
    assert.equal((await asked[0]).stopReason, "cancelled");
    assert.match(await agent.ask(two, "still there?"), /^Turn 2\./);
  },

  async "two-folders"({ folder, start }) {
    const agent = await start([...script("two_tools.jsonl"), "--approval", "auto"]);
    for (const name of ["here", "there"]) {
      const path = join(folder, name);
      mkdirSync(path);
      copyFileSync(join(fixtures, "server.py"), join(path, "own.py"));
      const it = await agent.open(path, [server("client_tool", "own.py")]);
      await agent.ask(it, "Where are you?");
      const done = agent.of(it, "tool_call_update").find((call) => call.status === "completed");
      assert.equal(done.content[0].content.text, `client_tool in ${realpathSync(path)}`);
    }
  },

  async image({ folder, start }) {
    const agent = await start(["--engine", "echo"]);
    assert.equal(agent.initialized.agentCapabilities.promptCapabilities.image, true);
    const it = await agent.open(folder);
    const image = { type: "image", data: PNG, mimeType: "image/png" };
    assert.match(await agent.ask(it, [{ type: "text", text: "look" }, image]), /look\nAttached: .*image\/png, 1x1, 70 bytes/);
    assert.match(await agent.ask(it, [image]), /image\/png/);
  },

  async resource({ folder, start }) {
    const agent = await start(["--engine", "echo"]);
    assert.equal(agent.initialized.agentCapabilities.promptCapabilities.embeddedContext, true);
    const it = await agent.open(folder);
    const embedded = (resource) => [{ type: "text", text: "Read " }, { type: "resource", resource }];
    const text = { uri: "file:///nowhere/a.txt", mimeType: "text/plain", text: "some text" };
    assert.match(await agent.ask(it, embedded(text)), /a\.txt[^]*Attached: a\.txt \(text\/plain, 9 bytes\)/);
    const blob = { uri: "file:///nowhere/b.png", mimeType: "image/png", blob: PNG };
    assert.match(await agent.ask(it, embedded(blob)), /Attached: b\.png \(image\/png, 1x1, 70 bytes\)/);
  },

  async link({ folder, start }) {
    const path = join(folder, "notes.txt");
    writeFileSync(path, "on disk\n");
    const link = { type: "resource_link", uri: `file://${path}`, name: "notes.txt" };
    const lost = { type: "resource_link", uri: `file://${folder}/lost.txt`, name: "lost.txt" };
    const blocks = [{ type: "text", text: "Read " }, link, lost];
    const plain = await start(["--engine", "echo"]);
    const said = await plain.ask(await plain.open(folder), blocks);
    assert.match(said, /notes\.txt \(text\/plain, 8 bytes\)/);
    assert(said.includes("lost.txt") && !said.includes("Attached: lost.txt"), said);
    const editor = await start(["--engine", "echo"], { fs: { readTextFile: true, writeTextFile: false } });
    editor.buffer = ({ path }) => (path.endsWith("notes.txt") ? "not saved yet" : "");
    assert.match(await editor.ask(await editor.open(folder), blocks), /notes\.txt \(text\/plain, 13 bytes\)/);
    assert(editor.reads.some((read) => read.path === path));
  },

  async errors({ folder, start }) {
    const agent = await start(["--engine", "echo"]);
    const it = await agent.open(folder);
    const text = [{ type: "text", text: "hello" }];
    const unknown = await fails(agent.prompt("no such session", "hello"), -32002);
    assert.match(unknown.data.details, /no such session/);
    await fails(agent.call(session.load, { sessionId: "nor this", cwd: folder, mcpServers: [] }), -32002);
    await fails(agent.call(session.prompt, { sessionId: it }), -32602);
    await fails(agent.call(session.prompt, { prompt: text }), -32602);
    await fails(agent.prompt(it, "  \n"), -32602);
    await fails(agent.call(session.new, { cwd: "relative", mcpServers: [] }), -32602);
    await fails(agent.call(session.setConfigOption, { sessionId: it, configId: "mode", value: "yolo" }), -32602);
    await fails(agent.call(session.setMode, { sessionId: it, modeId: "yolo" }), -32602);
    await fails(agent.call("session/no_such_method", {}), -32601);
    await fails(agent.call("_vendor/method", {}), -32601);
    await agent.connection.agent.notify("_vendor/notification", {});
    assert.match(await agent.ask(it, "hello"), /^Turn 1\./);
  },

  async provider({ folder, start }) {
    const key = "key-that-nobody-sees";
    const nowhere = ["--engine", "openai", "--base-url", "http://127.0.0.1:1/v1", "--model", "any", "--retries", "0"];
    const agent = await start(nowhere, {}, { DUOLOGUE_API_KEY: key });
    const it = await agent.open(folder);
    for (const text of ["hello", "again"]) {
      const error = await fails(agent.prompt(it, text), -32603);
      assert.deepEqual(Object.keys(error.data), ["details"]);
      assert(error.message && !JSON.stringify([error.message, error.data]).includes(key));
    }
    const keyless = await start(["--engine", "anthropic"]);
    const other = await keyless.open(folder);
    await fails(keyless.prompt(other, "hello"), -32603);
  },

  async "cancel-request"({ folder, start }) {
    const agent = await start(SLOW);
    const it = await agent.open(folder);
    const stops = [new AbortController(), new AbortController()];
    const asked = stops.map(({ signal }) => agent.prompt(it, LONG_PROMPT, { cancellationSignal: signal }));
    const last = agent.prompt(it, "hello");
    await agent.until(() => agent.text(it).includes("word"));
    for (const stop of stops.reverse()) stop.abort();
    for (const prompt of asked) {
      const { stopReason } = await prompt.catch(({ code }) => (assert.equal(code, -32800), { stopReason: "cancelled" }));
      assert.equal(stopReason, "cancelled");
    }
    assert.equal((await last).stopReason, "end_turn");
    assert.match(agent.text(it), /You said: hello/);
  },

  async options({ folder, start }) {
    const agent = await start(WITH_CLOCK);
    const it = await agent.open(folder);
    const set = async (configId, value) => {
      const { configOptions } = await agent.call(session.setConfigOption, { sessionId: it, configId, value });
      assert.equal(current(configOptions, configId), value);
    };
    await set("thought_level", "high");
    await set("mode", "auto");
    await agent.ask(it, "What time is it?");
    assert.equal(agent.questions.length, 0);
    assert.equal(agent.of(it, "tool_call_update").filter((call) => call.status === "completed").length, 1);
    await agent.call(session.setMode, { sessionId: it, modeId: "deny" });
    await agent.ask(it, "And now?");
    assert.equal(agent.of(it, "tool_call_update").filter((call) => call.status === "completed").length, 1);
    const other = await agent.open(folder);
    await agent.ask(other, "And here?");
    assert.equal(agent.questions.length, 2, "another session has its own mode");
    await agent.end();
    const later = await start(WITH_CLOCK);
    const { configOptions } = await later.call(session.load, { sessionId: it, cwd: folder, mcpServers: [] });
    assert.deepEqual(["thought_level", "mode"].map((id) => current(configOptions, id)), ["high", "deny"]);
  },

  async long({ folder, start }) {
    const answer = Array.from({ length: 20_000 }, (_, n) => `${n} "quoted" \\ \t \u{1F600}\n`).join("");
    writeFileSync(join(folder, "answer.txt"), answer);
    const agent = await start(["--engine", "echo", "--echo-answer", join(folder, "answer.txt")]);
    const it = await agent.open(folder);
    assert(await agent.ask(it, "Tell me everything.") === answer, "all text arrives");
    await agent.call(session.close, { sessionId: it });
    const from = agent.updates.length;
    await agent.call(session.load, { sessionId: it, cwd: folder, mcpServers: [] });
    assert(agent.text(it, "agent_message_chunk", from) === answer, "and again");
  },

  async end({ folder, start }) {
    const agent = await start([...script("wait.jsonl"), "--approval", "auto"]);
    const it = await agent.open(folder, [server("wait")]);
    const asked = agent.prompt(it, "Wait.").catch(() => ({ stopReason: "cancelled" }));
    await agent.until(() => agent.of(it, "tool_call_update").some((call) => call.status === "in_progress"));
    assert.equal(await agent.end(), 0);
    assert.equal((await asked).stopReason, "cancelled");
    const pids = readFileSync(join(folder, "servers.pid"), "utf8").trim().split("\n");
    assert(pids.length === 1 && pids.every(isGone), `still there: ${pids}`);
  },
};

async function run(name) {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "acp-")));
  const agents = [];
  const start = async (...rest) => (agents.push(await Agent.start(binary, folder, ...rest)), agents.at(-1));
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${SECONDS_MAX} s`)), SECONDS_MAX * 1000);
  });
  try {
    await Promise.race([scenarios[name]({ folder, start }), late]);
    for (const agent of agents) if (agent.process.exitCode === null && !agent.process.signalCode) assert.equal(await agent.end(), 0);
    console.log(`ok ${name}`);
  } catch (error) {
    process.exitCode = 1;
    console.log(`FAILED ${name}: ${error.stack}`);
    agents.forEach((agent) => agent.kill());
  } finally {
    clearTimeout(timer);
    rmSync(folder, { recursive: true, force: true });
  }
}

for (const name of named.length ? named : Object.keys(scenarios)) await run(name);
