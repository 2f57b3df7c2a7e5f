// Draws the points of the map; words, selection and paths are drawn over it by overlay.ts.
import type { Camera } from "./camera";
import type { Scene } from "./scene";

export interface Palette {
  background: string;  // "#rrggbb"
  text: string;
  muted: string;
  accent: string;
  halo: string;
  groups: readonly string[];  // "#rrggbb" each
}

export interface Renderer {
  readonly name: string;  // for people
  /** `moves`: from their last places, over kMove_ms; otherwise they are there at once. */
  show(scene: Scene, moves: boolean): void;
  look(camera: Camera): void;
  /** Called for each frame while points move. */
  tick(scene: Scene, camera: Camera, now_ms: number): void;
  paint(palette: Palette): void;
  destroy(): void;
}
