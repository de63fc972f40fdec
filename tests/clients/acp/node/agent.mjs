// A `duologue acp` process behind the official SDK, with what its client has seen. Each line that the process writes
// is held against the JSON Schema that comes with the SDK.
import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { Readable, Writable } from "node:stream";
import assert from "node:assert/strict";
import { client, methods, ndJsonStream, PROTOCOL_VERSION } from "@agentclientprotocol/sdk";
import { Ajv2020 } from "ajv/dist/2020.js";

const schema = createRequire(import.meta.url)("@agentclientprotocol/sdk/schema/v1/schema.json");
const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false, schemas: [{ ...schema, $id: "acp" }] });
const validators = new Map(
  ["AgentRequest", "AgentResponse", "AgentNotification", "CancelRequestNotification"].map((name) => [
    name,
    ajv.getSchema(`acp#/$defs/${name}`),
  ]),
);
// The results and parameters of a method, by their own definitions: in a response of any method each object is one.
for (const [name, definition] of Object.entries(schema.$defs)) {
  if (definition["x-method"]) {
    const kind = name.endsWith("Response") ? "response" : "params";
    validators.set(`${kind} ${definition["x-method"]}`, ajv.getSchema(`acp#/$defs/${name}`));
  }
}

function check(name, value, line) {
  const validate = validators.get(name);
  assert(validate, `no definition for ${name}: ${line}`);
  assert(validate(value), `no ${name}: ${ajv.errorsText(validate.errors)}: ${line}`);
}

export const isGone = (pid) => !existsSync(`/proc/${pid}`) || / Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
export const fails = (promise, code) =>
  promise.then(
    (result) => assert.fail(`no error: ${JSON.stringify(result)}`),
    (error) => (assert.equal(error.code, code, String(error)), error),
  );
export const current = (options, id) => options.find((it) => it.id === id)?.currentValue;

export class Agent {
  updates = [];
  questions = [];
  reads = [];
  // What the person, and the editor, answer.
  decide = () => "allow_once";
  buffer = () => assert.fail("no buffer was announced");
  #waiting = new Set();
  #asked = new Map();
  #known = new Set();
  #sent = 0;
  #fault = null;

  static async start(binary, folder, args, capabilities = {}, environment = {}) {
    const agent = new Agent();
    const base = { PATH: process.env.PATH, HOME: folder, XDG_DATA_HOME: `${folder}/data` };
    agent.process = spawn(binary, ["acp", ...args], {
      cwd: folder,
      env: { ...base, ...environment },
      stdio: ["pipe", "pipe", "inherit"],
    });
    agent.exit = new Promise((resolve) => agent.process.once("close", (code, signal) => resolve(code ?? signal)));
    const input = Readable.toWeb(agent.process.stdout).pipeThrough(agent.#lines());
    const stream = ndJsonStream(Writable.toWeb(agent.process.stdin), input);
    agent.connection = agent.#app().connect(agent.#outgoing(stream));
    agent.initialized = await agent.call(methods.agent.initialize, {
      protocolVersion: PROTOCOL_VERSION,
      clientCapabilities: capabilities,
    });
    assert.equal(agent.initialized.protocolVersion, 1);
    return agent;
  }

  #app() {
    return client({ name: "scenarios" })
      .onRequest(methods.client.session.requestPermission, async ({ params, signal }) => {
        const question = { ...params, signal };
        this.#note(this.questions, question);
        const optionId = await this.decide(question);
        return { outcome: optionId ? { outcome: "selected", optionId } : { outcome: "cancelled" } };
      })
      .onRequest(methods.client.fs.readTextFile, ({ params }) => {
        this.#note(this.reads, params);
        return { content: this.buffer(params) };
      })
      .onNotification(methods.client.session.update, ({ params }) => {
        this.#note(this.updates, { sessionId: params.sessionId, ...params.update });
      });
  }

  #note(list, item) {
    list.push(item);
    for (const look of [...this.#waiting]) look();
  }

  // Looks at each whole line on its way to the SDK.
  #lines() {
    let rest = Buffer.alloc(0);
    return new TransformStream({
      transform: (chunk, to) => {
        rest = Buffer.concat([rest, chunk]);
        for (let end; (end = rest.indexOf(10)) >= 0; rest = rest.subarray(end + 1)) {
          try {
            this.#line(rest.subarray(0, end).toString("utf8"));
          } catch (error) {
            this.#fault ??= error;
          }
        }
        to.enqueue(chunk);
      },
      flush: () => {
        if (rest.length) this.#fault ??= new Error(`the last line has no end: ${rest}`);
      },
    });
  }

  // Notes which method each request of the client was for, and which sessions it knows.
  #outgoing({ readable, writable }) {
    const noting = new TransformStream({
      transform: (message, to) => {
        if (message.method && message.id !== undefined) this.#asked.set(message.id, message.method);
        const { load, resume } = methods.agent.session;
        if ([load, resume].includes(message.method)) this.#known.add(message.params.sessionId);
        to.enqueue(message);
      },
    });
    noting.readable.pipeTo(writable).catch(() => {});
    return { readable, writable: noting.writable };
  }

  #line(line) {
    const message = JSON.parse(line);
    assert.equal(message.jsonrpc, "2.0", line);
    if (message.method === "$/cancel_request") {
      return check("CancelRequestNotification", message.params, line);
    }
    if (message.method === methods.client.session.update) {
      this.#sent += 1;
      assert(this.#known.has(message.params.sessionId), `an update of a session that the client does not know: ${line}`);
    }
    if (message.method) {
      check(message.id === undefined ? "AgentNotification" : "AgentRequest", message, line);
      return check(`params ${message.method}`, message.params, line);
    }
    check("AgentResponse", message, line);
    const method = this.#asked.get(message.id);
    assert(method, `a response to nothing, or a second one: ${line}`);
    this.#asked.delete(message.id);
    if (message.error) return;
    check(`response ${method}`, message.result, line);
    if (message.result.sessionId) this.#known.add(message.result.sessionId);
  }

  // The SDK resolves a request before its handlers have seen the updates that came before the response.
  async call(method, params, options) {
    try {
      return await this.connection.agent.request(method, params, options);
    } finally {
      const sent = this.#sent;
      await this.until(() => this.updates.length >= sent);
    }
  }

  async open(cwd, mcpServers = []) {
    const opened = await this.call(methods.agent.session.new, { cwd, mcpServers });
    return opened.sessionId;
  }

  prompt(sessionId, prompt, options) {
    const blocks = typeof prompt === "string" ? [{ type: "text", text: prompt }] : prompt;
    return this.call(methods.agent.session.prompt, { sessionId, prompt: blocks }, options);
  }

  // Gives the text of the answer.
  async ask(sessionId, prompt) {
    const before = this.updates.length;
    const { stopReason } = await this.prompt(sessionId, prompt);
    assert.equal(stopReason, "end_turn");
    return this.text(sessionId, "agent_message_chunk", before);
  }

  // Sends a prompt and cancels it at some moment.
  async cancelled(sessionId, prompt, when) {
    const asked = this.prompt(sessionId, prompt);
    await when();
    await this.cancel(sessionId);
    assert.equal((await asked).stopReason, "cancelled");
  }

  cancel(sessionId) {
    return this.connection.agent.notify(methods.agent.session.cancel, { sessionId });
  }

  of(sessionId, kind, from = 0) {
    return this.updates.slice(from).filter((it) => it.sessionId === sessionId && it.sessionUpdate === kind);
  }

  text(sessionId, kind = "agent_message_chunk", from = 0) {
    return this.of(sessionId, kind, from).map((it) => it.content.text).join("");
  }

  // The states of a tool call, in their order.
  states(sessionId, toolCallId) {
    const calls = this.updates.filter((it) => it.sessionId === sessionId && it.toolCallId === toolCallId);
    return calls.map((it) => it.status).filter(Boolean);
  }

  // Waits for something that the process says.
  until(found) {
    return new Promise((resolve) => {
      const look = () => found() && (this.#waiting.delete(look), resolve());
      this.#waiting.add(look);
      look();
    });
  }

  // Ends the input; gives the exit status.
  async end() {
    this.process.stdin.end();
    const status = await this.exit;
    this.connection.close();
    if (this.#fault) throw this.#fault;
    return status;
  }

  kill() {
    this.process.kill("SIGKILL");
    return this.exit;
  }
}
