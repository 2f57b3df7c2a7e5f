// The dashboard of streamvec: docs/SERVING.md has the calls and events it lives from.
import { Alerts } from "./alerts";
import { api, is_refusal, when_refused, type Alert, type MapFrame, type Metrics, type ModelCard, type Progress } from "./api";
import { by_id, element, fill_table, set_text, show, word_element } from "./dom";
import { Figures } from "./figures";
import { Login } from "./login";
import { MapPanel } from "./map/map_panel";
import { Search } from "./search";
import { Stream, type Link } from "./stream";
import { duration, short_count, visible, visible_long } from "./text";
import { palette, Theme } from "./theme";
import { WordPanel } from "./word_panel";

/** How a run ends that has not failed; of `serve` there is none. */
const kEnds: Record<string, string> = { serve: "Ready", finished: "Finished", stopped: "Stopped" };

class Dashboard {
  private readonly figures = new Figures();
  private readonly map = new MapPanel((word) => this.choose(word));
  private readonly word = new WordPanel((word, neighbours) => this.map.mark(word, neighbours));
  private readonly alerts = new Alerts((word) => this.choose(word));
  private readonly login = new Login(() => void this.stream.start());
  private readonly stream = new Stream("/api/events", ["progress", "metrics", "alert", "model", "map", "end"], {
    begin: () => this.catch_up(),
    event: (kind, data) => this.take(kind, data),
    link: (link, retry_ms) => this.show_link(link, retry_ms),
    goes_on: (problem) => !is_refusal(problem),
  });
  private link: Link = "connecting";
  private locked = false;
  private retry_ms = 0;
  private card: ModelCard | null = null;
  private ended: string | null = null;
  private listed = 0;

  constructor() {
    new Search((word) => this.choose(word));
    new Theme(() => this.paint());
    when_refused(({ status }) => this.lock(status));
    by_id<HTMLDetailsElement>("map-words-table").addEventListener("toggle", () => this.list_words());
    this.paint();
    void this.stream.start();
  }

  place_of(word: string): { x: number; y: number } | null {
    return this.map.screen_place(word);
  }

  words(): string[] {
    return this.map.scene.points.map((point) => point.word);
  }

  private paint(): void {
    this.map.paint(palette());
    this.figures.repaint();
  }

  private choose(word: string): void {
    void this.word.choose(word);
  }

  private async catch_up(): Promise<void> {
    const past = await api.past();  // the model's card follows with the first event of a model
    this.locked = false;
    this.login.leave();
    this.ended = past.service === "serve" ? "serve" : null;
    this.figures.load(past);
    this.alerts.load(past.alerts);
    this.map.forget_alerts();
    for (const alert of past.alerts) this.map.alert(alert.words);
    void this.word.refresh_path();
    this.tell();
  }

  private take(kind: string, data: unknown): void {
    if (kind === "progress") this.figures.take_progress(data as Progress);
    if (kind === "metrics") this.figures.take_metrics(data as Metrics);
    if (kind === "alert") this.take_alert(data as Alert);
    if (kind === "map") this.take_map(data as MapFrame);
    if (kind === "model") void this.take_model();
    if (kind === "end") this.end((data as { why: string }).why);
    this.tell();
  }

  private end(why: string): void {
    this.ended = why;
    this.figures.finish();
  }

  private take_alert(alert: Alert): void {
    this.alerts.add(alert, true);
    this.map.alert(alert.words);
  }

  private take_map(frame: MapFrame): void {
    this.map.update(frame);
    this.list_words();
  }

  private async take_model(): Promise<void> {
    try {
      this.card = await api.model();
      await this.word.refresh();
    } catch {
      // The stream is about to say that it broke.
    }
    this.tell();
  }

  /** The table beside the map: what it shows, without places. */
  private list_words(): void {
    const details = by_id<HTMLDetailsElement>("map-words-table"), count = this.map.scene.points.length;
    if (!details.open || (count === this.listed && details.contains(document.activeElement) && document.activeElement !== details.firstElementChild)) return;
    this.listed = count;
    const rows = [...this.map.scene.points].sort((a, b) => b.count - a.count);
    fill_table(by_id<HTMLTableElement>("words-table"), [
      { title: "Word", cell: (point) => {
        const button = word_element(point.word, "button");
        button.addEventListener("click", () => this.choose(point.word));
        return button;
      } },
      { title: "Times met", number: true, cell: (point) => point.count.toLocaleString("en") },
      { title: "Group", number: true, cell: (point) => String(point.group + 1) },
    ], rows);
  }

  private tell(): void {
    const progress = this.figures.progress;
    const fraction = by_id<HTMLProgressElement>("fraction");
    show(fraction, typeof progress?.fraction === "number" && this.ended === null);
    fraction.value = progress?.fraction ?? 0;
    if (this.card) set_text(by_id("card"), `streamvec ${visible(this.card.version)}, model ${visible(this.card.model)}, ${short_count(this.card.words)} words × ` +
      `${this.card.dim} dimensions${progress ? `, kernel ${visible(progress.kernel)}` : ""}`);
    this.tell_story(progress);
    this.tell_state();
  }

  private tell_story(progress: Progress | null): void {
    const strong = (text: string) => element("strong", {}, text);
    const story = by_id("story");
    if (progress) {
      const from = progress.sources.length === 0 ? "files" : progress.sources.length === 1 ? "1 source" : `${progress.sources.length} sources`;
      story.replaceChildren(this.ended === null ? "Learning what words mean from " : "Learned what words mean from ", strong(from), ": ",
        strong(`${short_count(progress.tokens)} words`), ` read in ${duration(progress.seconds)}, `, strong(`${short_count(progress.words)} different ones`), " known.");
    } else if (this.card) {
      story.replaceChildren("Answering questions about ", strong(`${short_count(this.card.words)} words`), `, learned from ${short_count(this.card.tokens)} words of text.`);
    }
  }

  private tell_state(): void {
    const failed = this.ended !== null && !Object.hasOwn(kEnds, this.ended);
    if (this.locked) return this.say("connecting", "Locked", null);
    if (failed) return this.say("broken", "Failed", `Training ended: ${visible_long(this.ended ?? "")}`);
    if (this.link === "broken") return this.say("broken", "No connection", this.ended === null || this.ended === "serve"
      ? `The connection to the service broke. What you see is how it stood; trying again in ${duration(this.retry_ms / 1000)}.`
      : "Training is over and the service has ended. What you see is how it stood.");
    if (this.link === "connecting") return this.say("connecting", "Connecting", null);
    this.say(this.ended === null ? "live" : "done", this.ended === null ? "Learning" : kEnds[this.ended] ?? "", null);
  }

  private say(state: string, text: string, notice: string | null): void {
    by_id("state").dataset.state = state;
    set_text(by_id("state-text"), text);
    show(by_id("notice"), notice !== null);
    if (notice !== null) set_text(by_id("notice"), notice);
  }

  private show_link(link: Link, retry_ms: number): void {
    this.link = link;
    this.retry_ms = retry_ms;
    this.tell_state();
  }

  private lock(status: number): void {
    this.locked = true;
    this.tell_state();
    this.login.ask(status === 403 ? "The token you have is for figures only; this page needs one for questions." : "");
  }
}

const dashboard = new Dashboard();
// For tests: the words of the map, and where on the page one is.
Object.assign(window, { streamvec_place_of: (word: string) => dashboard.place_of(word), streamvec_words: () => dashboard.words() });
