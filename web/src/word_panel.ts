// One word: its neighbours now, and whom it was near at earlier moments.
import { api, CallError, type Neighbour, type Station } from "./api";
import { by_id, element, set_text, word_element } from "./dom";
import { word_bar } from "./tables";
import { fixed, moment, short_count, visible, visible_long } from "./text";

const kNeighbours = 10, kPathNeighbours = 5;
const kMovedOverlap = 0.5;  // fewer neighbours in common with the next moment: marked as moved

export class WordPanel {
  chosen: string | null = null;
  private readonly area = by_id("word");
  private readonly heading = element("p", { class: "chosen", attributes: { tabindex: "-1" } });
  private readonly now = element("div");
  private readonly path = element("div");
  private turn = 0;

  /** `marked` is told of the chosen word and its neighbours whenever they change. */
  constructor(private readonly marked: (word: string | null, neighbours: string[]) => void) {
    this.area.append(element("p", { class: "hint" }, "Choose a word on the map, in a list, or type one above."));
  }

  async choose(word: string): Promise<void> {
    const turn = ++this.turn, focused = this.area.contains(document.activeElement);
    this.chosen = word;
    this.marked(word, []);
    this.heading.replaceChildren(word_element(word));
    this.now.replaceChildren(element("p", { class: "hint" }, "Asking …"));
    this.path.replaceChildren();
    this.area.replaceChildren(this.heading, this.now, this.path);
    if (focused) this.heading.focus();
    const said = await this.show_neighbours(word, turn);
    if (turn !== this.turn) return;
    set_text(by_id("word-said"), said);
    await this.show_path(word, turn);
  }

  /** Asks again: another model is served. */
  async refresh(): Promise<void> {
    if (this.chosen !== null) await this.show_neighbours(this.chosen, this.turn);
  }

  /** Asks for the past again: the service may be another one. */
  async refresh_path(): Promise<void> {
    if (this.chosen !== null) await this.show_path(this.chosen, this.turn);
  }

  /** Returns what there is to say about it. */
  private async show_neighbours(word: string, turn: number): Promise<string> {
    try {
      const answer = await api.nearest(word, kNeighbours);
      if (turn !== this.turn) return "";
      const near = answer.neighbours.map((each) => each.word);
      this.fill_now(word, answer.words[0]?.seen ?? true, answer.neighbours);
      this.marked(word, near);
      return near.length === 0 ? visible(word) : `${visible(word)}: nearest are ${near.slice(0, 3).map(visible).join(", ")}.`;
    } catch (problem) {
      if (turn !== this.turn) return "";
      this.marked(word, []);
      const said = !(problem instanceof CallError) ? "No answer."
        : problem.status === 404 ? "This word is not known (yet): it was met too seldom, or never." : visible_long(problem.message);
      this.fill([element("p", { class: "empty" }, said)]);
      return `${visible(word)}: ${said}`;
    }
  }

  private fill_now(word: string, seen: boolean, neighbours: readonly Neighbour[]): void {
    const choose = (other: string) => void this.choose(other);
    this.heading.replaceChildren(word_element(word), element("span", { class: "hint" }, seen ? "" : "never seen; made from its spelling"));
    this.fill([element("h3", {}, "Nearest in meaning (1 is the same)"), element("ul", { class: "bars", id: "neighbours" },
      ...neighbours.map((each) => word_bar(each.word, each.cosine, fixed(each.cosine, 2), choose)))]);
  }

  /** The focus stays on its word, or else on its place in the list. */
  private fill(children: readonly HTMLElement[]): void {
    const buttons = () => Array.from(this.now.querySelectorAll("button"));
    const place = buttons().findIndex((each) => each === document.activeElement), word = buttons()[place]?.textContent;
    this.now.replaceChildren(...children);
    if (place >= 0) (buttons().find((each) => each.textContent === word) ?? buttons()[place] ?? this.heading).focus();
  }

  private async show_path(word: string, turn: number): Promise<void> {
    try {
      const { path } = await api.neighbourhood(word, kPathNeighbours);
      if (turn === this.turn) this.fill_path(path);
    } catch {
      // A model without history has no path: the neighbours of now are all there is.
      if (turn === this.turn) this.path.replaceChildren();
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
    const made = element("div", {}, element("h3", {}, "Its path: nearest words at earlier moments, newest first"),
      element("ul", { class: "path", id: "path", attributes: { tabindex: "0" } }, ...items));
    if (!this.path.isEqualNode(made)) this.path.replaceChildren(...made.children);
  }
}
