// What stands over the points: words where there is room for them, the chosen word with its neighbours, and its path.
import { visible } from "../text";
import type { Camera, Place } from "./camera";
import { begin_drawing } from "./canvas_renderer";
import type { Palette } from "./renderer";
import type { MapPoint, Scene } from "./scene";

export interface Marks {
  chosen: string | null;
  hovered: string | null;
  neighbours: readonly string[];
  alerts: ReadonlySet<string>;
}

const kFont = "500 12px system-ui, sans-serif", kStrongFont = "650 14px system-ui, sans-serif";
const kCell_px = 8;

/** Which parts of the picture are taken by a word already. */
class Room {
  private readonly taken = new Set<number>();
  take(x: number, y: number, width: number, height: number, force: boolean): boolean {
    const cells: number[] = [];
    for (let row = Math.floor(y / kCell_px); row <= Math.floor((y + height) / kCell_px); ++row)
      for (let column = Math.floor(x / kCell_px); column <= Math.floor((x + width) / kCell_px); ++column) cells.push(row * 4096 + column);
    if (!force && cells.some((cell) => this.taken.has(cell))) return false;
    for (const cell of cells) this.taken.add(cell);
    return true;
  }
}

export class Overlay {
  palette: Palette | null = null;
  private widths = new Map<string, number>();

  constructor(private readonly canvas: HTMLCanvasElement) {}

  draw(scene: Scene, camera: Camera, marks: Marks, now_ms: number): void {
    const context = begin_drawing(this.canvas, camera);
    if (!context || !this.palette) return;
    const room = new Room();
    const chosen = marks.chosen === null ? null : scene.find(marks.chosen);
    const near = marks.neighbours.map((word) => scene.find(word)).filter((point): point is MapPoint => point !== null);
    const seen = (point: MapPoint) => camera.to_screen(scene.place(point, now_ms));
    if (chosen) this.draw_path(context, chosen, camera, seen(chosen));
    if (chosen) for (const point of near) this.line(context, seen(chosen), seen(point));
    for (const point of near) this.ring(context, seen(point), 5, this.palette.accent);
    const first = [chosen, marks.hovered === null ? null : scene.find(marks.hovered)].filter((point): point is MapPoint => point !== null);
    for (const point of first) {
      this.ring(context, seen(point), 8, this.palette.accent);
      this.label(context, room, point, seen(point), true);
    }
    for (const point of near) this.label(context, room, point, seen(point), false, this.palette.text);
    for (const point of scene.points) if (marks.alerts.has(point.word)) this.ring(context, seen(point), 6, this.palette.text);
    const some = [...scene.points].sort((a, b) => Number(marks.alerts.has(b.word)) - Number(marks.alerts.has(a.word)) || b.count - a.count);
    let left = Math.round(camera.size.width * camera.size.height / 9_000);
    for (const point of some) {
      if (left <= 0) break;
      const at = seen(point);
      if (at.x < 0 || at.y < 0 || at.x > camera.size.width || at.y > camera.size.height) continue;
      if (this.label(context, room, point, at, false, marks.alerts.has(point.word) || !chosen ? this.palette.text : this.palette.muted)) --left;
    }
  }

  private label(context: CanvasRenderingContext2D, room: Room, point: MapPoint, at: Place, strong: boolean, color?: string): boolean {
    const { text, accent, halo } = this.palette as Palette;
    context.font = strong ? kStrongFont : kFont;
    const shown = visible(point.word), width = this.width_of(context, shown, strong);
    const right_edge = this.canvas.clientWidth;
    const x = at.x + 7 + width > right_edge ? at.x - 7 - width : at.x + 7;
    if (!room.take(x, at.y - 7, width, 14, strong)) return false;
    context.textBaseline = "middle";
    context.direction = "ltr";
    context.lineJoin = "round";
    context.lineWidth = 3.5;
    context.strokeStyle = halo;
    // Isolated, so that a word written from the right stays where it belongs.
    const isolated = `\u2068${shown}\u2069`;
    context.strokeText(isolated, x, at.y);
    context.fillStyle = strong ? accent : color ?? text;
    context.fillText(isolated, x, at.y);
    return true;
  }

  private width_of(context: CanvasRenderingContext2D, shown: string, strong: boolean): number {
    const key = (strong ? "+" : "-") + shown;
    let width = this.widths.get(key);
    if (width === undefined) {
      if (this.widths.size > 8_000) this.widths.clear();
      width = context.measureText(shown).width;
      this.widths.set(key, width);
    }
    return width;
  }

  private ring(context: CanvasRenderingContext2D, at: Place, radius: number, color: string): void {
    context.beginPath();
    context.arc(at.x, at.y, radius, 0, 2 * Math.PI);
    context.lineWidth = 2;
    context.strokeStyle = color;
    context.stroke();
  }

  private line(context: CanvasRenderingContext2D, from: Place, to: Place): void {
    context.beginPath();
    context.moveTo(from.x, from.y);
    context.lineTo(to.x, to.y);
    context.lineWidth = 1;
    context.globalAlpha = 0.35;
    context.strokeStyle = (this.palette as Palette).accent;
    context.stroke();
    context.globalAlpha = 1;
  }

  /** Where the word was since the page was opened: thin where it began, dots for the moments. */
  private draw_path(context: CanvasRenderingContext2D, point: MapPoint, camera: Camera, here: Place): void {
    const places = [...point.trail.map((place) => camera.to_screen(place)), here];
    context.strokeStyle = context.fillStyle = (this.palette as Palette).accent;
    for (let i = 1; i < places.length; ++i) {
      const a = places[i - 1] as Place, b = places[i] as Place;
      context.globalAlpha = 0.2 + 0.7 * i / places.length;
      context.lineWidth = 1 + 2 * i / places.length;
      context.beginPath();
      context.moveTo(a.x, a.y);
      context.lineTo(b.x, b.y);
      context.stroke();
      context.beginPath();
      context.arc(a.x, a.y, 2, 0, 2 * Math.PI);
      context.fill();
    }
    context.globalAlpha = 1;
  }
}
