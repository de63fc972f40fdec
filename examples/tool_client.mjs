// Offers the model a tool that runs in this program: declares it, answers its calls, and prints the answer.
//
//     node examples/tool_client.mjs [command of duologue, for example: target/debug/duologue rpc]

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const times = { Berlin: "12:00", Lima: "05:00" };

function getTime({ city }) {
  if (!(city in times)) throw new Error(`no such city: ${city}`);
  return { time: times[city] };
}

const tool = {
  name: "get_time",
  description: "The local time in a city.",
  inputSchema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
};

// The result of a call; what goes wrong is a result too, and the model reads it.
function answer({ toolCallId, input }) {
  try {
    return { toolCallId, result: getTime(input) };
  } catch (error) {
    return { toolCallId, status: "error", error: error.message };
  }
}

const [command, ...args] = process.argv.length > 2 ? process.argv.slice(2) : ["duologue", "rpc"];
const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
const send = (request) => child.stdin.write(JSON.stringify(request) + "\n");

send({ requestId: "tools", declareTools: { tools: [tool] } });
send({ requestId: "ask", submit: { prompt: "What time is it in Berlin and in Oz?" } });
let calls = 0;
for await (const line of createInterface({ input: child.stdout })) {
  const frame = JSON.parse(line);
  const { name, payload } = frame.uiEvent ?? {};
  if (name === "ChatTextPatch") process.stdout.write(payload.text);
  if (name === "FrontendToolCallRequested") {
    const result = answer(payload);
    console.log(`\n[${payload.toolName} ${JSON.stringify(payload.input)} -> ${JSON.stringify(result.result ?? result.error)}]`);
    send({ requestId: `result-${++calls}`, toolResult: result });
  }
  if (frame.error) console.error("error:", frame.error.message);
  if (frame.done && frame.requestId === "ask") {
    console.log();
    child.stdin.end();
  }
}
