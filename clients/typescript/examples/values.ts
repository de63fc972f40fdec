// Asks for a value of a type: any Standard Schema, or a JSON Schema. It needs a model, as `duologue profiles init` sets
// one up: the built-in engine, which answers without a provider, repeats the prompt, and the run ends with an AnswerError.
import { Duologue } from "duologue";
import { z } from "zod";

const City = z.object({ name: z.string(), population: z.int() });

const chat = await Duologue.start();
const { value } = await chat.run("Where is the Brandenburg Gate?", { answer: City });
console.log(value?.name, value?.population);
await chat.close();
