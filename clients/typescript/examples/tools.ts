// Offers the model a tool, and decides about the tools of servers.
import { Duologue, tool } from "duologue";
import { z } from "zod";

const times = new Map([["Berlin", "12:00"], ["Lima", "05:00"]]);

const getTime = tool({
  name: "get_time",
  description: "The local time in a city.",
  parameters: z.object({ city: z.string() }),
  timeoutMs: 5000,
  async run({ city }) {
    if (!times.has(city)) throw new Error(`no such city: ${city}`);
    return times.get(city);
  },
});

const chat = await Duologue.start({
  tools: [getTime],
  approve: (request) => request.toolName.startsWith("list_"),
});
const result = await chat.run("What time is it in Berlin and in Oz?");
for (const call of result.toolCalls) console.log(call.name, call.input, "->", call.result);
console.log(result.text);
await chat.close();
