// Figures over time, kept small: when there are too many points, every other one of the older half goes.

export class Series {
  readonly times: number[] = [];
  readonly columns: (number | null)[][];

  constructor(readonly width: number, private readonly points_max = 1_200) {
    this.columns = Array.from({ length: width }, () => []);
  }

  get length(): number {
    return this.times.length;
  }

  /** Times rise; a point that is not newer than the last one is left out. */
  add(time: number, values: readonly (number | null | undefined)[]): void {
    const last = this.times[this.times.length - 1];
    if (!Number.isFinite(time) || (last !== undefined && time <= last)) return;
    this.times.push(time);
    for (let i = 0; i < this.width; ++i) {
      const value = values[i];
      this.columns[i]?.push(typeof value === "number" && Number.isFinite(value) ? value : null);
    }
    if (this.times.length > this.points_max) this.thin();
  }

  clear(): void {
    this.times.length = 0;
    for (const column of this.columns) column.length = 0;
  }

  /** The newest value that is known, and how long before the end it was `back` values ago. */
  latest(column: number): number | null {
    const values = this.columns[column] ?? [];
    for (let i = values.length - 1; i >= 0; --i) {
      const value = values[i];
      if (value !== null && value !== undefined) return value;
    }
    return null;
  }

  /** Running means over `span` known values, for figures that jump. */
  smooth(column: number, span: number): (number | null)[] {
    const recent: number[] = [];
    let sum = 0;
    return (this.columns[column] ?? []).map((value) => {
      if (value === null) return null;
      recent.push(value);
      sum += value;
      if (recent.length > span) sum -= recent.shift() as number;
      return sum / recent.length;
    });
  }

  private thin(): void {
    const half = this.times.length >> 1;
    const stays = (_: unknown, i: number) => i >= half || i % 2 === 0;
    replace(this.times, this.times.filter(stays));
    for (const column of this.columns) replace(column, column.filter(stays));
  }
}

function replace<Type>(target: Type[], values: readonly Type[]): void {
  target.length = 0;
  for (const value of values) target.push(value);
}
