// Measures how long 1,000 deltas take, against reading and parsing the same lines alone.
//
//     npm run build && npx tsc -p tests/tsconfig.json && node build/bench.js
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { Duologue } from "duologue";

const SERVER = fileURLToPath(new URL("../../difficult_server.py", import.meta.url));
const BURST = { DIFFICULT: "burst:1000" };
const RUNS = 100;

/** Reading and parsing, and nothing else. */
async function alone(): Promise<number[]> {
  const child = spawn(SERVER, { env: { ...process.env, ...BURST }, stdio: ["pipe", "pipe", "inherit"] });
  const times: number[] = [];
  let rest = "";
  let begin = 0;
  let frames = -1; // hello
  child.stdout.setEncoding("utf8");
  child.stdout.on("data", (chunk: string) => {
    begin ||= performance.now();
    const lines = (rest + chunk).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      frames += 1;
      if (JSON.parse(line).done) {
        times.push(performance.now() - begin);
        ask();
      }
    }
  });
  const ask = () => {
    begin = 0;
    if (times.length === RUNS) child.stdin.end();
    else child.stdin.write(JSON.stringify({ requestId: `r${times.length}`, submit: { prompt: "x" } }) + "\n");
  };
  ask();
  await once(child, "close");
  return times;
}

async function client(): Promise<number[]> {
  const chat = await Duologue.start({ binary: SERVER, env: BURST });
  const times: number[] = [];
  for (let run = 0; run < RUNS; run += 1) {
    let [begin, length] = [0, 0];
    for await (const event of chat.stream("x")) {
      begin ||= performance.now();
      if (event.name === "ChatTextPatch") length += event.payload.text.length;
    }
    times.push(performance.now() - begin);
  }
  await chat.close();
  return times;
}

// The least of all runs: what else the machine does only adds to a time.
const least = Math.min(...(await alone()));
const took = Math.min(...(await client()));
console.log(`reading and parsing alone: ${least.toFixed(1)} ms`);
console.log(`client: ${took.toFixed(1)} ms, ${(took / least).toFixed(2)} times as long`);
