// The live events of the service, for as long as the page is open: after a break it comes back by itself.

export type Link = "connecting" | "open" | "broken";
const kFirstWait_ms = 1_000, kLongestWait_ms = 10_000;

/** The n-th wait (from 0) before another try: a second, then twice as long each time, at most ten. */
export function wait_before(attempt: number): number {
  return Math.min(kLongestWait_ms, kFirstWait_ms * 2 ** Math.min(attempt, 10));
}

export interface Listener {
  /** Before each try: catches up on what was missed. What it throws counts as a failed try. */
  begin: () => Promise<void>;
  event: (kind: string, data: unknown) => void;
  link: (link: Link, retry_ms: number) => void;
  /** Whether to try again after this; false where only a person can help (a token is wanted). */
  goes_on: (problem: unknown) => boolean;
}

export class Stream {
  private source: EventSource | null = null;
  private timer: number | undefined;
  private attempts = 0;

  constructor(private readonly address: string, private readonly kinds: readonly string[], private readonly listener: Listener) {}

  /** Tries now, whatever it waits for. */
  async start(): Promise<void> {
    window.clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
    if (this.attempts === 0) this.listener.link("connecting", 0);
    try {
      await this.listener.begin();
    } catch (problem) {
      if (this.listener.goes_on(problem)) this.retry();
      return;
    }
    this.open();
  }

  private open(): void {
    const query = this.kinds.map((kind) => `kind=${encodeURIComponent(kind)}`).join("&");
    const source = new EventSource(`${this.address}?${query}`);
    this.source = source;
    source.onopen = () => {
      this.attempts = 0;
      this.listener.link("open", 0);
    };
    // EventSource's own way of trying again gives up at an answer such as 503: ours does not.
    source.onerror = () => {
      if (this.source !== source) return;
      source.close();
      this.retry();
    };
    for (const kind of this.kinds)
      source.addEventListener(kind, (event) => this.take(kind, (event as MessageEvent<string>).data));
  }

  private take(kind: string, text: string): void {
    let data: unknown;
    try {
      data = JSON.parse(text);
    } catch {
      return;
    }
    this.listener.event(kind, data);
  }

  private retry(): void {
    const wait = wait_before(this.attempts++);
    this.listener.link("broken", wait);
    window.clearTimeout(this.timer);
    this.timer = window.setTimeout(() => void this.start(), wait);
  }
}
