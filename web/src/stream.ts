// The live events of the service, for as long as the page is seen: after a break it comes back by itself.

export type Link = "connecting" | "open" | "broken";
const kFirstWait_ms = 1_000, kLongestWait_ms = 10_000;
const kSilence_ms = 35_000;  // the service says something at least every 10 s: a connection silent for so long is dead

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
  private silence: number | undefined;
  private attempts = 0;
  private turn = 0;

  /** A page that nobody sees has no stream: a browser has few connections to a host, and all its pages share them. */
  constructor(private readonly address: string, private readonly kinds: readonly string[], private readonly listener: Listener) {
    document.addEventListener("visibilitychange", () => (document.hidden ? this.stop() : void this.start()));
  }

  /** Tries now, whatever it waits for. */
  async start(): Promise<void> {
    this.stop();
    if (document.hidden) return;
    const turn = this.turn;
    if (this.attempts === 0) this.listener.link("connecting", 0);
    try {
      await this.listener.begin();
    } catch (problem) {
      if (turn === this.turn && this.listener.goes_on(problem)) this.retry();
      return;
    }
    if (turn === this.turn) this.open();
  }

  private stop(): void {
    ++this.turn;
    window.clearTimeout(this.timer);
    window.clearTimeout(this.silence);
    this.source?.close();
    this.source = null;
  }

  private open(): void {
    const query = this.kinds.map((kind) => `kind=${encodeURIComponent(kind)}`).join("&");
    const source = new EventSource(`${this.address}?${query}`);
    this.source = source;
    source.onopen = () => {
      this.attempts = 0;
      this.heard();
      this.listener.link("open", 0);
    };
    // EventSource's own way of trying again gives up at an answer such as 503: ours does not.
    source.onerror = () => {
      if (this.source === source) this.retry();
    };
    for (const kind of this.kinds)
      source.addEventListener(kind, (event) => this.take(kind, (event as MessageEvent<string>).data));
    source.addEventListener("alive", () => this.heard());
    this.heard();
  }

  private heard(): void {
    window.clearTimeout(this.silence);
    this.silence = window.setTimeout(() => this.retry(), kSilence_ms);
  }

  private take(kind: string, text: string): void {
    this.heard();
    let data: unknown;
    try {
      data = JSON.parse(text);
    } catch {
      return;
    }
    this.listener.event(kind, data);
  }

  private retry(): void {
    this.stop();
    const wait = wait_before(this.attempts++);
    this.listener.link("broken", wait);
    this.timer = window.setTimeout(() => void this.start(), wait);
  }
}
