import type { FrameEvent, Payloads } from "./events.js";
import type { TokenCounts } from "./messages/duologue/session/v1/session_pb.js";

/** A call of a tool that the model made. */
export interface ToolCall {
  id: string;
  name: string;
  /** Arguments, as JSON text. */
  input: string;
  /** Empty until the call has returned. */
  result: string;
  status: string;
}

/** What a run came to. A run that failed throws its error instead. */
export interface Result<T = unknown> {
  /** `ok`, or `stopped` where the run was cancelled. */
  status: string;
  /** The answer: what the last call of the model said. */
  text: string;
  /** What each call of the model said. */
  texts: string[];
  reasoning: string;
  toolCalls: ToolCall[];
  /** With `answer`: the value that was asked for. */
  value: T | undefined;
  /** All values that were found in the answer, the text of the last call, as JSON has them. */
  values: unknown[];
  usage: TokenCounts | undefined;
  /** Cost of the run as a decimal number, where the prices are known. */
  cost: string | undefined;
  currency: string;
  finishClass: string;
  /** The answer was cut off, at a token limit or by a filter of the provider. */
  isTruncated: boolean;
  /** Message id of the prompt. */
  messageId: string;
  /** Of a prompt that was to join a run: it did. */
  joined: boolean;
}

/** Makes a result of events. Patches are not among those it needs. */
export class Summary {
  readonly #texts = new Map<string, string>();
  readonly #calls = new Map<string, ToolCall>();
  readonly #result: Result = {
    status: "",
    text: "",
    texts: [],
    reasoning: "",
    toolCalls: [],
    value: undefined,
    values: [],
    usage: undefined,
    cost: undefined,
    currency: "",
    finishClass: "",
    isTruncated: false,
    messageId: "",
    joined: false,
  };

  apply(event: FrameEvent): void {
    const result = this.#result;
    switch (event.name) {
      case "ChatTextSegmentFinished": {
        const { text, correlation } = event.payload as Payloads["ChatTextSegmentFinished"];
        const call = correlation?.providerCallId ?? "";
        this.#texts.set(call, (this.#texts.get(call) ?? "") + text);
        break;
      }
      case "ChatReasoningSegmentFinished":
        result.reasoning += (event.payload as Payloads["ChatReasoningSegmentFinished"]).text;
        break;
      case "ChatToolCallRequested": {
        const { toolCallId: id, toolName: name, input } = event.payload as Payloads["ChatToolCallRequested"];
        this.#calls.set(id, { id, name, input, result: "", status: "" });
        break;
      }
      case "ChatToolResultReady": {
        const ready = event.payload as Payloads["ChatToolResultReady"];
        const call = { id: ready.toolCallId, name: ready.toolName, input: "", ...this.#calls.get(ready.toolCallId) };
        this.#calls.set(ready.toolCallId, { ...call, result: ready.result, status: ready.status });
        break;
      }
      case "UsageTotals":
        result.usage = (event.payload as Payloads["UsageTotals"]).run;
        result.cost = result.usage?.cost || undefined;
        result.currency = result.usage?.currency ?? "";
        break;
      case "ObjectExtracted":
        // Read from its text: `object` has doubles for the numbers.
        result.values.push(JSON.parse((event.payload as Payloads["ObjectExtracted"]).json));
        break;
      case "AnswerRejected":
      case "ChatProviderCallStarted":
        result.values = []; // What was found does not count: the answer is what the last call says.
        break;
      case "ChatProviderCallFinished":
        result.finishClass = (event.payload as Payloads["ChatProviderCallFinished"]).finishClass;
        break;
      case "ChatUserMessageAccepted":
        result.messageId ||= (event.payload as Payloads["ChatUserMessageAccepted"]).messageId;
        break;
      case "SteeringAccepted":
        result.joined = true;
        result.messageId = (event.payload as Payloads["SteeringAccepted"]).messageId;
        break;
    }
  }

  finish(status: string): Result {
    const texts = [...this.#texts.values()];
    const isTruncated = ["max_tokens", "content_filter"].includes(this.#result.finishClass);
    const toolCalls = [...this.#calls.values()];
    return { ...this.#result, status, texts, text: texts.at(-1) ?? "", toolCalls, isTruncated };
  }
}
