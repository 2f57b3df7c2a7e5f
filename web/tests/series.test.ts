import assert from "node:assert/strict";
import test from "node:test";
import { Series } from "../src/series";
import { wait_before } from "../src/stream";
import { change, known_before } from "../src/trend";

test("a series keeps its ends when it grows too long", () => {
  const series = new Series(1, 100);
  for (let i = 0; i < 1000; ++i) series.add(i, [i]);
  assert.ok(series.length <= 100);
  assert.equal(series.times[0], 0);
  assert.equal(series.latest(0), 999);
  assert.ok(series.times.every((time, i) => i === 0 || time > (series.times[i - 1] as number)));
  assert.equal(series.columns[0]?.length, series.times.length);
});

test("points that are not newer and values that are no numbers are left out", () => {
  const series = new Series(2);
  series.add(1, [5, NaN]);
  series.add(1, [6, 6]);
  series.add(0, [7, 7]);
  series.add(NaN, [8, 8]);
  assert.deepEqual(series.columns, [[5], [null]]);
  assert.equal(series.latest(1), null);
});

test("running means skip what is not known", () => {
  const series = new Series(1);
  [1, null, 3, 5].forEach((value, i) => series.add(i, [value]));
  assert.deepEqual(series.smooth(0, 2), [1, null, 2, 4]);
});

test("trends are against a minute ago, or the first there is", () => {
  assert.deepEqual(known_before([0, 30, 60, 90, 120], [1, 2, 3, 4, 5], 60), { time: 60, value: 3 });
  assert.deepEqual(known_before([100, 110], [null, 2], 60), { time: 110, value: 2 });
  assert.equal(known_before([], [], 60), null);
  assert.deepEqual(known_before([0, 1], [7, 8], 0), { time: 1, value: 8 });
});

test("a trend says of when its value is, however far apart the values are", () => {
  assert.deepEqual(known_before([0, 300, 600], [1, 2, 3], 60), { time: 300, value: 2 });
  assert.deepEqual(known_before([0, 300, 600, 650], [1, 2, 3, null], 60), { time: 300, value: 2 });
});

test("a change is told in short, and a small one is none", () => {
  assert.deepEqual(change(4, 3), { text: "▼ 25 %", way: "down" });
  assert.deepEqual(change(-2, 1), { text: "▲ 150 %", way: "up" });
  assert.equal(change(100, 100.5).way, "none");
  assert.equal(change(null, 3).text, "");
  assert.equal(change(0, 3).text, "");
});

test("tries to connect come less often, but at least every ten seconds", () => {
  assert.deepEqual([0, 1, 2, 3, 4, 50].map(wait_before), [1000, 2000, 4000, 8000, 10000, 10000]);
});
