// Points drawn by regl-scatterplot on the graphics processor. Looking around is the camera's business, not the library's.
import createScatterplot, { createRenderer } from "regl-scatterplot";
import type { Camera } from "./camera";
import { radius_px } from "./canvas_renderer";
import type { Palette, Renderer } from "./renderer";
import { ease, kMove_ms, type Scene } from "./scene";

const kSizes = 16;
type Points = number[][];

export class GlRenderer implements Renderer {
  readonly name = "WebGL";
  private readonly plot: ReturnType<typeof createScatterplot>;
  private readonly renderer: ReturnType<typeof createRenderer>;
  private size = "";
  private drawing = false;
  private waiting: { points: Points; moves: boolean } | null = null;
  private drawn = 0;
  private ended = false;

  /** Throws where WebGL, or a part of it that is needed, is missing. `failed` is called when it fails later on. */
  constructor(canvas: HTMLCanvasElement, private readonly failed: () => void) {
    const drawn_on = document.createElement("canvas");  // from which each picture is copied
    const context = drawn_on.getContext("webgl", { antialias: true, preserveDrawingBuffer: true });
    if (!context?.getExtension("OES_texture_float") || !context.getExtension("OES_element_index_uint"))
      throw new Error("no WebGL with textures of floats");
    drawn_on.addEventListener("webglcontextlost", () => this.fail());
    this.renderer = createRenderer({ canvas: drawn_on });
    this.plot = createScatterplot({
      canvas, renderer: this.renderer, width: "auto", height: "auto", cameraIsFixed: true,
      lassoInitiator: false, showReticle: false, deselectOnEscape: false, deselectOnDblClick: false, colorBy: "valueA",
      sizeBy: "valueB", opacity: 0.8, pointSize: Array.from({ length: kSizes }, (_, i) => 2 * radius_px(i / (kSizes - 1))),
      pointScaleMode: "asinh", spatialIndexUseWorker: false,
    });
  }

  show(scene: Scene, moves: boolean): void {
    const points = scene.points.map((point) => [point.x, point.y, point.group, Math.min(0.999, point.size * point.size + 1e-4)]);
    this.waiting = { points, moves };
    void this.draw_waiting();
  }

  look(camera: Camera): void {
    if (this.ended) return;
    const { width, height } = camera.size, size = `${width} ${height} ${window.devicePixelRatio}`;
    if (size !== this.size) this.renderer.resize(width, height);
    this.size = size;
    this.plot.view(camera.matrix() as unknown as number[], { preventEvent: true });
  }

  tick(): void {}

  paint(palette: Palette): void {
    this.plot.set({ backgroundColor: palette.background, pointColor: [...palette.groups] });
  }

  destroy(): void {
    if (this.ended) return;
    this.ended = true;
    this.plot.destroy();
  }

  /** One frame at a time, the newest next. */
  private async draw_waiting(): Promise<void> {
    if (this.drawing) return;
    this.drawing = true;
    try {
      while (this.waiting !== null && !this.ended) {
        const { points, moves } = this.waiting;
        this.waiting = null;
        const transition = moves && points.length === this.drawn;
        this.drawn = points.length;
        await this.plot.draw(points, { transition, transitionDuration: kMove_ms, transitionEasing: ease,
                                       zDataType: "categorical", wDataType: "continuous" });
      }
    } catch {
      this.fail();
    }
    this.drawing = false;
  }

  private fail(): void {
    if (this.ended) return;
    this.destroy();
    this.failed();
  }
}
