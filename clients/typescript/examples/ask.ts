// Asks two questions, and prints the second answer as it streams.
import { Duologue } from "duologue";

const chat = await Duologue.start();
console.log((await chat.run("What is a duologue?")).text);
for await (const event of chat.stream("Explain it to a child.")) {
  if (event.name === "ChatTextPatch") process.stdout.write(event.payload.text);
}
console.log();
await chat.close();
