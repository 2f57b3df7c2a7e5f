// A service that says what a test tells it to: the pages of a folder, an answer for each call, and events when they are sent.
import { readFile } from "node:fs/promises";
import http from "node:http";
import path from "node:path";

const kTypes = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml" };

export class ScriptedService {
  /** By path: what is answered, or a function of the parameters that returns it. An Error is an answer of that status, null none at all. */
  answers = {};
  /** By kind: what every new reader of events is told. */
  first = {};
  readers = new Set();
  #pages;
  #server = http.createServer((request, response) => void this.#take(request, response));

  constructor(pages) {
    this.#pages = pages;
  }

  /** Returns its address. */
  async start() {
    await new Promise((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${this.#server.address().port}`;
  }

  send(kind, data) {
    for (const reader of this.readers) write_event(reader, kind, data);
  }

  /** Those who listen have to come again. */
  break_off() {
    for (const reader of this.readers) reader.end();
  }

  /** Nobody can connect any more, and nobody is. */
  async stop() {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #take(request, response) {
    const { pathname, searchParams } = new URL(request.url, "http://127.0.0.1");
    if (pathname === "/api/events") return this.#listen(response);
    if (!pathname.startsWith("/api/")) return this.#page(pathname, response);
    const given = this.answers[pathname], answer = typeof given === "function" ? given(Object.fromEntries(searchParams)) : given;
    if (answer === null) return;
    const wrong = answer === undefined ? refusal(404, "nothing is known of this") : answer instanceof Error ? answer : null;
    response.writeHead(wrong?.status ?? 200, { "Content-Type": "application/json" });
    response.end(JSON.stringify(wrong ? { error: { message: wrong.message } } : answer));
  }

  #listen(response) {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write(": here\n\n");
    this.readers.add(response);
    response.on("close", () => this.readers.delete(response));
    for (const [kind, data] of Object.entries(this.first)) write_event(response, kind, data);
  }

  async #page(pathname, response) {
    const name = pathname === "/" ? "/index.html" : pathname;
    response.writeHead(200, { "Content-Type": kTypes[path.extname(name)] ?? "application/octet-stream" });
    response.end(await readFile(path.join(this.#pages, path.normalize(name))));
  }
}

function write_event(reader, kind, data) {
  reader.write(`event: ${kind}\ndata: ${JSON.stringify(data)}\n\n`);
}

export function refusal(status, message) {
  return Object.assign(new Error(message), { status });
}
