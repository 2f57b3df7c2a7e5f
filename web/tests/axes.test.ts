import assert from "node:assert/strict";
import test from "node:test";
import { time_label, value_range } from "../src/axes";

process.env.TZ = "UTC";
const seconds = (text: string) => Date.parse(`${text}Z`) / 1000;
const labels = (...moments: string[]) => moments.map(seconds).map((tick, _, ticks) => time_label(tick, ticks));

test("marks within a day have the time of day, those of midnight the date", () => {
  assert.deepEqual(labels("2026-11-17T10:00:00", "2026-11-17T10:00:30"), ["10:00:00", "10:00:30"]);
  assert.deepEqual(labels("2026-11-17T18:00", "2026-11-18T00:00", "2026-11-18T06:00"), ["18:00", "18 Nov", "06:00"]);
});

test("marks of days have dates, those of months and years these", () => {
  assert.deepEqual(labels("2026-11-17T00:00", "2026-11-18T00:00", "2026-11-19T00:00"), ["17 Nov", "18 Nov", "19 Nov"]);
  assert.deepEqual(labels("2026-11-01T00:00", "2026-12-01T00:00", "2027-01-01T00:00"), ["Nov 2026", "Dec 2026", "Jan 2027"]);
});

test("an axis that begins at zero goes below it for values that do", () => {
  const [low, high] = value_range(-0.4, 0.6, true);
  assert.ok(low < -0.4 && high > 0.6);
  assert.equal(value_range(0.2, 0.6, true)[0], 0);
  assert.ok(value_range(-0.5, -0.3, true)[1] > 0);
});

test("a figure that stands still has room on both sides", () => {
  const [low, high] = value_range(2, 2, false);
  assert.ok(low < 2 && high > 2);
  assert.deepEqual(value_range(null, null, false), [0, 1]);
});
