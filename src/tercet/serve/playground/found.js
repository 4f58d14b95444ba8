// The hits of a search, with what is stored beside each text.
import { bar, barLengths } from "./bars.js";
import { el } from "./dom.js";
import { duration, scoreText, t } from "./language.js";

const LONGEST_VALUE = 400;

/**
 * @param {{index: string, k: number} | null} asked
 * @param {{answer: object, seconds: number} | null} found null while the search runs
 */
export function foundElements(asked, found) {
  if (!asked) return [];
  if (!found) return [head("…", ""), el("ol", { class: "hits", "aria-hidden": true }, ...blanks(Math.min(asked.k, 10)))];
  const { answer, seconds } = found;
  const times = `${t("modelTime", duration(answer.seconds))} · ${t("roundTrip", duration(seconds))}`;
  return [
    head(t("foundTitle", answer.hits.length, answer.index), times),
    el("p", { class: "certainty", data: { certainty: answer.certainty } }, t("certainty", answer.certainty)),
    answer.context_truncated ? el("p", { class: "cut small" }, t("queryTruncated", answer.context_truncated)) : null,
    answer.hits.length ? hits(answer.hits, answer.certainty === "reranked") : el("p", { class: "muted" }, t("foundNone")),
  ].filter(Boolean);
}

const head = (title, times) =>
  el("header", {}, el("h2", { id: "found-title" }, title), el("span", { class: "muted small" }, times));

function hits(found, reranked) {
  const lengths = barLengths(found, reranked);
  return el("ol", { class: "hits" }, ...found.map((hit, at) => hitElement(hit, at, lengths[at])));
}

function hitElement(hit, at, length) {
  return el(
    "li",
    { class: "hit" },
    el("span", { class: "rank", "aria-hidden": true }, String(at + 1)),
    el(
      "div",
      {},
      el("p", { class: "text", dir: "auto" }, ...marked(hit)),
      hit.part ? el("p", { class: "muted small" }, t("foundPart")) : null,
    ),
    el(
      "div",
      { class: "numbers" },
      el("span", { class: "score" }, scoreText(hit.score)),
      bar(length),
    ),
    metadata(hit),
  );
}

/** The text; the part that matched is marked. Its characters are counted as Python counts them. */
function marked({ text, part }) {
  if (!part) return [text];
  const points = Array.from(text);
  const piece = (start, end) => points.slice(start, end).join("");
  return [piece(0, part.start), el("mark", { class: "part" }, piece(part.start, part.end)), piece(part.end)];
}

function metadata({ id, metadata: stored }) {
  const rows = [["id", id], ...Object.entries(stored)].flatMap(([name, value]) => [
    el("dt", {}, name),
    el("dd", { dir: "auto" }, short(typeof value === "string" ? value : JSON.stringify(value))),
  ]);
  return el("dl", { class: "small" }, ...rows);
}

const short = (text) => (text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}…` : text);

const blanks = (count) => Array.from({ length: count }, () => el("li", { class: "hit blank" }));
