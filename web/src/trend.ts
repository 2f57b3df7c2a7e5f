// How figures went.

/** The value `back_s` before the last one: the newest that is so old, or the first there is. */
export function value_before(times: readonly number[], values: readonly (number | null)[], back_s: number): number | null {
  const until = (times[times.length - 1] ?? 0) - back_s;
  let found: number | null = null;
  for (let i = 0; i < times.length; ++i) {
    const value = values[i] ?? null;
    if (value === null) continue;
    if (found !== null && (times[i] as number) > until) break;
    found = value;
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
