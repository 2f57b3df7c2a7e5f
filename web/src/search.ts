// The search field: words that begin with what was typed, to choose by keys or pointer.
import { api } from "./api";
import { by_id, element, show, word_element } from "./dom";
import { short_count } from "./text";

const kSuggestions = 12;

export class Search {
  private readonly input = by_id<HTMLInputElement>("search-text");
  private readonly list = by_id<HTMLUListElement>("search-list");
  private words: string[] = [];
  private at = -1;
  private asked = 0;

  constructor(private readonly choose: (word: string) => void) {
    this.input.addEventListener("input", () => void this.suggest());
    this.input.addEventListener("keydown", (event) => this.key(event));
    this.input.addEventListener("blur", () => this.close());
    by_id("search").addEventListener("submit", (event) => {
      event.preventDefault();
      this.take(this.words[this.at] ?? this.input.value.trim());
    });
  }

  private async suggest(): Promise<void> {
    const prefix = this.input.value.trim(), turn = ++this.asked;
    if (prefix === "") return this.close();
    try {
      const { words } = await api.words(prefix, kSuggestions);
      if (turn === this.asked && document.activeElement === this.input) this.open(words);
    } catch {
      this.close();
    }
  }

  private open(words: readonly { word: string; count: number }[]): void {
    this.words = words.map(({ word }) => word);
    this.at = -1;
    this.list.replaceChildren(...words.map(({ word, count }, i) => {
      const item = element("li", { id: `search-${i}`, attributes: { role: "option", "aria-selected": "false" } },
        word_element(word), element("span", { class: "hint" }, `met ${short_count(count)} times`));
      // Before the field loses the focus, which closes the list.
      item.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        this.take(word);
      });
      return item;
    }));
    this.expand(words.length > 0);
  }

  private expand(open: boolean): void {
    show(this.list, open);
    this.input.setAttribute("aria-expanded", String(open));
    if (!open) this.input.removeAttribute("aria-activedescendant");
  }

  private close(): void {
    ++this.asked;
    this.words = [];
    this.at = -1;
    this.expand(false);
  }

  private key(event: KeyboardEvent): void {
    if (event.key === "Escape") this.close();
    if ((event.key !== "ArrowDown" && event.key !== "ArrowUp") || this.words.length === 0) return;
    event.preventDefault();
    const count = this.words.length;
    this.at = event.key === "ArrowDown" ? (this.at + 1) % count : (this.at + count - (this.at < 0 ? 0 : 1)) % count;
    Array.from(this.list.children).forEach((item, i) => item.setAttribute("aria-selected", String(i === this.at)));
    this.list.children[this.at]?.scrollIntoView({ block: "nearest" });
    this.input.setAttribute("aria-activedescendant", `search-${this.at}`);
  }

  private take(word: string): void {
    this.close();
    this.input.value = word;
    if (word !== "") this.choose(word);
  }
}
