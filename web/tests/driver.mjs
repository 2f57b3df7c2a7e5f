// What the browser's tests share: a page in Debian's chromium that notes whatever must not happen. What it is to do comes on
// stdin: {"url", "chromium", "root", "patience_ms", ...}. Everything is waited for, for up to patience_ms; nothing is slept through.
import assert from "node:assert/strict";
import readline from "node:readline";
import { chromium } from "playwright-core";

export const given = JSON.parse(await new Promise((resolve) => readline.createInterface({ input: process.stdin }).once("line", resolve)));
process.stdin.unref?.();
const browser = await chromium.launch({
  executablePath: given.chromium, args: ["--disable-dev-shm-usage", ...(given.root ? ["--no-sandbox"] : [])], timeout: given.patience_ms,
});

/** A page that notes whatever must not happen; `allowed` are console errors that the scenario brings about,
 *  `own_clock` lets it make time pass. */
export async function open_page({ allowed = /^$/, own_clock = false, init, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, colorScheme: "light", ...options });
  context.setDefaultTimeout(given.patience_ms);
  const page = await context.newPage();
  const wrong = [];
  page.on("console", (message) => message.type() === "error" && !allowed.test(message.text()) && wrong.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => wrong.push(`error: ${error.stack}`));
  page.on("dialog", (dialog) => (wrong.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
  page.on("request", (request) => new URL(request.url()).host !== new URL(given.url).host && wrong.push(`asked ${request.url()}`));
  await page.exposeFunction("pwned", (n) => void wrong.push(`a word ran: ${n}`));
  await page.exposeFunction("reported", (text) => void wrong.push(`policy: ${text}`));
  await page.addInitScript(() => document.addEventListener("securitypolicyviolation",
    (event) => window.reported(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`)));
  if (own_clock) await page.clock.install();
  if (init) await page.addInitScript(init);
  await page.goto(given.url);
  const until = (condition, argument) => page.waitForFunction(condition, argument, { timeout: given.patience_ms, polling: 100 });
  const close = async () => {
    assert.deepEqual(wrong, []);
    await context.close();
  };
  return { page, until, close };
}

export const text_of = (page, selector) => page.locator(selector).innerText();

/** Waits for points on the map, told by pixels unlike the background. */
export async function await_drawn_map({ until }) {
  await until(() => {
    const canvas = document.getElementById("map-points");
    if (!document.getElementById("map").dataset.points || canvas.width < 50) return false;
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const seen = new Set();
    for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 0) seen.add((data[i] >> 4 << 8) | (data[i + 1] >> 4 << 4) | data[i + 2] >> 4);
    return seen.size > 10;
  });
}

/** Runs the scenario that the command line names, prints what it returns and leaves with 0 when all was as it should be. */
export async function run(scenarios) {
  const scenario = scenarios[process.argv[2]];
  assert.ok(scenario, "no such scenario");
  const result = await scenario();
  await browser.close();
  console.log(JSON.stringify(result ?? {}));
  process.exit(0);
}

/** Runs all of them, one after the other in one browser, and prints what was wrong with each: null, nothing. */
export async function run_all(scenarios) {
  const wrong = {};
  for (const [name, scenario] of Object.entries(scenarios)) {
    wrong[name] = await scenario().then(() => null, (error) => error.stack);
    for (const context of browser.contexts()) await context.close();
  }
  await browser.close();
  console.log(JSON.stringify(wrong));
  process.exit(0);
}
