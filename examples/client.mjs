// Holds duologue as a subprocess: asks two questions, one after the other, and prints the answers as they stream.
//
//     node examples/client.mjs [command of duologue, for example: target/debug/duologue rpc]

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const [command, ...args] = process.argv.length > 2 ? process.argv.slice(2) : ["duologue", "rpc"];
const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
let requests = 0;

// Yields the answer in pieces. Throws if the run fails, once it has ended.
async function* ask(prompt) {
  const requestId = `r${++requests}`;
  child.stdin.write(JSON.stringify({ requestId, submit: { prompt } }) + "\n");
  let failure;
  for (;;) {
    const { value: line, done: ended } = await lines.next();
    if (ended) throw new Error("duologue ended before it had answered; see its standard error");
    const frame = JSON.parse(line);
    if (frame.requestId !== requestId) continue;
    if (frame.uiEvent?.name === "ChatTextPatch") yield frame.uiEvent.payload.text;
    if (frame.error) {
      const { message, detail = "" } = frame.error;
      failure = message.includes(detail) ? message : `${message} (${detail})`;
    }
    if (frame.done?.status === "failed") throw new Error(failure);
    if (frame.done) return;
  }
}

for (const question of ["What is a duologue?", "And what is it good for?"]) {
  process.stdout.write(`you: ${question}\nit: `);
  for await (const piece of ask(question)) process.stdout.write(piece);
  process.stdout.write("\n");
}
child.stdin.end(); // End of input is all the goodbye it needs.
