// How figures went.

export interface Known { time: number; value: number }

/** The value `back_s` before the newest one that is known: the newest that is so old, or the first there is. */
export function known_before(times: readonly number[], values: readonly (number | null)[], back_s: number): Known | null {
  let found: Known | null = null, until = 0;
  for (let i = times.length - 1; i >= 0; --i) {
    const time = times[i] as number, value = values[i] ?? null;
    if (value === null) continue;
    if (found === null) until = time - back_s;
    found = { time, value };
    if (time <= until) break;
  }
  return found;
}

/** How a figure went, in short: "▼ 12 %". Changes below a hundredth are none. */
export function change(before: number | null, now: number | null): { text: string; way: "up" | "down" | "none" } {
  if (before === null || now === null || before === 0) return { text: "", way: "none" };
  const share = (now - before) / Math.abs(before);
  if (Math.abs(share) < 0.01) return { text: "steady", way: "none" };
  const size = Math.abs(share) < 9.995 ? `${Math.round(Math.abs(share) * 100)} %` : "many times";
  return { text: `${share > 0 ? "▲" : "▼"} ${size}`, way: share > 0 ? "up" : "down" };
}
