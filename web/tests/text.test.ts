import assert from "node:assert/strict";
import test from "node:test";
import { bytes, duration, fixed, moment, short_count, visible, visible_long } from "../src/text";

test("control characters are shown as their symbols", () => {
  assert.equal(visible("a\u0000b\tc\u007f"), "a␀b␉c␡");
});

test("characters that turn or hide text are shown by their number", () => {
  assert.equal(visible("\u202egnp.exe\u202c"), "⟨202E⟩gnp.exe⟨202C⟩");
  assert.equal(visible("a\u200bb\u2066c\ufeff"), "a⟨200B⟩b⟨2066⟩c⟨FEFF⟩");
  assert.equal(visible("x\u{e0041}"), "x⟨E0041⟩");
});

test("ordinary words of any script stay as they are", () => {
  for (const word of ["tiger", "Straße", "שלום", "日本語", "नमस्ते", "🙂", "e\u0301", "<b>&amp;", "__proto__"]) assert.equal(visible(word), word);
});

test("half a surrogate pair is shown by its number, a whole one as it is", () => {
  assert.equal(visible("\ud83d"), "⟨D83D⟩");
  assert.equal(visible("\ude42a"), "⟨DE42⟩a");
  assert.equal(visible("😀"), "😀");
});

test("marks do not pile up and long words are cut", () => {
  assert.equal(visible("a" + "\u0301".repeat(50)), "a" + "\u0301".repeat(4));
  assert.equal(Array.from(visible("x".repeat(5000))).length, 60);
  assert.equal(visible(""), "(empty)");
});

test("messages are shown whole, by the same rules", () => {
  assert.equal(visible_long("x".repeat(5000) + "\u202e\t"), "x".repeat(5000) + "⟨202E⟩␉");
  assert.equal(visible_long(""), "(empty)");
});

test("a moment of another day has the date of the same place as its time", () => {
  const zone = process.env.TZ;
  try {
    for (const [name, shown] of [["Asia/Tokyo", "2024-11-16 03:15"], ["America/Los_Angeles", "2024-11-15 10:15"], ["UTC", "2024-11-15 18:15"]] as const) {
      process.env.TZ = name;
      assert.equal(moment(1731694512), shown);
    }
  } finally {
    if (zone === undefined) delete process.env.TZ;
    else process.env.TZ = zone;
  }
});

test("numbers are short and what is not known is a dash", () => {
  assert.deepEqual([0, 0.25, 3.96, 42, 1234, 9999, 12345, 999_600, 4_560_000, 7e9].map(short_count),
    ["0", "0.25", "4", "42", "1,234", "9,999", "12.3 k", "1 M", "4.56 M", "7 G"]);
  for (const shown of [short_count, bytes, duration, moment]) for (const value of [null, undefined, NaN, Infinity]) assert.equal(shown(value), "–");
  assert.equal(fixed(-0.256, 2), "−0.26");
  assert.deepEqual([0, 512, 20_480].map(bytes), ["0 B", "512 B", "20.5 kB"]);
  assert.deepEqual([0.84, 42, 300, 9000, 500_000].map(duration), ["0.8 s", "42 s", "5 min", "3 h", "6 days"]);
});
