// Making and changing elements. Nothing here, or anywhere in the dashboard, turns text into markup.
import { visible } from "./text";

type Child = Node | string;
interface Properties {
  class?: string;
  id?: string;
  attributes?: Record<string, string>;
  on?: { [Kind in keyof HTMLElementEventMap]?: (event: HTMLElementEventMap[Kind]) => void };
}

export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag, properties: Properties = {}, ...children: Child[]): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag);
  if (properties.class) made.className = properties.class;
  if (properties.id) made.id = properties.id;
  for (const [name, value] of Object.entries(properties.attributes ?? {})) made.setAttribute(name, value);
  for (const [kind, handler] of Object.entries(properties.on ?? {})) made.addEventListener(kind, handler as EventListener);
  made.append(...children);
  return made;
}

/** The element with this id, which index.html has. */
export function by_id<Type extends HTMLElement>(id: string): Type {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`the page has no #${id}`);
  return found as Type;
}

/** A word of the stream: text, kept apart from the writing direction around it. */
export function word_element(word: string, tag: "bdi" | "button" = "bdi"): HTMLElement {
  const shown = visible(word);
  const inner = element("bdi", { class: "word" }, shown);
  return tag === "bdi" ? inner : element("button", { class: "word-button", attributes: { type: "button" } }, inner);
}

/** Changes the text only if it is another: a screen reader reads changes out. */
export function set_text(target: HTMLElement, text: string): void {
  if (target.textContent !== text) target.textContent = text;
}

export function show(target: HTMLElement, visible_now: boolean): void {
  if (target.hidden === visible_now) target.hidden = !visible_now;
}

export interface Column<Row> {
  title: string;
  number?: boolean;
  cell: (row: Row) => Child;
}

/** Fills a table's body; its head is made once. Cells that stay as they are keep what is selected in them, and the focus
 *  stays on the same row and button. */
export function fill_table<Row>(table: HTMLTableElement, columns: readonly Column<Row>[], rows: readonly Row[]): void {
  if (table.tHead === null)
    table.append(element("thead", {}, element("tr", {}, ...columns.map((column) =>
      element("th", { class: column.number ? "number" : "", attributes: { scope: "col" } }, column.title)))));
  const body = table.tBodies[0] ?? table.appendChild(element("tbody"));
  const focused = focused_place(body);
  while (body.rows.length > rows.length) body.deleteRow(-1);
  rows.forEach((row, i) => {
    const line = body.rows[i] ?? body.appendChild(element("tr", {}, ...columns.map((column) => element("td", { class: column.number ? "number" : "" }))));
    columns.forEach((column, c) => fill_cell(line.cells[c] as HTMLTableCellElement, column.cell(row)));
  });
  if (focused) body.rows[focused.row]?.cells[focused.cell]?.querySelector<HTMLElement>("button,a")?.focus();
}

/** Buttons are always new ones: two words may look the same. */
function fill_cell(cell: HTMLTableCellElement, child: Child): void {
  const wanted = typeof child === "string" ? document.createTextNode(child) : child;
  if (wanted instanceof HTMLButtonElement || !cell.firstChild?.isEqualNode(wanted)) cell.replaceChildren(wanted);
}

function focused_place(body: HTMLTableSectionElement): { row: number; cell: number } | null {
  const cell = document.activeElement?.closest("td");
  if (!cell || !body.contains(cell)) return null;
  return { row: (cell.parentElement as HTMLTableRowElement).sectionRowIndex, cell: cell.cellIndex };
}
