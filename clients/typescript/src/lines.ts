const LF = 10;
const HEAD_BYTES = 4096;

/** A line that was longer than the limit, and is gone. */
export class Overlong {
  /** Request of its frame, if that could be read. */
  readonly requestId: string | undefined;

  constructor(head: string) {
    this.requestId = /"requestId"\s*:\s*"([^"\\]*)"/.exec(head.slice(0, HEAD_BYTES))?.[1];
  }
}

/** Splits bytes into lines at LF alone. At most `limit` bytes wait. */
export class Lines {
  #parts: Buffer[] = [];
  #size = 0;

  constructor(readonly limit: number) {}

  feed(chunk: Buffer): (string | Overlong)[] {
    const end = chunk.lastIndexOf(LF);
    if (end < 0) {
      this.#keep(chunk);
      return [];
    }
    const lines: (string | Overlong)[] = [];
    let begin = 0;
    if (this.#size > 0) {
      begin = chunk.indexOf(LF) + 1;
      this.#keep(chunk.subarray(0, begin - 1));
      lines.push(this.#take());
    }
    if (begin <= end) {
      const texts = chunk.toString("utf8", begin, end).split("\n");
      for (const text of texts) lines.push(text.length <= this.limit ? text : new Overlong(text));
    }
    this.#keep(chunk.subarray(end + 1));
    return lines;
  }

  #keep(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#size += piece.length;
    if (this.#size <= this.limit) {
      this.#parts.push(piece);
    } else if (this.#parts.length !== 1 || this.#parts[0]!.length > HEAD_BYTES || this.#size === piece.length) {
      // Too long: only its head is of use, for the request that it belongs to.
      this.#parts = [Buffer.from(Buffer.concat([...this.#parts.slice(0, 2), piece]).subarray(0, HEAD_BYTES))];
    }
  }

  #take(): string | Overlong {
    const text = this.#parts.length === 1 ? this.#parts[0]!.toString() : Buffer.concat(this.#parts).toString();
    const line = this.#size > this.limit ? new Overlong(text) : text;
    this.#parts = [];
    this.#size = 0;
    return line;
  }
}
