// The calls of the query service (docs/SERVING.md) that the dashboard makes; all go to the host the page came from.

export interface Neighbour { word: string; cosine: number; count?: number }
export interface Nearest { words: { word: string; seen: boolean; weight: number }[]; neighbours: Neighbour[] }
export interface Station {
  step: number; time: number | null; tokens: number; count: number; cosine: number | null; overlap: number | null;
  neighbours: Neighbour[];
}
export interface ModelCard {
  model: string; words: number; dim: number; tokens: number; step: number; number: number; service: string;
  version: string; makes_unseen_words: boolean;
}
export interface SourceState {
  name: string; state: string; documents: number; documents_per_s: number | null; bytes_per_s: number | null;
  lag_s: number | null; errors: number; last_error: string | null; permission: string | null;
}
export interface ClusterNode {
  node: number; role: string; leader: boolean; state: string; silent_s: number | null; clock: number | null;
  staleness?: number | null; bytes_sent?: number | null; bytes_received?: number | null;
}
export interface Cluster {
  pushes: number; bytes_sent: number; bytes_received: number; waiting_s: number; talking_s: number; nodes: ClusterNode[];
}
export interface Progress {
  time: number; tokens: number; documents: number | null; seconds: number; tokens_per_s: number; loss: number | null;
  prequential_loss: number | null; fraction: number | null; epoch: number | null; words: number; dim: number; model: string; kernel: string;
  bottleneck: string | null; replay: { chunks: number; ratio: number | null } | null; sources: SourceState[];
  cluster: Cluster | null;
}
export interface Pip { relative: number; cka: number | null; neighbour_overlap: number | null; references?: Record<string, { relative: number }> }
export interface Metrics {
  time: number; step: number; tokens: number; tokens_per_s: number; prequential_loss: number | null; loss: number | null;
  pip: Pip | null; overlap_with_last: number | null; similarity: Record<string, number | null> | null;
  analogy: Record<string, number | null> | null; stages: Record<string, number> | null; bottleneck: string | null;
  replay: { chunks: number; ratio: number | null } | null; sources?: SourceState[] | null;
  dropped: { documents: number; chunks: number; updates: number } | null;
}
export interface Alert { time: number; step: number; words: string[] }
export interface MapFrame { model: number; step: number; words: string[]; counts: number[]; x: number[]; y: number[]; group: number[] }
export interface Past { service: string; progress: Progress[]; metrics: Metrics[]; alerts: Alert[] }

/** An answer that is no success, with what the service says about it; status 0: there was no answer. */
export class CallError extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

async function answer_of<Type>(request: Promise<Response>): Promise<Type> {
  let answer: Response;
  try {
    answer = await request;
  } catch {
    throw new CallError(0, "The service does not answer.");
  }
  let value: unknown = null;
  try {
    value = await answer.json();
  } catch {
    if (answer.ok) throw new CallError(0, "The answer of the service was cut off.");
  }
  if (answer.ok) return value as Type;
  const said = (value as { error?: { message?: string } } | null)?.error?.message;
  throw new CallError(answer.status, said ?? `The service answered with ${answer.status}.`);
}

const kPatience_ms = 20_000, kSlowPatience_ms = 60_000;
let refused: (problem: CallError) => void = () => {};

/** `handler` is told whenever a call is refused for want of a token, or of a better one. */
export function when_refused(handler: (problem: CallError) => void): void {
  refused = handler;
}

export function is_refusal(problem: unknown): problem is CallError {
  return problem instanceof CallError && (problem.status === 401 || problem.status === 403);
}

async function get<Type>(path: string, parameters: Record<string, string | number> = {}, patience_ms = kPatience_ms): Promise<Type> {
  const query = new URLSearchParams(Object.entries(parameters).map(([name, value]) => [name, String(value)])).toString();
  const options: RequestInit = { credentials: "same-origin", cache: "no-store", signal: AbortSignal.timeout(patience_ms) };
  try {
    return await answer_of<Type>(fetch(path + (query ? `?${query}` : ""), options));
  } catch (problem) {
    if (is_refusal(problem)) refused(problem);
    throw problem;
  }
}

export const api = {
  model: () => get<ModelCard>("/api/model"),
  past: () => get<Past>("/api/progress", { points: 600 }),
  nearest: (word: string, k: number) => get<Nearest>("/api/nearest", { word, k }),
  words: (prefix: string, limit: number) => get<{ words: { word: string; count: number }[] }>("/api/words", { prefix, limit }),
  neighbourhood: (word: string, k: number) => get<{ path: Station[] }>("/api/neighbourhood", { word, k }, kSlowPatience_ms),
  login: (token: string) => answer_of<{ role: string }>(fetch("/api/login", {
    method: "POST", credentials: "same-origin", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }),
    signal: AbortSignal.timeout(kPatience_ms),
  })),
};
