// A timer that is given more ends at once.
const TIMER_MS_MAX = 2 ** 31 - 1;

/** Calls `act` after so long, or never where no timer is that long; gives what ends the wait. */
export function after(ms: number, act: () => void): () => void {
  if (ms > TIMER_MS_MAX) return () => undefined;
  const timer = setTimeout(act, ms);
  return () => clearTimeout(timer);
}

/** Waits for `work` for so long, and not after the signal is aborted. */
export async function within<T>(work: Promise<T>, ms: number, late: () => Error, signal?: AbortSignal): Promise<T> {
  let end = () => {};
  let abort = () => {};
  const timeout = new Promise<never>((_, reject) => {
    end = after(ms, () => reject(late()));
    abort = () => reject(signal?.reason as Error);
  });
  signal?.addEventListener("abort", abort);
  if (signal?.aborted) abort();
  try {
    return await Promise.race([work, timeout]);
  } finally {
    // A timer that is left keeps the program running.
    end();
    signal?.removeEventListener("abort", abort);
  }
}
