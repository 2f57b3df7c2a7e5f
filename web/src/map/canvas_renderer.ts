// Points on a plain 2-D canvas, for browsers without WebGL.
import type { Camera } from "./camera";
import type { Palette, Renderer } from "./renderer";
import type { Scene } from "./scene";

export class CanvasRenderer implements Renderer {
  readonly name = "2-D canvas";
  private palette: Palette | null = null;

  constructor(private readonly canvas: HTMLCanvasElement) {}

  show(): void {}
  look(): void {}
  destroy(): void {}

  paint(palette: Palette): void {
    this.palette = palette;
  }

  tick(scene: Scene, camera: Camera, now_ms: number): void {
    const context = begin_drawing(this.canvas, camera);
    if (!context || !this.palette) return;
    const { groups } = this.palette;
    context.globalAlpha = 0.75;
    for (const point of scene.points) {
      const at = camera.to_screen(scene.place(point, now_ms));
      if (at.x < -8 || at.y < -8 || at.x > camera.size.width + 8 || at.y > camera.size.height + 8) continue;
      context.fillStyle = groups[point.group % groups.length] as string;
      context.beginPath();
      context.arc(at.x, at.y, radius_px(point.size) * Math.min(3, Math.sqrt(camera.zoom)), 0, 2 * Math.PI);
      context.fill();
    }
  }
}

export function radius_px(size: number): number {
  return 1.2 + 3.2 * size * size;
}

/** Empty, with CSS pixels for units; null where there is no 2-D canvas. */
export function begin_drawing(canvas: HTMLCanvasElement, camera: Camera): CanvasRenderingContext2D | null {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.max(1, Math.round(camera.size.width * ratio)), height = Math.max(1, Math.round(camera.size.height * ratio));
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  const context = canvas.getContext("2d");
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  context?.clearRect(0, 0, camera.size.width, camera.size.height);
  return context;
}
