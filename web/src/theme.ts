// Light, dark, or as the system has it; the choice is remembered in this browser.
import { by_id, set_text } from "./dom";
import type { Palette } from "./map/renderer";

const kChoices = ["auto", "light", "dark"] as const;
type Choice = (typeof kChoices)[number];
const kKey = "streamvec-colours";

export class Theme {
  private choice: Choice = "auto";

  constructor(private readonly changed: () => void) {
    try {
      const kept = window.localStorage.getItem(kKey);
      this.choice = kChoices.find((each) => each === kept) ?? "auto";
    } catch {
      // A browser that keeps nothing has the system's colours.
    }
    by_id("theme").addEventListener("click", () => this.next());
    window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.changed());
    this.apply();
  }

  private next(): void {
    this.choice = kChoices[(kChoices.indexOf(this.choice) + 1) % kChoices.length] as Choice;
    try {
      window.localStorage.setItem(kKey, this.choice);
    } catch {
      // As above.
    }
    this.apply();
    this.changed();
  }

  private apply(): void {
    if (this.choice === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.choice;
    set_text(by_id("theme"), `Colours: ${this.choice}`);
    by_id("theme").setAttribute("aria-label", `Colours: ${this.choice === "auto" ? "as the system has them" : this.choice}. Change`);
  }
}

/** A colour of style.css, as it is now. */
export function color(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export function palette(): Palette {
  return { background: color("card"), text: color("text"), muted: color("muted"), accent: color("accent"), halo: color("card"),
           groups: color("groups").split(/\s+/) };
}
