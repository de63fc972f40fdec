import type { JsonObject } from "@bufbuild/protobuf";
import { RequestError, ToolError, TooLong } from "./errors.js";
import type { FrameEvent, Payloads } from "./events.js";
import { callTool, decide, type Approve, type Tool } from "./tools.js";

const APPROVE_MS = 3_600_000;

/** Calls of tools and questions to the program, while their run waits for them. */
export class Calls {
  readonly #work = new Map<string, AbortController>();

  constructor(
    /** Sends a request, and waits for its `done`. */
    readonly request: (body: JsonObject) => Promise<unknown>,
    readonly approve: Approve | undefined,
    readonly approveTimeoutMs = APPROVE_MS,
  ) {}

  /** Begins or ends work, as the event says. */
  see(event: FrameEvent, tools: Map<string, Tool>): void {
    switch (event.name) {
      case "FrontendToolCallRequested":
        void this.#runTool(event.payload as Payloads["FrontendToolCallRequested"], tools);
        break;
      case "ToolApprovalRequested":
        void this.#decide(event.payload as Payloads["ToolApprovalRequested"]);
        break;
      case "ChatToolResultReady":
        // The run does not wait for the call any more, whatever becomes of it here.
        this.#end((event.payload as Payloads["ChatToolResultReady"]).toolCallId);
        break;
      case "ToolApprovalResolved":
        this.#end((event.payload as Payloads["ToolApprovalResolved"]).toolCallId + ":approval");
        break;
    }
  }

  /** Nobody waits for anything any more. */
  endAll(): void {
    for (const id of [...this.#work.keys()]) this.#end(id);
  }

  #begin(id: string): AbortSignal {
    const controller = new AbortController();
    this.#work.set(id, controller);
    return controller.signal;
  }

  #end(id: string): void {
    this.#work.get(id)?.abort();
    this.#work.delete(id);
  }

  async #runTool({ toolCallId, toolName, input }: Payloads["FrontendToolCallRequested"], tools: Map<string, Tool>): Promise<void> {
    const signal = this.#begin(toolCallId);
    const tool = tools.get(toolName);
    const result = tool
      ? await callTool(tool, input ?? {}, signal)
      : { status: "error", error: `There is no tool ${toolName}.` };
    if (signal.aborted) return;
    try {
      await this.request({ toolResult: { toolCallId, ...result } });
    } catch (error) {
      const why = reasonOf(error);
      if (why !== undefined) await this.request({ toolResult: { toolCallId, status: "error", error: why } }).catch(() => undefined);
    }
  }

  async #decide(request: Payloads["ToolApprovalRequested"]): Promise<void> {
    const { toolCallId } = request;
    const signal = this.#begin(toolCallId + ":approval");
    const decision = await decide(this.approve, request, this.approveTimeoutMs, signal);
    if (signal.aborted) return;
    await this.request({ approve: { toolCallId, ...decision } }).catch(() => undefined);
  }
}

/** Why the server does not have a result, of which the model has to know; nothing if the call does not wait any more. */
function reasonOf(error: unknown): string | undefined {
  if (error instanceof TooLong) return error.message;
  if (!(error instanceof RequestError) || error instanceof ToolError) return undefined;
  return `The server does not take the result: ${error.message}`;
}
