// Asks for the token of a service that wants one. The service keeps it in a cookie that scripts cannot read.
import { api, CallError } from "./api";
import { by_id, set_text } from "./dom";
import { visible_long } from "./text";

export class Login {
  private readonly dialog = by_id<HTMLDialogElement>("login");
  private readonly token = by_id<HTMLInputElement>("token");
  private wanted = false;

  constructor(private readonly done: () => void) {
    by_id("login-form").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.send();
    });
    // There is nothing to see without it; browsers let Esc be refused once only.
    this.dialog.addEventListener("cancel", (event) => event.preventDefault());
    this.dialog.addEventListener("close", () => this.wanted && this.show());
  }

  ask(why: string): void {
    this.wanted = true;
    set_text(by_id("login-problem"), why);
    this.show();
  }

  /** The service answers: a token may have been given on another page. */
  leave(): void {
    this.wanted = false;
    this.dialog.close();
  }

  private show(): void {
    if (!this.dialog.open) this.dialog.showModal();
    this.token.focus();
  }

  private async send(): Promise<void> {
    try {
      await api.login(this.token.value);
    } catch (problem) {
      const refused = problem instanceof CallError && problem.status === 401;
      return this.ask(refused ? "This is not the token, or it has expired." : problem instanceof CallError ? visible_long(problem.message) : "No answer.");
    }
    this.token.value = "";
    this.leave();
    this.done();
  }
}
