// Words whose meaning moved beyond chance, the newest first.
import type { Alert } from "./api";
import { by_id, element, set_text, show, word_element } from "./dom";
import { moment, visible } from "./text";

const kShown = 60;

export class Alerts {
  private readonly known = new Set<string>();

  constructor(private readonly choose: (word: string) => void) {}

  /** Those so far, in place of any others: the list stays as it is where it has them all. */
  load(alerts: readonly Alert[]): void {
    const words = new Set(alerts.flatMap((alert) => alert.words));
    if (words.size === this.known.size && [...words].every((word) => this.known.has(word))) return;
    this.known.clear();
    by_id("alerts").replaceChildren();
    show(by_id("alerts-none"), true);
    for (const alert of alerts) this.add(alert, false);
  }

  /** `aloud`: it has just come, and a screen reader should say so. */
  add(alert: Alert, aloud: boolean): void {
    const words = alert.words.filter((word) => !this.known.has(word));
    if (words.length === 0) return;
    const list = by_id("alerts");
    for (const word of [...words].reverse()) {
      this.known.add(word);
      const button = word_element(word, "button");
      button.addEventListener("click", () => this.choose(word));
      list.prepend(element("li", {}, button, element("time", {}, moment(alert.time))));
    }
    while (list.children.length > kShown) list.lastElementChild?.remove();
    show(by_id("alerts-none"), false);
    if (aloud) set_text(by_id("alert-said"), `${words.slice(0, 5).map(visible).join(", ")}: the meaning changed.`);
  }
}
