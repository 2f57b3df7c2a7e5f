// node tests/browser.mjs SCENARIO: drives the dashboard of a running service.
import assert from "node:assert/strict";
import { await_drawn_map, given, open_page, run, text_of } from "./driver.mjs";

const scenarios = {
  async live() {
    const dashboard = await open_page();
    const { page, until } = dashboard;
    await until(() => /\d/.test(document.querySelector("#tile-loss .value").textContent));
    const before = { loss: await text_of(page, "#tile-loss .value"), story: await text_of(page, "#story") };
    await until((old) => document.querySelector("#tile-loss .value").textContent !== old, before.loss);
    await until((old) => document.querySelector("#story").textContent !== old, before.story);
    for (const key of ["speed", "new", "pip", "replay"])
      await until((name) => /\d/.test(document.querySelector(`#tile-${name} .value`).textContent), key);
    await until(() => Number(document.querySelector("#charts .plot").dataset.points) >= 5);
    assert.match(await text_of(page, "#sources"), /newsroom/);
    await until(() => document.querySelectorAll("#stages li").length === 3);

    await await_drawn_map(dashboard);
    const model = await page.getAttribute("#map", "data-model");
    await until((old) => document.getElementById("map").dataset.model !== old, model);
    const click_a_word = async () => {
      const place = await (await until(() => {
        const box = document.getElementById("map").getBoundingClientRect();
        return window.streamvec_words().map(window.streamvec_place_of).find((at) => at && at.x > box.left + 5 && at.x < box.right - 150 &&
          at.y > box.top + 5 && at.y < Math.min(box.bottom - 80, innerHeight - 5));
      })).jsonValue();
      await page.mouse.click(place.x, place.y);
    };
    const has_neighbours = (most_ms) => page.waitForFunction(() => document.querySelectorAll("#neighbours li").length === 10, null, { timeout: most_ms });
    // A map that is drawn anew between the look and the click has another word there, or none.
    for (let tries = 0; tries < 10; ++tries) {
      await click_a_word();
      if (await has_neighbours(5_000).then(() => true, () => false)) break;
    }
    await until(() => document.querySelectorAll("#neighbours li").length === 10);

    await page.locator("#search-text").fill("tiger");
    await until(() => !document.getElementById("search-list").hidden);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await until(() => document.querySelector(".chosen .word")?.textContent === "tiger" && document.querySelectorAll("#neighbours li").length === 10);

    await until(() => document.querySelectorAll("#alerts li").length > 0);
    const moved = await text_of(page, "#alerts li:first-child .word");
    await page.locator("#alerts li:first-child button").click();
    await until((word) => document.querySelector(".chosen .word")?.textContent === word, moved);
    await until(() => document.querySelectorAll("#path li").length >= 2);

    await page.locator("#map-words-table summary").click();
    await until(() => document.querySelectorAll("#words-table tbody tr").length === Number(document.getElementById("map").dataset.points));
    const light = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    await page.emulateMedia({ colorScheme: "dark" });
    await until((old) => getComputedStyle(document.body).backgroundColor !== old, light);
    const renderers = [await page.getAttribute("#map", "data-renderer")];
    await dashboard.close();
    renderers.push(await on_a_phone());
    return { renderers };
  },

  async cluster() {
    const dashboard = await open_page();
    const { page, until } = dashboard;
    // Of every node: which, role, state, clock, clocks behind, sent, received.
    const cells = () => Array.from(document.querySelectorAll("#nodes tbody tr"), (row) => Array.from(row.children, (cell) => cell.innerText));
    await page.evaluate(`window.node_cells = ${cells}`);
    await until(() => window.node_cells().length === 2 && window.node_cells().every((cell) => /\d/.test(cell[3]) && cell[3] !== "0" &&
      /^\d/.test(cell[4]) && /^[\d.]+ kB|^[\d.]+ MB/.test(cell[5]) && /^[\d.]+ kB|^[\d.]+ MB/.test(cell[6])));
    const [leader, other] = await page.evaluate(() => window.node_cells());
    assert.deepEqual([leader.slice(0, 3), other.slice(0, 3)], [["1 (leads)", "worker+server", "here"], ["2", "worker+server", "here"]]);
    await until((old) => window.node_cells()[1][3] !== old, other[3]);
    assert.match(await text_of(page, "#cluster-said"), /2 of 2 machines are here/);
    await dashboard.close();
    return {};
  },

  async hostile() {
    const dashboard = await open_page();
    const { page, until } = dashboard;
    await await_drawn_map(dashboard);
    await page.locator("#map-words-table summary").click();
    await until((count) => document.querySelectorAll("#words-table tbody tr").length >= count, given.words.length);
    // Every word is there as text of an element without children, none has become an element, and none turns its line.
    const shown = await page.evaluate(() => Array.from(document.querySelectorAll("#words-table bdi"), (each) => {
      return { text: each.textContent, children: each.children.length, bidi: getComputedStyle(each).unicodeBidi };
    }));
    assert.ok(shown.every((each) => each.children === 0 && each.bidi.includes("isolate")));
    assert.ok(shown.every((each) => !/[\u0000-\u001f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ufeff]/u.test(each.text)));
    const texts = new Set(shown.map((each) => each.text));
    for (const word of given.words) if (/^[\x20-\x7e]{1,59}$/.test(word)) assert.ok(texts.has(word), word);
    assert.equal(await page.locator("main script, main iframe, main svg, main style, #words-table img").count(), 0);
    for (const word of given.words.filter((_, i) => i % 23 === 0)) {
      await page.locator("#search-text").fill(word);
      await page.locator("#search button[type=submit]").click();
      await until(() => document.querySelectorAll("#neighbours li").length === 10);
    }
    await page.mouse.move(640, 500);
    await dashboard.close();
    return {};
  },

  async breaks() {
    const dashboard = await open_page({ allowed: /Failed to load resource|ERR_/ });
    const { until } = dashboard;
    await until(() => document.getElementById("state").dataset.state === "done");
    console.log("open");
    await until(() => document.getElementById("state").dataset.state === "broken" && !document.getElementById("notice").hidden);
    console.log("broken");
    await until(() => document.getElementById("state").dataset.state === "done" && document.getElementById("notice").hidden);
    await dashboard.close();
    return {};
  },

  async screenshots() {
    await picture("dashboard-light", { viewport: { width: 1440, height: 1000 } });
    await picture("dashboard-dark", { viewport: { width: 1440, height: 1000 }, colorScheme: "dark" });
    await picture("dashboard-phone", { viewport: { width: 390, height: 1400 }, isMobile: true, hasTouch: true, deviceScaleFactor: 1.5 });
    return {};
  },

  async login() {
    const dashboard = await open_page({ allowed: /status of 401/ });
    const { page, until } = dashboard;
    await page.locator("#login[open]").waitFor();
    await page.locator("#token").fill(given.wrong);
    await page.keyboard.press("Enter");
    await until(() => document.getElementById("login-problem").textContent !== "");
    await page.locator("#token").fill(given.token);
    await page.keyboard.press("Enter");
    await until(() => !document.getElementById("login").open && document.getElementById("state").dataset.state === "done");
    await await_drawn_map(dashboard);
    await dashboard.close();
    return {};
  },
};

/** Pictures of a demo that has seen words change, and of the same page on a phone. */
async function picture(name, options) {
  const dashboard = await open_page({ deviceScaleFactor: 1, ...options });
  const { page, until } = dashboard;
  await until((words) => words.some((word) => Array.from(document.querySelectorAll("#alerts .word"), (each) => each.textContent).includes(word)), ["bass", "polo", "jaguar"]);
  await await_drawn_map(dashboard);
  await page.locator("#search-text").fill("bass");
  await page.locator("#search button[type=submit]").click();
  await until(() => document.querySelectorAll("#path li").length >= 3);
  const model = await page.getAttribute("#map", "data-model");
  await until((old) => document.getElementById("map").dataset.model !== old || document.getElementById("state").dataset.state === "done", model);
  await until(() => document.getElementById("map").dataset.still === "true");
  await page.evaluate(() => window.scrollTo(0, 0));
  await page.screenshot({ path: `${given.out}/${name}.png` });
  await dashboard.close();
}

/** Without WebGL, 390 pixels wide, and for people who want things to stand still. */
async function on_a_phone() {
  const without_webgl = () => {
    const original = HTMLCanvasElement.prototype.getContext;
    HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
      return /webgl/.test(kind) ? null : original.call(this, kind, ...rest);
    };
  };
  const dashboard = await open_page({ viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true, reducedMotion: "reduce", init: without_webgl });
  const { page } = dashboard;
  await await_drawn_map(dashboard);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), "wider than the phone");
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  const renderer = await page.getAttribute("#map", "data-renderer");
  await dashboard.close();
  return renderer;
}

await run(scenarios);
