import assert from "node:assert/strict";
import test from "node:test";
import { Camera } from "../src/map/camera";
import { ease, kMove_ms, Scene } from "../src/map/scene";

const frame = (words: string[], shift = 0) => ({
  model: 1, step: 1, words, counts: words.map((_, i) => 100 - i), x: words.map((_, i) => i / 10 + shift), y: words.map(() => shift), group: words.map((_, i) => i % 12),
});

test("a word keeps its slot and moves from where it was", () => {
  const scene = new Scene();
  scene.update(frame(["a", "b", "c"]), 0);
  assert.ok(scene.update(frame(["c", "d", "a"], 0.5), 10_000));
  assert.deepEqual(scene.points.map((point) => point.word), ["a", "d", "c"]);
  const a = scene.find("a");
  assert.ok(a);
  assert.deepEqual(scene.place(a, 10_000), { x: 0, y: 0 });
  assert.deepEqual(scene.place(a, 10_000 + kMove_ms), { x: 0.7, y: 0.5 });
  assert.deepEqual(a.trail, [{ x: 0, y: 0 }]);
});

test("another number of words cannot be moved into place", () => {
  const scene = new Scene();
  scene.update(frame(["a", "b"]), 0);
  assert.ok(!scene.update(frame(["b", "c", "a"]), 1));
  assert.deepEqual(new Set(scene.points.map((point) => point.word)), new Set(["a", "b", "c"]));
  assert.ok(!scene.update(frame(["c"]), 2));
  assert.equal(scene.points.length, 1);
});

test("words with names of JavaScript's own are words like others", () => {
  const scene = new Scene();
  scene.update(frame(["__proto__", "constructor", "toString"]), 0);
  assert.equal(scene.find("__proto__")?.word, "__proto__");
  assert.equal(scene.find("hasOwnProperty"), null);
});

test("the point under the pointer is the nearest within reach", () => {
  const scene = new Scene(), camera = new Camera();
  camera.size = { width: 400, height: 400 };
  scene.update(frame(["a", "b", "c"]), -1e9);
  const b = camera.to_screen({ x: 0.1, y: 0 });
  assert.equal(scene.at({ x: b.x + 3, y: b.y + 2 }, camera, 14, 0)?.word, "b");
  assert.equal(scene.at({ x: 5, y: 5 }, camera, 14, 0), null);
});

test("what is under the pointer stays there when zooming, and moving follows the hand", () => {
  const camera = new Camera();
  camera.size = { width: 800, height: 500 };
  const at = { x: 650, y: 120 }, before = camera.to_map(at);
  camera.zoom_by(3, at);
  const after = camera.to_map(at);
  assert.ok(Math.abs(before.x - after.x) < 1e-12 && Math.abs(before.y - after.y) < 1e-12);
  const place = camera.to_screen({ x: 0.2, y: 0.1 });
  camera.move(30, -20);
  const moved = camera.to_screen({ x: 0.2, y: 0.1 });
  assert.ok(Math.abs(moved.x - place.x - 30) < 1e-9 && Math.abs(moved.y - place.y + 20) < 1e-9);
  for (let i = 0; i < 100; ++i) camera.zoom_by(2);
  assert.ok(camera.zoom <= 60);
});

test("the renderer's matrix puts points where the words are", () => {
  const camera = new Camera();
  camera.size = { width: 900, height: 400 };
  camera.zoom_by(1.7, { x: 100, y: 50 });
  const m = camera.matrix(), point = { x: -0.3, y: 0.6 };
  const x = ((m[0] as number) * point.x + (m[12] as number)) / (900 / 400), y = (m[5] as number) * point.y + (m[13] as number);
  const screen = camera.to_screen(point);
  assert.ok(Math.abs((x + 1) / 2 * 900 - screen.x) < 1e-3 && Math.abs((1 - y) / 2 * 400 - screen.y) < 1e-3);
});

test("moving is slow at both ends", () => {
  assert.deepEqual([ease(0), ease(0.5), ease(1)], [0, 0.5, 1]);
  assert.ok(ease(0.1) < 0.05 && ease(0.9) > 0.95);
});
