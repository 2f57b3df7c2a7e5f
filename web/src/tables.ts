// Sources, nodes of a cluster, and what holds the run up.
import type { Cluster, ClusterNode, SourceState } from "./api";
import { by_id, element, fill_table, set_text, show, word_element, type Column } from "./dom";
import { bytes, duration, percent, short_count, visible, visible_long } from "./text";

function mark(text: string, way: "good" | "warn" | "bad" | ""): HTMLElement {
  return element("span", { class: "mark", attributes: { "data-way": way } }, text);
}

const kSourceStates: Record<string, ["good" | "warn" | "bad" | "", string]> = {
  reading: ["good", "reading"], waiting: ["warn", "waiting for it"], ended: ["", "ended"], failed: ["bad", "failed"],
};

const kSourceColumns: Column<SourceState>[] = [
  { title: "Source", cell: (source) => element("bdi", { class: "address" }, visible_address(source.name)) },
  { title: "State", cell: (source) => mark(kSourceStates[source.state]?.[1] ?? visible(source.state), kSourceStates[source.state]?.[0] ?? "") },
  { title: "Documents", number: true, cell: (source) => short_count(source.documents) },
  { title: "Documents/s", number: true, cell: (source) => short_count(source.documents_per_s) },
  { title: "Bytes/s", number: true, cell: (source) => bytes(source.bytes_per_s) },
  { title: "Behind by", number: true, cell: (source) => duration(source.lag_s) },
  { title: "Errors", number: true, cell: (source) => source.errors > 0 ? mark(short_count(source.errors), "warn") : "0" },
  { title: "Robots", cell: (source) => source.permission ? visible_long(source.permission) : "–" },
  { title: "Last trouble", cell: (source) => source.last_error ? element("bdi", { class: "address" }, visible_long(source.last_error)) : "none" },
];

function visible_address(name: string): string {
  return name.length > 120 ? `${visible_long(name.slice(0, 59))}…${visible_long(name.slice(-59))}` : visible_long(name);
}

export function show_sources(sources: readonly SourceState[]): void {
  show(by_id("sources-none"), sources.length === 0);
  show(by_id("sources"), sources.length > 0);
  fill_table(by_id<HTMLTableElement>("sources"), kSourceColumns, sources);
}

const kNodeStates: Record<string, "good" | "warn" | "bad"> = { here: "good", silent: "warn", "left out": "bad" };

/** How many clocks a node is behind the furthest one whose clock is known. */
export function staleness(node: ClusterNode, nodes: readonly ClusterNode[]): number | null {
  if (typeof node.staleness === "number") return node.staleness;
  if (node.clock === null) return null;
  return Math.max(...nodes.map((each) => each.clock ?? 0)) - node.clock;
}

export function show_cluster(cluster: Cluster | null): void {
  by_id("nodes").hidden = cluster === null;
  if (cluster === null) return set_text(by_id("cluster-said"), "One machine does all of it.");
  const here = cluster.nodes.filter((node) => node.state === "here").length;
  set_text(by_id("cluster-said"), `${here} of ${cluster.nodes.length} machines are here. This one sent ${bytes(cluster.bytes_sent)} and got ` +
    `${bytes(cluster.bytes_received)} in ${short_count(cluster.pushes)} exchanges; it talked for ${duration(cluster.talking_s)} and waited for others ${duration(cluster.waiting_s)}.`);
  const columns: Column<ClusterNode>[] = [
    { title: "Node", cell: (node) => node.leader ? `${node.node} (leads)` : String(node.node) },
    { title: "Role", cell: (node) => visible(node.role) },
    { title: "State", cell: (node) => mark(node.state === "silent" ? `silent for ${duration(node.silent_s)}` : visible(node.state), kNodeStates[node.state] ?? "warn") },
    { title: "Clock", number: true, cell: (node) => short_count(node.clock) },
    { title: "Behind by (clocks)", number: true, cell: (node) => short_count(staleness(node, cluster.nodes)) },
    { title: "Sent", number: true, cell: (node) => bytes(node.bytes_sent) },
    { title: "Received", number: true, cell: (node) => bytes(node.bytes_received) },
  ];
  fill_table(by_id<HTMLTableElement>("nodes"), columns, cluster.nodes);
}

const kBottlenecks: Record<string, string> = {
  source: "The sources: text is learned as fast as it arrives, and there would be time for more.",
  sources: "The sources: text is learned as fast as it arrives, and there would be time for more.",
  text: "Making words of the text: more threads would help.",
  training: "Training: text arrives faster than it is learned; more threads or machines would help.",
};
const kStages: Record<string, string> = { source: "Waiting for sources", text: "Making words of text", training: "Training" };

/** null: it is not measured; undefined: not yet. */
export function show_bottleneck(bottleneck: string | null | undefined): void {
  set_text(by_id("bottleneck"), bottleneck === undefined ? "Not known yet." : bottleneck === null ? "Nothing is measured for this kind of run."
    : kBottlenecks[bottleneck] ?? visible(bottleneck));
}

export function show_stages(stages: Readonly<Record<string, number>> | null): void {
  by_id("stages").replaceChildren(...Object.entries(stages ?? {}).map(([name, share]) =>
    bar(document.createTextNode(kStages[name] ?? visible(name)), share, `${percent(share)} of the time`)));
}

/** A line with a bar behind it, 0 … 1. */
export function bar(label: Node, share: number, value: string): HTMLLIElement {
  const meter = element("meter", { attributes: { min: "0", max: "1", "aria-hidden": "true" } });
  meter.value = Math.min(1, Math.max(0, share));
  return element("li", {}, meter, element("span", {}, label), element("span", { class: "value" }, value));
}

export function word_bar(word: string, share: number, value: string, choose: (word: string) => void): HTMLLIElement {
  const button = word_element(word, "button");
  button.addEventListener("click", () => choose(word));
  return bar(button, share, value);
}
