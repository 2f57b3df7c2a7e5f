// Everything about the run that is a number: takes the events, keeps them over time, fills tiles, charts and tables.
import type { Metrics, Past, Progress } from "./api";
import { Chart } from "./charts";
import { Series } from "./series";
import { show_bottleneck, show_cluster, show_sources, show_stages } from "./tables";
import { duration, fixed, moment, percent, short_count } from "./text";
import { Tiles, type TileKey } from "./tiles";
import { known_before } from "./trend";

const kBack_s = 60;  // trends are against a minute ago
const kSmooth = 8;  // events of half a second in a running mean

/** Zero stands for "nothing was measured" in losses. */
function measured(value: number | null | undefined): number | null {
  return value === 0 || value === undefined ? null : value;
}

function mean(values: Readonly<Record<string, number | null>> | null | undefined): number | null {
  const known = Object.values(values ?? {}).filter((value): value is number => typeof value === "number");
  return known.length === 0 ? null : known.reduce((a, b) => a + b, 0) / known.length;
}

export class Figures {
  progress: Progress | null = null;
  private serves = false;  // it only reads the figures of a run, and has no others
  private over = false;
  /** Lines of metrics are long apart, and each is a mean already. */
  private readonly span = () => (this.serves ? 1 : kSmooth);
  private readonly tiles = new Tiles();
  private readonly losses = new Series(2);
  private readonly speed = new Series(1);
  private readonly replay = new Series(1);
  private readonly quality = new Series(3);
  private readonly charts = [
    new Chart({ title: "Learning error", hint: "Lower is better. It falls quickly, then slowly; a jump up means that the text has changed.",
                lines: ["on practised text", "on new text"], shown: (value) => fixed(value, 3), smooth: this.span }, this.losses),
    new Chart({ title: "Reading speed", hint: "Words a second.", lines: ["words/s"], shown: short_count, smooth: this.span, from_zero: true }, this.speed),
    new Chart({ title: "Quality", hint: "Distance should fall; the others should rise towards 1.",
                lines: ["distance from the text (PIP)", "same neighbours as last time", "agreement with people"],
                shown: (value) => fixed(value, 2), points: true, from_zero: true }, this.quality),
    new Chart({ title: "Replay ratio", hint: "How often each piece of text is practised before it is forgotten.", lines: ["times"],
                shown: (value) => fixed(value, 1), smooth: this.span, from_zero: true }, this.replay),
  ];

  /** What happened before the page was opened, or while it could not listen. */
  load(past: Past): void {
    for (const series of [this.losses, this.speed, this.replay, this.quality]) series.clear();
    this.progress = null;
    this.serves = past.service === "serve";
    this.over = this.serves;
    for (const each of past.progress) this.keep_progress(each);
    for (const each of past.metrics) this.keep_metrics(each);
    const last = past.metrics[past.metrics.length - 1];
    show_stages(last?.stages ?? null);
    if (this.progress) return this.show_progress(this.progress);
    show_sources(last?.sources ?? []);
    show_cluster(null);
    show_bottleneck(last ? last.bottleneck : this.serves ? null : undefined);
    this.show_figures();
  }

  take_progress(progress: Progress): void {
    this.keep_progress(progress);
    this.show_progress(progress);
  }

  take_metrics(metrics: Metrics): void {
    this.keep_metrics(metrics);
    this.show_metrics(metrics);
    this.show_figures();
  }

  /** The run is over: nothing is being read any more. */
  finish(): void {
    this.over = true;
    this.show_figures();
    if (this.progress) show_sources(this.progress.sources.map((source) => (source.state === "reading" ? { ...source, state: "ended" } : source)));
  }

  repaint(): void {
    for (const chart of this.charts) chart.repaint();
  }

  private keep_progress(progress: Progress): void {
    const before = this.progress;
    if (before !== null && progress.time <= before.time) return;
    const passed = before === null ? 0 : progress.time - before.time;
    if (before !== null && passed > 0) this.speed.add(progress.time, [Math.max(0, (progress.tokens - before.tokens) / passed)]);
    this.losses.add(progress.time, [measured(progress.loss), measured(progress.prequential_loss)]);
    if (progress.replay) this.replay.add(progress.time, [progress.replay.ratio]);
    this.progress = progress;
  }

  private keep_metrics(metrics: Metrics): void {
    this.quality.add(metrics.time, [metrics.pip?.relative, metrics.overlap_with_last, mean(metrics.similarity)]);
    if (this.serves) {
      this.losses.add(metrics.time, [measured(metrics.loss), measured(metrics.prequential_loss)]);
      this.speed.add(metrics.time, [metrics.tokens_per_s]);
      if (metrics.replay) this.replay.add(metrics.time, [metrics.replay.ratio]);
    }
  }

  private show_progress(progress: Progress): void {
    show_sources(progress.sources);
    show_cluster(progress.cluster);
    show_bottleneck(progress.bottleneck);
    this.show_figures();
  }

  private show_metrics(metrics: Metrics): void {
    show_stages(metrics.stages);
    if (this.serves) {
      show_sources(metrics.sources ?? []);
      show_bottleneck(metrics.bottleneck);
    }
  }

  private show_figures(): void {
    for (const chart of this.charts) chart.update();
    const of_files = typeof this.progress?.fraction === "number", measured_at = this.speed.times[this.speed.length - 1];
    this.tile("speed", this.speed, 0, short_count, this.span(),
              !this.over || measured_at === undefined ? undefined : `Words learned from in a second, last measured ${moment(measured_at)}.`);
    this.tile("loss", this.losses, 0, (value) => fixed(value, 3), this.span());
    this.tile("new", this.losses, 1, (value) => fixed(value, 3), this.span());
    this.tile("pip", this.quality, 0, percent, 1, this.quality.latest(0) !== null || !this.progress ? undefined
              : of_files ? "PIP loss: of files measured by streamvec eval ‑‑pip." : "PIP loss: measured every now and then. 100 % knows nothing.");
    this.tile("similarity", this.quality, 2, (value) => fixed(value, 2), 1, this.quality.latest(2) !== null ? undefined
              : of_files ? "Of files measured by streamvec eval ‑‑similarity." : "Not measured: give a list of judged pairs with ‑‑similarity.");
    this.tile("replay", this.replay, 0, (value) => fixed(value, 1), this.span());
  }

  private tile(key: TileKey, series: Series, column: number, shown: (value: number | null) => string, span: number, hint?: string): void {
    const values = series.smooth(column, span), times = series.times;
    const now = known_before(times, values, 0), old = known_before(times, values, kBack_s);
    const passed = now && old ? now.time - old.time : 0;
    const since = passed < kBack_s ? "since start" : passed < 1.5 * kBack_s ? "in a minute" : `in ${duration(passed)}`;
    this.tiles.set(key, shown(now?.value ?? null), passed > 0 ? old?.value ?? null : null, now?.value ?? null, since, hint);
  }
}
