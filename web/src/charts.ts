// Figures over time: lines by uPlot, and the same numbers as a table for who cannot see them.
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { time_label, time_range, value_range } from "./axes";
import { by_id, element, fill_table, set_text } from "./dom";
import type { Series } from "./series";
import { moment } from "./text";
import { color } from "./theme";

export interface ChartText {
  title: string;
  hint: string;
  lines: readonly string[];
  shown: (value: number | null) => string;
  smooth?: () => number;  // values in a running mean
  points?: boolean;
  from_zero?: boolean;
}

const kRows = 12;

export class Chart {
  private readonly plot: uPlot;
  private readonly area = element("div", { class: "plot", attributes: { role: "img" } });
  private readonly values: HTMLElement[];
  private readonly table = element("table");
  private readonly details = element("details", {}, element("summary", {}, "As a table"),
    element("div", { class: "scroll", attributes: { tabindex: "0", role: "region", "aria-label": "Figures" } }, this.table));

  constructor(private readonly text: ChartText, private readonly series: Series) {
    this.values = text.lines.map(() => element("b", {}, "–"));
    const legend = element("ul", { class: "legend" }, ...text.lines.map((line, i) => element("li", {}, `${line} `, this.values[i] as HTMLElement)));
    by_id("charts").append(element("section", { class: "card chart" }, element("h2", {}, text.title),
      element("p", { class: "hint" }, text.hint), legend, this.area, this.details));
    this.plot = new uPlot(this.options(), this.data(), this.area);
    new ResizeObserver(() => this.plot.setSize(this.size())).observe(this.area);
    this.details.addEventListener("toggle", () => this.fill());
  }

  update(): void {
    this.plot.setData(this.data());
    const now = this.text.lines.map((_, i) => this.text.shown(this.smoothed(i)));
    now.forEach((shown, i) => set_text(this.values[i] as HTMLElement, shown));
    const label = `${this.text.title}: ${this.text.lines.map((line, i) => `${line} ${now[i]}`).join(", ")}`;
    if (this.area.getAttribute("aria-label") !== label) this.area.setAttribute("aria-label", label);
    this.area.dataset.points = String(this.series.length);
    if (this.details.open) this.fill();
  }

  repaint(): void {
    this.plot.setData(this.data());
  }

  private smoothed(column: number): number | null {
    const values = this.line(column);
    for (let i = values.length - 1; i >= 0; --i) if (values[i] !== null) return values[i] as number;
    return null;
  }

  private data(): uPlot.AlignedData {
    return [this.series.times, ...this.series.columns.map((_, i) => this.line(i))] as uPlot.AlignedData;
  }

  private line(column: number): (number | null)[] {
    return this.text.smooth ? this.series.smooth(column, this.text.smooth()) : this.series.columns[column] ?? [];
  }

  private size(): { width: number; height: number } {
    return { width: Math.max(120, this.area.clientWidth), height: Math.max(90, this.area.clientHeight) };
  }

  private options(): uPlot.Options {
    const axis: uPlot.Axis = {
      stroke: () => color("muted"), font: "11px system-ui, sans-serif", ticks: { show: false },
      grid: { stroke: () => color("line"), width: 1 },
    };
    const lines = this.text.lines.map((label, i): uPlot.Series => ({
      label, stroke: () => color(`series-${i + 1}`), width: 2, spanGaps: true, points: { show: this.text.points ?? false, size: 5 },
    }));
    return {
      ...this.size(), legend: { show: false }, cursor: { y: false, drag: { x: false, y: false } }, series: [{}, ...lines],
      scales: { x: { time: true, range: (_, low, high) => time_range(low, high) }, y: { range: (_, low, high) => value_range(low, high, this.text.from_zero ?? false) } },
      axes: [{ ...axis, space: 70, values: (_, ticks) => ticks.map((tick) => time_label(tick, ticks)) }, { ...axis, size: 52, values: (_, ticks) => ticks.map((tick) => this.text.shown(tick)) }],
    };
  }

  /** A dozen moments, the newest first. */
  private fill(): void {
    const count = this.series.length, step = Math.max(1, Math.floor(count / kRows));
    const rows: number[] = [];
    for (let i = count - 1; i >= 0 && rows.length < kRows; i -= step) rows.push(i);
    fill_table(this.table, [
      { title: "Time", cell: (i: number) => moment(this.series.times[i]) },
      ...this.text.lines.map((line, c) => ({ title: line, number: true, cell: (i: number) => this.text.shown(this.series.columns[c]?.[i] ?? null) })),
    ], rows);
  }
}
