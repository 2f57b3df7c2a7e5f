// node tests/page.mjs: drives the page of the folder given as "pages", before services that say what each scenario wants
// them to say.
import assert from "node:assert/strict";
import { given, open_page, run_all, text_of } from "./driver.mjs";
import { refusal, ScriptedService } from "./scripted_service.mjs";

const kReason = `cannot write ${"a-rather-long-folder/".repeat(6)}step-12000: No space left on device; free some and start again`;
const kBroken = { allowed: /Failed to load resource|ERR_/ };

const source = { name: "http://news.example/feed.xml", state: "reading", documents: 5, documents_per_s: 1, bytes_per_s: 100, lag_s: 1, errors: 0, last_error: null,
                 permission: null };
const progress = (tokens, more = {}) => ({
  time: 1_763_000_000 + tokens, tokens, documents: 5, seconds: 10, tokens_per_s: 100, loss: 0.5, prequential_loss: 0.5, fraction: null, epoch: 1, words: 100, dim: 8,
  model: "sgns", kernel: "scalar", bottleneck: "sources", replay: { chunks: 3, ratio: 2 }, sources: [source], cluster: null, ...more,
});
const metrics = (time, more = {}) => ({
  time, step: 1, tokens: 1, tokens_per_s: 1, prequential_loss: 0.5, loss: 0.5, pip: null, overlap_with_last: null, similarity: null, analogy: null,
  stages: { source: 0.9, text: 0.1, training: 0.4 }, bottleneck: "training", replay: null, sources: [source], dropped: null, ...more,
});
const near = (word, words) => ({ words: [{ word, seen: true, weight: 1 }], neighbours: words.map((each, i) => ({ word: each, cosine: 0.9 - i / 10, count: 9 })) });
const kMap = { model: 1, step: 1, words: ["tiger", "lion", "violin", "piano"], counts: [4, 3, 2, 1], x: [-0.5, -0.4, 0.4, 0.5], y: [0.5, 0.4, -0.4, -0.5], group: [0, 0, 1, 1] };

/** A service that learns (`train`) or not (`serve`), told by `past`, with four words. */
async function start_service(past) {
  const service = new ScriptedService(given.pages);
  service.answers = {
    "/api/progress": { service: "train", progress: [], metrics: [], alerts: [], ...past },
    "/api/model": { model: "sgns", words: 4, dim: 8, tokens: 100, step: 1, number: 1, service: "train", version: "0", makes_unseen_words: false },
    "/api/nearest": ({ word }) => (kMap.words.includes(word) ? near(word, kMap.words.filter((each) => each !== word)) : refusal(404, "not known")),
    "/api/neighbourhood": { path: [] },
    "/api/words": ({ prefix }) => ({ words: kMap.words.filter((word) => word.startsWith(prefix)).map((word) => ({ word, count: 1 })) }),
  };
  service.first = { model: { number: 1 }, map: kMap };
  given.url = await service.start();
  return service;
}

async function poll(condition) {
  for (const end = Date.now() + given.patience_ms; !condition();) {
    assert.ok(Date.now() < end, `waited for ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const state_is = (name) => document.getElementById("state-text").textContent === name;

async function look_up(page, word) {
  await page.locator("#search-text").fill(word);
  await page.locator("#search button[type=submit]").click();
}

const scenarios = {
  async failed() {
    const service = await start_service({ progress: [progress(1000)] });
    const dashboard = await open_page(kBroken);
    const { page, until } = dashboard;
    await until(state_is, "Learning");
    service.send("end", { time: 1, why: kReason });
    await until(state_is, "Failed");
    assert.equal(await text_of(page, "#notice"), `Training ended: ${kReason}`);
    const tried = page.waitForEvent("requestfailed", (request) => request.url().includes("/api/progress"));
    await service.stop();
    await tried;
    assert.equal(await text_of(page, "#state-text"), "Failed");
    assert.equal(await text_of(page, "#notice"), `Training ended: ${kReason}`);
    await dashboard.close();
  },

  async hidden() {
    const service = await start_service({ progress: [progress(1000)] });
    const dashboard = await open_page(kBroken);
    const { page, until } = dashboard;
    const see = (hidden) => page.evaluate((now) => {
      Object.defineProperty(document, "hidden", { configurable: true, value: now });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
    await until(state_is, "Learning");
    await see(true);
    await poll(() => service.readers.size === 0);
    service.answers["/api/progress"].progress.push(progress(3000));
    await see(false);
    await poll(() => service.readers.size === 1);
    await until(() => document.getElementById("story").textContent.includes("3,000 words"));
    await until(state_is, "Learning");
    await dashboard.close();
  },

  async silent() {
    const service = await start_service({ progress: [progress(1000)] });
    const count_alive = () => {
      const Original = window.EventSource;
      window.alive = 0;
      window.EventSource = class extends Original {
        constructor(...given) {
          super(...given);
          this.addEventListener("alive", () => ++window.alive);
        }
      };
    };
    const dashboard = await open_page({ own_clock: true, init: count_alive });
    const { page, until } = dashboard;
    await until(state_is, "Learning");
    const [reader] = service.readers;
    for (let said = 1; said <= 4; ++said) {
      await page.clock.fastForward(15_000);
      service.send("alive", {});
      await until((count) => window.alive === count, said);
    }
    assert.ok(service.readers.has(reader) && await page.evaluate(state_is, "Learning"));
    service.answers["/api/progress"] = null;
    await page.clock.fastForward(36_000);
    await until(state_is, "No connection");
    await poll(() => !service.readers.has(reader));
    await dashboard.close();
  },

  async asking() {
    const service = await start_service();
    const impatient = () => {
      const timeout = AbortSignal.timeout;
      AbortSignal.timeout = (ms) => timeout.call(AbortSignal, window.hurries ? ms / 100 : ms);
    };
    const dashboard = await open_page({ ...kBroken, init: impatient });
    const { page, until } = dashboard;
    await look_up(page, "tiger");
    await until(() => document.querySelectorAll("#neighbours li").length === 3);
    service.answers["/api/nearest"] = null;
    await look_up(page, "lion");
    await until(() => /^lion\s+Asking …$/.test(document.getElementById("word").innerText.trim()));
    await page.evaluate(() => (window.hurries = true));
    await look_up(page, "piano");
    await until(() => document.getElementById("word").innerText.includes("The service does not answer."));
    await dashboard.close();
  },

  async restarted() {
    const service = await start_service({ service: "serve", metrics: [metrics(1_763_000_000)], alerts: [{ time: 1, step: 1, words: ["tiger"] }] });
    const dashboard = await open_page();
    const { page, until } = dashboard;
    await until(() => document.querySelectorAll("#alerts li").length === 1 && document.querySelectorAll("#stages li").length === 3);
    assert.match(await text_of(page, "#sources"), /feed\.xml/);
    assert.match(await text_of(page, "#bottleneck"), /^Training/);
    service.answers["/api/progress"] = { service: "serve", progress: [], metrics: [], alerts: [] };
    service.break_off();
    await until(() => document.querySelectorAll("#alerts li").length === 0 && !document.getElementById("alerts-none").hidden);
    assert.equal(await page.locator("#stages li").count(), 0);
    assert.equal(await page.locator("#sources").isVisible(), false);
    assert.match(await text_of(page, "#bottleneck"), /^Nothing is measured/);
    await dashboard.close();
  },

  async map_buttons() {
    await start_service();
    const dashboard = await open_page();
    const { page, until } = dashboard;
    await until(() => document.getElementById("map").dataset.still === "true" && window.streamvec_words().length === 4);
    const places = () => page.evaluate(() => ["tiger", "piano"].map(window.streamvec_place_of));
    const apart = ([a, b]) => Math.hypot(a.x - b.x, a.y - b.y);
    const before = await places();
    await page.locator("#map-in").dblclick();
    assert.ok(Math.abs(apart(await places()) / apart(before) - 1.5 ** 2) < 1e-6);
    await page.locator("#map-all").dblclick();
    assert.deepEqual(await places(), before);
    await page.locator("#map").dblclick({ position: { x: 200, y: 200 } });
    assert.ok(Math.abs(apart(await places()) / apart(before) - 2) < 1e-6);
    await dashboard.close();
  },

  async locked() {
    const service = await start_service();
    const { "/api/nearest": nearest, "/api/progress": past } = service.answers;
    const dashboard = await open_page({ allowed: /status of 401/ });
    const { page, until } = dashboard;
    await until(state_is, "Learning");
    service.answers["/api/nearest"] = service.answers["/api/progress"] = refusal(401, "the token has expired");
    await look_up(page, "tiger");
    await page.locator("#login[open]").waitFor();
    Object.assign(service.answers, { "/api/nearest": nearest, "/api/progress": past, "/api/login": { role: "query" } });
    await page.locator("#token").fill("0123456789abcdef");
    await page.keyboard.press("Enter");
    await until(() => !document.getElementById("login").open && document.querySelectorAll("#neighbours li").length === 3);
    await until(state_is, "Learning");
    await dashboard.close();
  },

  async escape() {
    const service = await start_service();
    service.answers["/api/progress"] = refusal(401, "a token is wanted");
    const dashboard = await open_page({ allowed: /status of 401/ });
    const { page } = dashboard;
    await page.locator("#login[open]").waitFor();
    for (let times = 0; times < 4; ++times) {
      await page.keyboard.press("Escape");
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))));  // what Esc brings about has come
      await page.locator("#login[open] #token:focus").waitFor();
    }
    await dashboard.close();
  },

  async served() {
    const lines = [80_000, 90_000, 100_000, 25_123].map((speed, i) => metrics(1_763_000_000 + i * 300, { tokens_per_s: speed, loss: 0.5 }));
    await start_service({ service: "serve", metrics: lines });
    const dashboard = await open_page({ timezoneId: "Asia/Tokyo" });
    const { page, until } = dashboard;
    await until(state_is, "Ready");
    assert.equal(await text_of(page, "#tile-speed .value"), "25.1 k");
    assert.equal(await text_of(page, "#tile-speed .trend"), "▼ 75 % in 5 min");
    assert.equal(await text_of(page, "#tile-speed .hint"), "Words learned from in a second, last measured 2025-11-13 11:28.");
    await dashboard.close();
  },

  async focus_on_choice() {
    await start_service();
    const dashboard = await open_page();
    const { page, until } = dashboard;
    await look_up(page, "tiger");
    await until(() => document.querySelectorAll("#neighbours li").length === 3);
    await page.locator("#neighbours button").nth(1).focus();
    await page.keyboard.press("Enter");
    await until(() => document.querySelector(".chosen .word").textContent === "violin" && document.querySelectorAll("#neighbours li").length === 3);
    assert.ok(await page.evaluate(() => document.activeElement.matches(".chosen")));
    await dashboard.close();
  },

  async focus_on_model() {
    const service = await start_service();
    const dashboard = await open_page();
    const { page, until } = dashboard;
    const focused = () => page.evaluate(() => document.activeElement.textContent);
    await look_up(page, "violin");
    await until(() => document.querySelectorAll("#neighbours li").length === 3);
    await page.locator("#neighbours button").nth(1).focus();
    assert.equal(await focused(), "lion");
    service.answers["/api/nearest"] = ({ word }) => near(word, ["lion", "tiger", "piano"]);
    service.send("model", { number: 2 });
    await until(() => document.querySelector("#neighbours .word").textContent === "lion");
    assert.equal(await focused(), "lion");
    service.answers["/api/nearest"] = ({ word }) => near(word, ["cello", "flute"]);
    service.send("model", { number: 3 });
    await until(() => document.querySelector("#neighbours .word").textContent === "cello");
    assert.equal(await focused(), "cello");
    await dashboard.close();
  },

  async read_out() {
    const service = await start_service();
    const dashboard = await open_page();
    const { page, until } = dashboard;
    await look_up(page, "violin");
    await until(() => document.querySelectorAll("#neighbours li").length === 3);
    await page.evaluate(() => {
      window.said = [];
      for (const each of document.querySelectorAll(".word-card [aria-live], .word-card [role=status]"))
        new MutationObserver(() => window.said.push(each.textContent)).observe(each, { childList: true, subtree: true, characterData: true });
    });
    service.answers["/api/nearest"] = ({ word }) => near(word, ["cello", "flute"]);
    service.send("model", { number: 2 });
    await until(() => document.querySelectorAll("#neighbours li").length === 2);
    assert.deepEqual(await page.evaluate(() => window.said), []);
    await look_up(page, "piano");
    await until(() => window.said.length > 0);
    assert.deepEqual(await page.evaluate(() => window.said), ["piano: nearest are cello, flute."]);
    await dashboard.close();
  },

  async suggestion() {
    await start_service();
    const dashboard = await open_page();
    const { page, until } = dashboard;
    await page.locator("#search-text").fill("pia");
    await page.locator("#search-list li").waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await until(() => document.querySelector(".chosen .word")?.textContent === "piano");
    assert.equal(await page.inputValue("#search-text"), "piano");
    await dashboard.close();
  },

  async trouble() {
    const trouble = `the answer broke off after 12,345 bytes of 23,456: ${"x".repeat(100)} and the end`;
    await start_service({ progress: [progress(1000, { sources: [{ ...source, last_error: trouble, permission: trouble }] })] });
    const dashboard = await open_page();
    const { page, until } = dashboard;
    await until(() => document.querySelectorAll("#sources tbody tr").length === 1);
    assert.deepEqual(await page.evaluate(() => Array.from(document.querySelector("#sources tbody tr").cells, (cell) => cell.textContent).slice(-2)), [trouble, trouble]);
    await dashboard.close();
  },

  async selection() {
    const service = await start_service({ progress: [progress(1000)] });
    const dashboard = await open_page();
    const { page, until } = dashboard;
    await until(() => document.querySelectorAll("#sources tbody tr").length === 1);
    await page.evaluate(() => getSelection().selectAllChildren(document.querySelector("#sources tbody td")));
    service.send("progress", progress(2000, { sources: [{ ...source, documents: 77 }, { ...source, name: "tail:/var/log/app.log" }] }));
    await until(() => document.querySelector("#sources tbody tr").cells[2].textContent === "77");
    assert.equal(await page.locator("#sources tbody tr").count(), 2);
    assert.equal(await page.evaluate(() => getSelection().toString()), source.name);
    service.send("progress", progress(3000, { sources: [] }));
    await until(() => document.getElementById("sources").hidden);
    await dashboard.close();
  },

  async files() {
    await start_service({ progress: [progress(1000, { fraction: 0.5, documents: null, replay: null, bottleneck: null, sources: [] })] });
    const dashboard = await open_page();
    const { page, until } = dashboard;
    await until(state_is, "Learning");
    assert.match(await text_of(page, "#tile-pip .hint"), /of files measured by streamvec eval/);
    assert.match(await text_of(page, "#tile-similarity .hint"), /Of files measured by streamvec eval/);
    await dashboard.close();
  },

  async few_words() {
    const service = await start_service();
    service.first.map = { model: 1, step: 1, words: [], counts: [], x: [], y: [], group: [] };
    const dashboard = await open_page();
    const { page, until } = dashboard;
    await until(() => document.getElementById("map").dataset.points === "0");
    assert.equal(await text_of(page, "#map-empty"), "There are too few words for a map.");
    await dashboard.close();
  },
};

await run_all(scenarios);
