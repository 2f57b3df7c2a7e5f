// Where one looks on the map. Map coordinates lie within about -1 … 1 with y upwards; screen coordinates are CSS pixels.

export interface Size { width: number; height: number }
export interface Place { x: number; y: number }

const kMargin = 0.94;  // of the shorter side, for words at the edge
const kZoomMin = 0.5, kZoomMax = 60;

export class Camera {
  x = 0;
  y = 0;
  zoom = 1;
  size: Size = { width: 1, height: 1 };

  /** Pixels for one unit of the map. */
  get scale(): number {
    return this.zoom * kMargin * Math.min(this.size.width, this.size.height) / 2;
  }

  to_screen(place: Place): Place {
    return { x: this.size.width / 2 + (place.x - this.x) * this.scale, y: this.size.height / 2 - (place.y - this.y) * this.scale };
  }

  to_map(place: Place): Place {
    return { x: this.x + (place.x - this.size.width / 2) / this.scale, y: this.y - (place.y - this.size.height / 2) / this.scale };
  }

  move(dx_px: number, dy_px: number): void {
    this.x = clamp(this.x - dx_px / this.scale, -1.5, 1.5);
    this.y = clamp(this.y + dy_px / this.scale, -1.5, 1.5);
  }

  /** What is under `at` on the screen stays there. */
  zoom_by(factor: number, at: Place = { x: this.size.width / 2, y: this.size.height / 2 }): void {
    const before = this.to_map(at);
    this.zoom = clamp(this.zoom * factor, kZoomMin, kZoomMax);
    const after = this.to_map(at);
    this.x += before.x - after.x;
    this.y += before.y - after.y;
  }

  reset(): void {
    this.x = this.y = 0;
    this.zoom = 1;
  }

  /** Column by column, for a renderer whose own coordinates span -1 … 1 over the height. */
  matrix(): Float32Array {
    const s = 2 * this.scale / this.size.height;
    return new Float32Array([s, 0, 0, 0, 0, s, 0, 0, 0, 0, 1, 0, -s * this.x, -s * this.y, 0, 1]);
  }
}

export function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}
