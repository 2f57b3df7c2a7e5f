// Asks for the token of a service that wants one. The service keeps it in a cookie that scripts cannot read.
import { api, CallError } from "./api";
import { by_id, set_text } from "./dom";
import { visible } from "./text";

export class Login {
  private readonly dialog = by_id<HTMLDialogElement>("login");
  private readonly token = by_id<HTMLInputElement>("token");

  constructor(private readonly done: () => void) {
    by_id("login-form").addEventListener("submit", (event) => {
      event.preventDefault();
      void this.send();
    });
    // There is nothing to see without it.
    this.dialog.addEventListener("cancel", (event) => event.preventDefault());
  }

  ask(why: string): void {
    set_text(by_id("login-problem"), why);
    if (!this.dialog.open) this.dialog.showModal();
    this.token.focus();
  }

  private async send(): Promise<void> {
    try {
      await api.login(this.token.value);
    } catch (problem) {
      const refused = problem instanceof CallError && problem.status === 401;
      return this.ask(refused ? "This is not the token, or it has expired." : problem instanceof CallError ? visible(problem.message) : "No answer.");
    }
    this.token.value = "";
    this.dialog.close();
    this.done();
  }
}
