// One column per model: its ranking as a list, and lines that show how candidates move to the next column.
import { bar, barLengths } from "./bars.js";
import { el, spoken } from "./dom.js";
import { duration, scoreText, t } from "./language.js";
import { moves } from "./lines.js";
import { errorBox } from "./notices.js";

/**
 * @typedef {object} Column
 * @property {{id: string, kind: string}} model
 * @property {"waiting" | "running" | "done" | "failed" | "stopped"} status
 * @property {object} [answer] of /v1/rank
 * @property {number} [seconds] of the round trip
 * @property {unknown} [error]
 */

/**
 * The columns as elements.
 * @param {Column[]} columns
 * @param {number} shown how many candidates of each
 * @param {() => void} retry
 */
export function columnElements(columns, shown, retry) {
  const elements = [];
  columns.forEach((column, at) => {
    const before = columns[at - 1];
    if (before) elements.push(moves(before.answer, column.answer, shown));
    elements.push(columnElement(column, before, shown, retry));
  });
  return elements;
}

function columnElement(column, before, shown, retry) {
  const { model, answer } = column;
  const title = el("h3", {}, model.id, " ", el("span", { class: "muted" }, kindOf(model)));
  const head = el("header", {}, title, el("p", { class: "muted small" }, times(column)), truncation(answer));
  return el(
    "section",
    { class: "column", "aria-label": `${model.id}, ${t("kind", model.kind)}`, data: { model: model.id } },
    head,
    body(column, before, shown, retry),
  );
}

const kindOf = ({ id, kind }) => (id.toLowerCase() === t("kind", kind).toLowerCase() ? "" : t("kind", kind));

function body(column, before, shown, retry) {
  if (column.status === "failed") return errorBox(column.error, retry);
  if (column.status === "stopped") return el("p", { class: "muted" }, t("stopped"));
  if (!column.answer) return skeleton(shown);
  const ranking = column.answer.ranking;
  const lengths = barLengths(ranking, column.model.kind === "cross");
  const ranks = before?.answer && ranksOf(before.answer);
  const rows = ranking
    .slice(0, shown)
    .map((each, at) => row(each, at, { length: lengths[at], model: column.model.id, before: before?.model.id, ranks }));
  return el("ol", { class: "ranking" }, ...rows);
}

/** @returns {Map<number, number>} ranks, from 1 on, by the positions of candidates */
export const ranksOf = (answer) => new Map(answer.ranking.map((each, at) => [each.position, at + 1]));

function row(each, at, { length, model, before, ranks }) {
  const button = el(
    "button",
    {
      type: "button",
      class: "candidate",
      tabindex: at === 0 ? 0 : -1,
      "aria-pressed": "false",
      data: { position: each.position, model },
    },
    el("span", { class: "rank", "aria-hidden": true }, String(at + 1)),
    spoken(`${t("rankOf", at + 1)}: `),
    el("span", { class: "text", dir: "auto" }, each.text),
    ranks ? movement(ranks.get(each.position) - (at + 1), before) : el("span", { class: "move" }),
    bar(length),
    el(
      "span",
      { class: "numbers" },
      spoken(`. ${t("score")} `),
      el("span", { class: "score" }, scoreText(each.score)),
      each.probability === null ? null : el("span", {}, t("probability", percent(each.probability))),
      each.candidate_truncated ? el("span", { class: "cut" }, t("truncated", each.candidate_truncated)) : null,
    ),
  );
  return el("li", {}, button);
}

/** How far a candidate has moved since the column before; positive is up. */
function movement(by, before) {
  const [sign, text] = by > 0 ? ["▲", t("up", by, before)] : by < 0 ? ["▼", t("down", -by, before)] : ["=", t("same", before)];
  return el(
    "span",
    { class: "move", title: text, data: { moved: Math.sign(by) } },
    el("span", { "aria-hidden": true }, by ? `${sign}${Math.abs(by)}` : sign),
    spoken(`. ${text}`),
  );
}

const percent = (share) => `${(100 * share).toFixed(share > 0.995 || share < 0.005 ? 1 : 0)}%`;

function times({ status, answer, seconds }) {
  if (answer) return `${t("modelTime", duration(answer.seconds))} · ${t("roundTrip", duration(seconds))}`;
  return status === "running" ? "…" : status === "waiting" ? t("waiting") : "–";
}

function truncation(answer) {
  const counts = (answer?.ranking ?? []).map((each) => each.context_truncated);
  const most = Math.max(0, ...counts);
  if (!most) return null;
  return el("p", { class: "cut small" }, t("contextTruncated", Math.min(...counts), most));
}

/** Rows without texts, as high as those with texts. */
function skeleton(shown) {
  const rows = Array.from({ length: Math.max(1, shown) }, () => el("li", {}, el("span", { class: "candidate blank" })));
  return el("ol", { class: "ranking", "aria-hidden": true }, ...rows);
}

/** The sentence that screen readers say at the end. */
export function summary(columns) {
  const done = columns.filter((column) => column.answer);
  if (!done.length) return "";
  const firsts = done.map(({ model, answer }) => t("rankedFirst", model.id, answer.ranking[0].text.slice(0, 200)));
  return [t("ranked", done[0].answer.ranking.length, done.length), ...firsts].join(" ");
}
