// How words and numbers become text on the page. Words come from the stream and may hold anything: they are only ever
// set as text, in an element that keeps their writing direction to itself, with what cannot be seen made visible.

const kDeleted = "\u2421";
/** Direction marks, joiners, separators, tags, variation selectors: characters that show nothing and change what stands near. */
const kInvisible = /[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]|[\u{e0000}-\u{e0fff}]/gu;
/** More marks than any script puts on one letter pile up over other lines. */
const kPile = /(\p{M}{4})\p{M}+/gu;
const kLengthMax = 60;

/** A word as it can be shown on one line: control characters as their symbols, invisible ones by their number. */
export function visible(word: string): string {
  const shown = visible_long(word), letters = Array.from(shown);
  return letters.length > kLengthMax ? letters.slice(0, kLengthMax - 1).join("") + "…" : shown;
}

/** The same of any length, for addresses and messages. */
export function visible_long(text: string): string {
  const shown = text.replace(/[\u0000-\u001f]/g, (c) => String.fromCharCode(0x2400 + c.charCodeAt(0)))
    .replace(/\u007f/g, kDeleted)
    .replace(/[\u0080-\u009f]|[\ud800-\udfff](?<![\ud800-\udbff][\udc00-\udfff])(?![\udc00-\udfff])/g, number_of)
    .replace(kInvisible, number_of)
    .replace(kPile, "$1");
  return shown === "" ? "(empty)" : shown;
}

function number_of(character: string): string {
  return `⟨${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

const kUnknown = "–";

export type Maybe = number | null | undefined;

function is_known(value: Maybe): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

/** 1,234 below ten thousand; then 12.3 k, 4.56 M. */
export function short_count(value: Maybe): string {
  if (!is_known(value)) return kUnknown;
  const size = Math.abs(value);
  if (size < 10) return trim_zeros(value.toFixed(size < 1 ? 2 : 1));
  if (size < 9_999.5) return Math.round(value).toLocaleString("en");
  for (const [unit, name] of [[1e3, "k"], [1e6, "M"], [1e9, "G"]] as const)
    if (size < unit * 999.5) return `${trim_zeros((value / unit).toPrecision(3))} ${name}`;
  return `${trim_zeros((value / 1e12).toPrecision(3))} T`;
}

function trim_zeros(text: string): string {
  return text.includes(".") && !text.includes("e") ? text.replace(/\.?0+$/, "") : text;
}

export function fixed(value: Maybe, digits: number): string {
  return is_known(value) ? value.toFixed(digits).replace("-", "−") : kUnknown;
}

export function percent(share: Maybe): string {
  return is_known(share) ? `${Math.round(share * 100)} %` : kUnknown;
}

export function bytes(value: Maybe): string {
  return is_known(value) ? `${short_count(value)}B`.replace(/^([\d.,]+)B$/, "$1 B") : kUnknown;
}

/** "0.8 s", "42 s", "3 min", "2 h", "5 days". */
export function duration(seconds: Maybe): string {
  if (!is_known(seconds)) return kUnknown;
  if (seconds < 9.95) return `${trim_zeros(seconds.toFixed(1))} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7_200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} days`;
}

/** The time of day for today, otherwise with the date; seconds since 1970. */
export function moment(seconds: Maybe, now = Date.now()): string {
  if (!is_known(seconds)) return kUnknown;
  const at = new Date(seconds * 1000);
  if (Number.isNaN(at.getTime())) return kUnknown;
  const clock = at.toLocaleTimeString("en-GB"), date = at.toLocaleDateString("sv");  // Sweden writes year-month-day
  return Math.abs(now - at.getTime()) < 43_200_000 ? clock : `${date} ${clock.slice(0, 5)}`;
}
