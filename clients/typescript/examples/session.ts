// Holds a stored conversation, which goes on where it ended, also after a crash.
import { Duologue, ProcessEnded } from "duologue";

const [store] = process.argv.slice(2);
if (store === undefined) {
  console.error("usage: session.js STORE, where STORE is a file such as chat.db, which is made if it is not there");
  process.exit(1);
}
const chat = await Duologue.start({ store, session: "ada" });
try {
  console.log((await chat.run("My name is Ada.", { signal: AbortSignal.timeout(60_000) })).text);
} catch (error) {
  if (!(error instanceof ProcessEnded)) throw error;
  console.error(`it ended with status ${error.status}: ${error.stderr}`);
  for (const { text } of await chat.reconnect()) console.log(text); // what was not shown before
}
for (const { kind, json } of await chat.history()) {
  if (kind === "ChatMessage") console.log(`${json.role}: ${json.text}`);
}
await chat.close();
