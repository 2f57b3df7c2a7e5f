// The first row: one figure each, what it means, and whether it is getting better.
import { change } from "./trend";
import { by_id, element, set_text } from "./dom";

interface TileText {
  key: string;
  title: string;
  unit: string;
  hint: string;
  better: "up" | "down" | "none";
}

const kTiles = [
  { key: "speed", title: "Reading speed", unit: "words/s", hint: "Words learned from in a second, now.", better: "none" },
  { key: "loss", title: "Learning error", unit: "", hint: "How wrong its guesses about nearby words are. Lower is better.", better: "down" },
  { key: "new", title: "Error on new text", unit: "", hint: "The same, on text before it is learned. Lower is better.", better: "down" },
  { key: "pip", title: "Distance from the text", unit: "", hint: "PIP loss: 0 % says all that the text says, 100 % knows nothing.", better: "down" },
  { key: "similarity", title: "Agreement with people", unit: "", hint: "Rank correlation with people's judgements of likeness; 1 is full.", better: "up" },
  { key: "replay", title: "Replay ratio", unit: "×", hint: "How often each piece of text is practised.", better: "none" },
] as const satisfies readonly TileText[];
export type TileKey = (typeof kTiles)[number]["key"];

export class Tiles {
  private readonly tiles = new Map<string, { figure: HTMLElement; trend: HTMLElement; hint: HTMLElement; text: TileText }>();

  constructor() {
    for (const text of kTiles as readonly TileText[]) {
      const figure = element("span", { class: "value" }, "–");
      const trend = element("p", { class: "trend" }), hint = element("p", { class: "hint" }, text.hint);
      by_id("tiles").append(element("article", { class: "card tile", id: `tile-${text.key}` }, element("h2", {}, text.title),
        element("p", { class: "figure" }, figure, element("span", { class: "unit" }, text.unit ? ` ${text.unit}` : "")), trend, hint));
      this.tiles.set(text.key, { figure, trend, hint, text });
    }
  }

  /** `since`: what `before` is of, such as "in a minute". */
  set(key: TileKey, shown: string, before: number | null, now: number | null, since: string, hint?: string): void {
    const tile = this.tiles.get(key);
    if (!tile) return;
    set_text(tile.figure, shown);
    const { text, way } = change(before, now);
    set_text(tile.trend, text === "" ? "" : `${text} ${since}`);
    tile.trend.dataset.way = way === "none" || tile.text.better === "none" ? "" : way === tile.text.better ? "good" : "bad";
    set_text(tile.hint, hint ?? tile.text.hint);
  }
}
