// What the axes of a chart cover, and what stands beside their marks.

const kDay_s = 86_400;

/** The time of day, with seconds where marks are less than a minute apart; the date at midnight; months where marks are so far apart. */
export function time_label(tick: number, ticks: readonly number[]): string {
  const at = new Date(tick * 1000), clock = at.toLocaleTimeString("en-GB");
  const apart = ticks.length > 1 ? (ticks[1] as number) - (ticks[0] as number) : 60;
  if (apart < 60) return clock;
  if (apart > 27 * kDay_s) return at.toLocaleDateString("en-GB", { month: "short", year: "numeric" });
  return apart > 0.9 * kDay_s || clock === "00:00:00" ? at.toLocaleDateString("en-GB", { day: "numeric", month: "short" }) : clock.slice(0, 5);
}

/** At least ten seconds wide. */
export function time_range(low: number | null, high: number | null): [number, number] {
  if (low === null || high === null) return [Date.now() / 1000 - 60, Date.now() / 1000];
  const room = Math.max(0, 5 - (high - low) / 2);
  return [low - room, high + room];
}

/** Room for a tenth, so that a figure that stands still is a straight line in the middle. `from_zero`: zero is in it. */
export function value_range(low: number | null, high: number | null, from_zero: boolean): [number, number] {
  if (low === null || high === null) return [0, 1];
  const from = from_zero ? Math.min(0, low) : low, to = from_zero ? Math.max(0, high) : high;
  const least = Math.max(Math.abs(from), Math.abs(to)) * 0.1 || 0.1;
  const room = Math.max(to - from, least) * 0.08;
  if (from_zero) return [from === 0 ? 0 : from - room, to + Math.max(room, least)];
  return [Math.min(from, to - least) - room, to + room];
}
