// Shares of tokens as words, and texts with their words lit up.
import { el } from "./dom.js";

/**
 * @typedef {{start: number, end: number, contribution: number}} Word
 *   counted in characters as Python counts them; JavaScript counts some characters twice
 */

const LETTERS = /^[\p{L}\p{N}\p{M}]+$/u;

/**
 * Words from the shares of tokens: parts of one word become one.
 * @returns {{words: Word[], outside: number}} `outside` is the part of tokens without characters
 */
export function wordsOf(text, shares) {
  const points = Array.from(text);
  const words = [];
  let outside = 0;
  for (const { start, end, contribution } of shares) {
    if (start === end) {
      outside += contribution;
      continue;
    }
    const last = words.at(-1);
    const joins = last?.end === start && LETTERS.test(points.slice(last.start, end).join(""));
    if (joins) Object.assign(last, { end, contribution: last.contribution + contribution });
    else words.push({ start, end, contribution });
  }
  return { words: words.map((word) => ({ ...word, text: points.slice(word.start, word.end).join("") })), outside };
}

/** The words with the largest contributions, up or down. */
export const strongest = (words, count) =>
  words
    .filter(({ text }) => /[\p{L}\p{N}]/u.test(text))
    .sort((one, other) => Math.abs(other.contribution) - Math.abs(one.contribution))
    .slice(0, count);

/** The lines of a text; each word is lit by its share of the strongest contribution. */
export function litLines(text, words) {
  const most = Math.max(...words.map((word) => Math.abs(word.contribution)), 0) || 1;
  const points = Array.from(text);
  const lines = [el("p", { dir: "auto" })];
  const put = (start, end, make) =>
    points
      .slice(start, end)
      .join("")
      .split("\n")
      .forEach((part, at) => {
        if (at) lines.push(el("p", { dir: "auto" }));
        if (part) lines.at(-1).append(make(part));
      });
  let at = 0;
  for (const word of words) {
    if (word.start < at) continue; // overlapping words cannot both be lit
    put(at, word.start, (part) => part);
    put(word.start, word.end, (part) => lit(part, word.contribution / most));
    at = word.end;
  }
  put(at, points.length, (part) => part);
  return lines;
}

function lit(text, share) {
  const mark = el("mark", { class: share < 0 ? "lowers" : "raises" }, text);
  mark.style.setProperty("--share", Math.abs(share).toFixed(3));
  return mark;
}
