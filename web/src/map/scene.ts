// The words of the map and how they move. A word keeps its slot from frame to frame, so that a renderer can move each
// point from where it was; slots of words that are gone are given to new ones.
import type { MapFrame } from "../api";
import type { Camera, Place } from "./camera";
import { clamp } from "./camera";

export const kMove_ms = 1_400;
const kTrail = 40;

export interface MapPoint {
  word: string;
  count: number;
  group: number;
  x: number;
  y: number;
  from_x: number;
  from_y: number;
  size: number;  // 0 … 1, by how often the word is met
  trail: Place[];  // where it was, oldest first
}

/** Slow at both ends; 0 … 1. */
export function ease(t: number): number {
  return t < 0.5 ? 4 * t * t * t : 1 - (2 - 2 * t) ** 3 / 2;
}

export class Scene {
  points: MapPoint[] = [];
  began_ms = -Infinity;
  private by_word = new Map<string, number>();

  /** True when points can be moved from where they were: none came or went but in the slots of others. */
  update(frame: MapFrame, now_ms: number): boolean {
    const before = this.points, known = this.by_word;
    const count = Math.min(frame.words.length, frame.x.length, frame.y.length);
    const order = place_in_slots(frame.words.slice(0, count), known, before.length);
    const most = Math.log1p(frame.counts.reduce((a, b) => Math.max(a, b), 1));
    this.points = order.map((index) => {
      const word = frame.words[index] as string, x = frame.x[index] ?? 0, y = frame.y[index] ?? 0;
      const slot = known.get(word), old = slot === undefined ? undefined : before[slot];
      const here = old ? this.place(old, now_ms) : { x, y };
      const trail = old ? [...old.trail, { x: old.x, y: old.y }].slice(-kTrail) : [];
      const size = clamp(Math.log1p(frame.counts[index] ?? 0) / most, 0, 1);
      return { word, count: frame.counts[index] ?? 0, group: frame.group[index] ?? 0, x, y, from_x: here.x, from_y: here.y, size, trail };
    });
    this.by_word = new Map(this.points.map((point, slot) => [point.word, slot]));
    this.began_ms = now_ms;
    return before.length === this.points.length;
  }

  find(word: string): MapPoint | null {
    const slot = this.by_word.get(word);
    return slot === undefined ? null : this.points[slot] ?? null;
  }

  /** How far the last move has come, 0 … 1. */
  moved(now_ms: number): number {
    return clamp((now_ms - this.began_ms) / kMove_ms, 0, 1);
  }

  place(point: MapPoint, now_ms: number): Place {
    const t = ease(this.moved(now_ms));
    return { x: point.from_x + (point.x - point.from_x) * t, y: point.from_y + (point.y - point.from_y) * t };
  }

  /** The point nearest to a place on the screen, within `reach_px`. */
  at(place: Place, camera: Camera, reach_px: number, now_ms: number): MapPoint | null {
    let best: MapPoint | null = null, best_px = reach_px;
    for (const point of this.points) {
      const seen = camera.to_screen(this.place(point, now_ms));
      const distance = Math.hypot(seen.x - place.x, seen.y - place.y);
      if (distance < best_px) [best, best_px] = [point, distance];
    }
    return best;
  }
}

/** For each slot the index of its word: known words in their old slots as far as there are slots, new ones in the rest. */
function place_in_slots(words: readonly string[], known: ReadonlyMap<string, number>, slots_before: number): number[] {
  const count = words.length;
  const slots = new Array<number>(count).fill(-1);
  const left: number[] = [];
  words.forEach((word, index) => {
    const slot = known.get(word);
    if (slot !== undefined && slot < count && slot < slots_before && slots[slot] === -1) slots[slot] = index;
    else left.push(index);
  });
  let next = 0;
  return slots.map((index) => (index === -1 ? left[next++] as number : index));
}
