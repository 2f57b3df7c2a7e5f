// One word: its neighbours now, and whom it was near at earlier moments.
import { api, CallError, type Neighbour, type Station } from "./api";
import { by_id, element, word_element } from "./dom";
import { word_bar } from "./tables";
import { fixed, moment, short_count, visible } from "./text";

const kNeighbours = 10, kPathNeighbours = 5;
const kMovedOverlap = 0.5;  // fewer neighbours in common with the next moment: marked as moved

export class WordPanel {
  chosen: string | null = null;
  private readonly area = by_id("word");
  private readonly now = element("div");
  private readonly path = element("div");
  private turn = 0;

  /** `marked` is told of the chosen word and its neighbours whenever they change. */
  constructor(private readonly marked: (word: string | null, neighbours: string[]) => void) {
    this.area.append(element("p", { class: "hint" }, "Choose a word on the map, in a list, or type one above."));
  }

  async choose(word: string): Promise<void> {
    this.chosen = word;
    const turn = ++this.turn;
    this.path.replaceChildren();
    await this.show_neighbours(word, turn);
    await this.show_path(word, turn);
  }

  /** Asks again: another model is served. */
  async refresh(): Promise<void> {
    if (this.chosen !== null) await this.show_neighbours(this.chosen, this.turn);
  }

  private async show_neighbours(word: string, turn: number): Promise<void> {
    try {
      const answer = await api.nearest(word, kNeighbours);
      if (turn !== this.turn) return;
      this.fill_now(word, answer.words[0]?.seen ?? true, answer.neighbours);
      this.marked(word, answer.neighbours.map((each) => each.word));
    } catch (problem) {
      if (turn !== this.turn) return;
      this.marked(word, []);
      const unknown = problem instanceof CallError && problem.status === 404;
      this.area.replaceChildren(element("p", { class: "chosen" }, word_element(word)),
        element("p", { class: "empty" }, unknown ? "This word is not known (yet): it was met too seldom, or never."
                                                 : problem instanceof CallError ? visible(problem.message) : "No answer."));
    }
  }

  private fill_now(word: string, seen: boolean, neighbours: readonly Neighbour[]): void {
    const choose = (other: string) => void this.choose(other);
    const title = element("h3", {}, "Nearest in meaning (1 is the same)");
    const list = element("ul", { class: "bars", id: "neighbours" },
      ...neighbours.map((each) => word_bar(each.word, each.cosine, fixed(each.cosine, 2), choose)));
    const focused = this.now.contains(document.activeElement) ? document.activeElement?.textContent : null;
    this.now.replaceChildren(element("p", { class: "chosen" }, word_element(word),
      element("span", { class: "hint" }, seen ? "" : "never seen; made from its spelling")), title, list);
    if (this.area.firstChild !== this.now) this.area.replaceChildren(this.now, this.path);
    if (focused) Array.from(this.now.querySelectorAll("button")).find((each) => each.textContent === focused)?.focus();
  }

  private async show_path(word: string, turn: number): Promise<void> {
    try {
      const { path } = await api.neighbourhood(word, kPathNeighbours);
      if (turn === this.turn) this.fill_path(path);
    } catch {
      // A model without history has no path: the neighbours of now are all there is.
    }
  }

  private fill_path(stations: readonly Station[]): void {
    const known = stations.filter((station) => station.count > 0).reverse();
    if (known.length < 2) return this.path.replaceChildren();
    const items = known.map((station) => {
      const moved = station.overlap !== null && station.overlap < kMovedOverlap;
      const words = station.neighbours.flatMap((each, i) => (i > 0 ? [", ", word_element(each.word)] : [word_element(each.word)]));
      const alike = station.cosine === null ? "" : `, ${fixed(station.cosine, 2)} like now`;
      return element("li", { attributes: { "data-moved": String(moved) } },
        element("time", {}, `${station.time === null ? "" : `${moment(station.time)}, `}${short_count(station.tokens)} words read${alike}`),
        element("br"), ...words);
    });
    this.path.replaceChildren(element("h3", {}, "Its path: nearest words at earlier moments, newest first"),
      element("ul", { class: "path", id: "path", attributes: { tabindex: "0" } }, ...items));
  }
}
