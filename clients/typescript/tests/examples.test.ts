// The examples do what they say, in each runtime, and the README has them as they are.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { BINARY, inFolder, ROOT } from "./support.js";

const HERE = join(ROOT, "clients/typescript");
const RUNTIMES = join(HERE, "tests/runtimes/node_modules");

/** Commands that run a program; Bun and Deno are used where they are installed. */
const runtimes = [
  { name: "Node", command: [process.execPath] },
  { name: "Bun", command: [join(RUNTIMES, "@oven/bun-linux-x64/bin/bun")] },
  { name: "Deno", command: [join(RUNTIMES, "@deno/linux-x64-glibc/deno"), "run", "-A"] },
].filter(({ command }) => existsSync(command[0]!) || process.env.DUOLOGUE_TESTS_REQUIRE_ALL);

for (const { name, command } of runtimes) {
  const run = async (example: string, args: string[] = [], script?: object[]) =>
    inFolder(async (folder) => {
      const path = join(folder, "script.jsonl");
      writeFileSync(path, (script ?? []).map((call) => JSON.stringify(call) + "\n").join(""));
      const [program = "", ...options] = command;
      const env = { ...process.env, DUOLOGUE_BIN: BINARY, DUOLOGUE_ENGINE: "echo" };
      const { stdout, stderr } = await promisify(execFile)(
        program,
        [...options, join(HERE, "build/examples", `${example}.js`), ...args],
        { env: script ? { ...env, DUOLOGUE_ECHO_SCRIPT: path } : env },
      );
      assert.equal(stderr, "");
      return stdout;
    });

  test(`${name}: ask`, async () => {
    assert.equal(
      await run("ask"),
      "Turn 1. You said: What is a duologue?\n" +
        "Turn 2. You said: Explain it to a child.\nBefore that you said: What is a duologue?\n",
    );
  });

  test(`${name}: tools`, async () => {
    const script = readFileSync(join(ROOT, "examples/tool_calls.jsonl"), "utf8").trim().split("\n");
    assert.equal(
      await run("tools", [], script.map((line) => JSON.parse(line))),
      'get_time {"city":"Berlin"} -> {"result":"12:00"}\n' +
        'get_time {"city":"Oz"} -> no such city: Oz\n' +
        "It is noon in Berlin. I found no city called Oz.\n",
    );
  });

  test(`${name}: values`, async () => {
    const text = JSON.stringify({ name: "Berlin", population: 3_700_000 });
    assert.equal(await run("values", [], [{ text }]), "Berlin 3700000\n");
  });

  test(`${name}: session`, () =>
    inFolder(async (folder) => {
      const answer = "Turn 1. You said: My name is Ada.";
      const store = join(folder, "chat.db");
      assert.equal(await run("session", [store]), `${answer}\nuser: My name is Ada.\nassistant: ${answer}\n`);
      assert.match(await run("session", [store]), /Before that you said: My name is Ada\./);
      await assert.rejects(run("session"), /usage: session\.js STORE/);
    }));
}

test("the README has code of the examples", () => {
  const folder = join(HERE, "examples");
  const examples = readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8"));
  const blocks = [...readFileSync(join(HERE, "README.md"), "utf8").matchAll(/```ts\n(.*?)```/gs)].map((match) => match[1]!);
  assert.equal(blocks.length, 2);
  for (const block of blocks) assert(examples.join("").includes(block), block);
});
