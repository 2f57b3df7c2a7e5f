// The map: points, words over them, and looking around with mouse, fingers or keys.
import type { MapFrame } from "../api";
import { by_id, set_text, show } from "../dom";
import { short_count, visible } from "../text";
import { Camera, type Place } from "./camera";
import { CanvasRenderer } from "./canvas_renderer";
import { GlRenderer } from "./gl_renderer";
import { Overlay, type Marks } from "./overlay";
import type { Palette, Renderer } from "./renderer";
import { Scene } from "./scene";

const kReach_px = 14, kStep_px = 60, kClick_px = 5;

function on_button(event: MouseEvent): boolean {
  return (event.target as Element).closest("button") !== null;
}

export class MapPanel {
  readonly marks: Marks & { chosen: string | null; hovered: string | null; neighbours: string[]; alerts: Set<string> } =
    { chosen: null, hovered: null, neighbours: [], alerts: new Set() };
  readonly scene = new Scene();
  private readonly camera = new Camera();
  private readonly area = by_id<HTMLDivElement>("map");
  private readonly overlay = new Overlay(by_id<HTMLCanvasElement>("map-words"));
  private renderer: Renderer;
  private palette: Palette | null = null;
  private frame_asked = false;
  private readonly fingers = new Map<number, Place>();
  private travelled_px = 0;
  private readonly calm = window.matchMedia("(prefers-reduced-motion: reduce)");

  constructor(private readonly choose: (word: string) => void) {
    this.renderer = this.make_renderer();
    this.area.dataset.renderer = this.renderer.name;
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.area);
    this.resize();
  }

  update(frame: MapFrame): void {
    const now = performance.now();
    const moves = this.scene.update(frame, now) && !this.calm.matches;
    if (!moves) this.scene.began_ms = -Infinity;
    this.renderer.show(this.scene, moves);
    show(by_id("map-empty"), this.scene.points.length === 0);
    set_text(by_id("map-empty"), "There are too few words for a map.");
    set_text(by_id("map-caption"), this.scene.points.length === 0 ? "" : `${short_count(this.scene.points.length)} of the most frequent words`);
    this.area.dataset.points = String(this.scene.points.length);
    this.area.dataset.model = String(frame.model);
    this.redraw();
  }

  paint(palette: Palette): void {
    this.palette = this.overlay.palette = palette;
    this.renderer.paint(palette);
    this.redraw();
  }

  mark(chosen: string | null, neighbours: string[]): void {
    this.marks.chosen = chosen;
    this.marks.neighbours = neighbours;
    this.redraw();
  }

  forget_alerts(): void {
    this.marks.alerts.clear();
    this.redraw();
  }

  alert(words: readonly string[]): void {
    for (const word of words) this.marks.alerts.add(word);
    this.redraw();
  }

  /** Where a word is on the page, for tests and for the keyboard; null when the map has it not. */
  screen_place(word: string): Place | null {
    const point = this.scene.find(word);
    if (!point) return null;
    const box = this.area.getBoundingClientRect(), at = this.camera.to_screen(this.scene.place(point, performance.now()));
    return { x: box.left + at.x, y: box.top + at.y };
  }

  private make_renderer(): Renderer {
    const canvas = this.fresh_canvas();
    try {
      return new GlRenderer(canvas, () => this.use_canvas());
    } catch {
      return new CanvasRenderer(this.fresh_canvas());
    }
  }

  /** A canvas that had one kind of picture cannot have the other. */
  private fresh_canvas(): HTMLCanvasElement {
    const old = by_id<HTMLCanvasElement>("map-points"), made = old.cloneNode(false) as HTMLCanvasElement;
    old.replaceWith(made);
    return made;
  }

  private use_canvas(): void {
    this.renderer = new CanvasRenderer(this.fresh_canvas());
    this.area.dataset.renderer = this.renderer.name;
    if (this.palette) this.renderer.paint(this.palette);
    this.redraw();
  }

  private resize(): void {
    const { clientWidth: width, clientHeight: height } = this.area;
    if (width === 0 || height === 0) return;
    this.camera.size = { width, height };
    this.redraw();
  }

  private redraw(): void {
    if (this.frame_asked) return;
    this.frame_asked = true;
    requestAnimationFrame((now) => {
      this.frame_asked = false;
      this.renderer.look(this.camera);
      this.renderer.tick(this.scene, this.camera, now);
      this.overlay.draw(this.scene, this.camera, this.marks, now);
      const still = this.scene.moved(now) >= 1;
      this.area.dataset.still = String(still);
      if (!still) this.redraw();
    });
  }

  private listen(): void {
    this.area.addEventListener("pointerdown", (event) => this.down(event));
    this.area.addEventListener("pointermove", (event) => this.move(event));
    for (const kind of ["pointerup", "pointercancel"] as const) this.area.addEventListener(kind, (event) => this.up(event));
    this.area.addEventListener("pointerleave", () => this.hover(null));
    this.area.addEventListener("dblclick", (event) => {
      if (!on_button(event)) this.zoom(2, this.place_of(event));
    });
    // The wheel scrolls the page unless the map has the focus.
    this.area.addEventListener("wheel", (event) => {
      if (document.activeElement !== this.area && !event.ctrlKey) return;
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY * (event.deltaMode === 1 ? 0.05 : 0.0016)), this.place_of(event));
    }, { passive: false });
    this.area.addEventListener("keydown", (event) => this.key(event));
    by_id("map-in").addEventListener("click", () => this.zoom(1.5));
    by_id("map-out").addEventListener("click", () => this.zoom(1 / 1.5));
    by_id("map-all").addEventListener("click", () => this.reset());
  }

  private place_of(event: MouseEvent): Place {
    const box = this.area.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  private zoom(factor: number, at?: Place): void {
    this.camera.zoom_by(factor, at);
    this.redraw();
  }

  private reset(): void {
    this.camera.reset();
    this.redraw();
  }

  private down(event: PointerEvent): void {
    if (event.button !== 0 || on_button(event)) return;
    if (this.fingers.size === 0) this.travelled_px = 0;
    this.fingers.set(event.pointerId, this.place_of(event));
    this.area.setPointerCapture(event.pointerId);
  }

  private move(event: PointerEvent): void {
    const before = this.fingers.get(event.pointerId), now = this.place_of(event);
    if (!before) {
      this.hover(this.scene.at(now, this.camera, kReach_px, performance.now())?.word ?? null);
      return;
    }
    this.travelled_px += Math.hypot(now.x - before.x, now.y - before.y);
    if (this.fingers.size === 1 && this.travelled_px > kClick_px) this.camera.move(now.x - before.x, now.y - before.y);
    const other = [...this.fingers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) {
      const apart = (place: Place) => Math.max(10, Math.hypot(place.x - other.x, place.y - other.y));
      this.camera.zoom_by(apart(now) / apart(before), other);
    }
    this.fingers.set(event.pointerId, now);
    this.redraw();
  }

  private up(event: PointerEvent): void {
    if (!this.fingers.delete(event.pointerId) || event.type === "pointercancel" || this.travelled_px > kClick_px) return;
    const point = this.scene.at(this.place_of(event), this.camera, kReach_px * (event.pointerType === "touch" ? 2 : 1), performance.now());
    if (point) this.choose(point.word);
  }

  private hover(word: string | null): void {
    if (this.marks.hovered === word) return;
    this.marks.hovered = word;
    const point = word === null ? null : this.scene.find(word);
    this.area.title = point ? `${visible(point.word)}: met ${short_count(point.count)} times` : "";
    this.area.classList.toggle("pointing", word !== null);
    this.redraw();
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== this.area) return;
    const moves: Record<string, [number, number]> =
      { ArrowLeft: [kStep_px, 0], ArrowRight: [-kStep_px, 0], ArrowUp: [0, kStep_px], ArrowDown: [0, -kStep_px] };
    const by = moves[event.key];
    if (by) this.camera.move(...by);
    else if (event.key === "+" || event.key === "=") this.camera.zoom_by(1.3);
    else if (event.key === "-") this.camera.zoom_by(1 / 1.3);
    else if (event.key === "0" || event.key === "Home") this.camera.reset();
    else if (event.key === "Enter" || event.key === " ") this.choose_middle();
    else return;
    event.preventDefault();
    this.redraw();
  }

  /** The word nearest to the middle, for who has no pointer. */
  private choose_middle(): void {
    const { width, height } = this.camera.size;
    const point = this.scene.at({ x: width / 2, y: height / 2 }, this.camera, Math.max(width, height), performance.now());
    if (point) this.choose(point.word);
  }
}
