// The panel that shows which words carried the score of a candidate.
import { call } from "./api.js";
import { byId, el, spoken } from "./dom.js";
import { scoreText, signed, t } from "./language.js";
import { announce, errorParts } from "./notices.js";
import { litLines, strongest, wordsOf } from "./words.js";

const WAIT_MS = 120;
const KEPT = 300;
const LISTED = 5;
const QUICK_CHARACTERS = 400; // a cross-encoder reads a pair once per word: longer pairs wait for a click

const cache = new Map();
let wanted = null; // what the panel shows or waits for
let running = null;
let timer = 0;

/**
 * @typedef {object} Subject
 * @property {string} model
 * @property {string} kind of the model
 * @property {string | string[]} context
 * @property {string} candidate
 * @property {boolean} pinned
 * @property {() => void} release
 */

/** Show the panel with a context, and no candidate yet. */
export function showContext(context) {
  cancel();
  wanted = null;
  draw({ context });
}

/**
 * Show which words carried the score of a candidate.
 * @param {Subject} subject
 */
export function explain(subject, { now = false } = {}) {
  cancel();
  wanted = subject;
  const known = cache.get(keyOf(subject));
  if (known) {
    timer = setTimeout(() => say(known), WAIT_MS);
    draw({ subject, answer: known });
    return;
  }
  const slow = subject.kind === "cross" && textOf(subject.context).length + subject.candidate.length > QUICK_CHARACTERS;
  if (slow && !now) timer = setTimeout(() => draw({ subject, slow }), WAIT_MS);
  else timer = setTimeout(() => load(subject), now ? 0 : WAIT_MS);
}

/** Draw the panel again in another language. */
export const redrawExplanation = () => last && draw(last);

let last = null;

const keyOf = ({ model, context, candidate }) => JSON.stringify([model, context, candidate]);

function cancel() {
  clearTimeout(timer);
  running?.abort();
  running = null;
}

async function load(subject) {
  const { model, context, candidate } = subject;
  const mine = (running = new AbortController());
  draw({ subject, waiting: true });
  try {
    const { data } = await call("v1/explain", { model, context, candidate }, { signal: mine.signal });
    cache.set(keyOf(subject), data);
    if (cache.size > KEPT) cache.delete(cache.keys().next().value);
    if (wanted !== subject) return;
    draw({ subject, answer: data });
    say(data);
  } catch (error) {
    if (error.name !== "AbortError" && wanted === subject) draw({ subject, error });
  }
}

/** Let screen readers say what the panel shows. */
function say({ context, tokens }) {
  const words = strongest(wordsOf(context, tokens).words, LISTED);
  announce(`${t("topWords")}: ${words.map(({ text, contribution }) => `${text} ${signed(contribution)}`).join(", ")}`);
}

function draw(shown) {
  last = shown;
  const { subject = null, answer = null, waiting = false, slow = false, error = null } = shown;
  const context = textOf(subject?.context ?? shown.context);
  const found = answer && wordsOf(answer.context, answer.tokens);
  const other = answer && wordsOf(answer.candidate, answer.candidate_tokens);
  const panel = byId("explanation");
  panel.classList.toggle("is-waiting", waiting);
  panel.classList.toggle("is-pinned", Boolean(subject?.pinned));
  panel.replaceChildren(
    head(subject, answer),
    el(
      "div",
      { class: "texts" },
      textBlock("context", "context-text", litLines(answer?.context ?? context, found?.words ?? [])),
      textBlock("candidate", "candidate-text", litLines(subject?.candidate ?? "", other?.words ?? [])),
    ),
    el("div", { class: "foot" }, foot({ subject, answer, found, waiting, slow, error }), legend()),
  );
  for (const name of [".context-text", ".candidate-text"]) showStrongest(panel.querySelector(name));
}

/** Scroll a text, not the page, to the word that carried the most, and fade it out where it goes on. */
function showStrongest(text) {
  const marks = [...text.querySelectorAll("mark.raises")];
  const most = marks.find((mark) => mark.style.getPropertyValue("--share") === "1.000");
  if (most) text.scrollTop += most.getBoundingClientRect().top - text.getBoundingClientRect().top - text.clientHeight / 2;
  const fade = () => text.classList.toggle("goes-on", text.scrollHeight - text.scrollTop - text.clientHeight > 4);
  text.addEventListener("scroll", fade, { passive: true });
  fade();
}

const textOf = (context) => (Array.isArray(context) ? context.join("\n") : (context ?? ""));

function head(subject, answer) {
  const state = answer ? t("explained", answer.model, scoreText(answer.score)) : (subject?.model ?? "");
  return el(
    "header",
    {},
    el("h2", { id: "explanation-title" }, t("explainTitle")),
    el("span", { class: "muted" }, state),
    el(
      "button",
      { type: "button", class: subject?.pinned ? "quiet small" : "quiet small unseen", on: { click: () => release(subject) } },
      t("unpin"),
    ),
  );
}

function release(subject) {
  byId("explanation").focus(); // the button is about to vanish
  subject?.release();
}

function textBlock(label, name, lines) {
  return el(
    "div",
    { class: "block" },
    el("h3", { class: "muted small", id: `${name}-label` }, t(label)),
    el("div", { class: `text ${name}`, tabindex: 0, role: "group", "aria-labelledby": `${name}-label` }, ...lines),
  );
}

function foot({ subject, answer, found, waiting, slow, error }) {
  const line = (...children) => el("div", { class: "words small" }, ...children);
  if (error) return line(el("span", {}, errorParts(error).slice(0, 2).join(" ")));
  if (waiting) return line(el("span", { class: "muted" }, t("explaining")));
  if (slow) return line(el("span", { class: "muted" }, t("explainSlow")));
  if (!subject || !answer) return line(el("span", { class: "muted" }, hint()));
  const words = strongest(found.words, LISTED).flatMap(({ text, contribution }) => [
    el("span", { class: "word" }, el("bdi", {}, text), " ", el("span", { class: "muted" }, signed(contribution))),
    " ",
  ]);
  const notes = [
    t(answer.method === "exact" ? "exact" : "leaveOneOut"),
    found.outside ? t("outside", signed(found.outside)) : null,
    answer.context_truncated ? t("contextTruncated", answer.context_truncated, answer.context_truncated) : null,
    answer.candidate_truncated ? `${t("candidate")}: ${t("truncated", answer.candidate_truncated)}` : null,
  ].filter(Boolean);
  return line(
    el("span", { class: "label" }, `${t("topWords")}: `),
    ...words,
    el("span", { class: "muted method" }, notes.join(" · ")),
  );
}

const hint = () => t(matchMedia("(hover: hover)").matches ? "explainHint" : "explainHintTouch");

function legend() {
  const step = (share) => {
    const box = el("mark", { class: "raises" }, " ");
    box.style.setProperty("--share", String(share));
    return box;
  };
  return el(
    "div",
    { class: "legend small muted" },
    spoken(t("legend")),
    el("span", { "aria-hidden": true }, step(0.2), step(0.5), step(1), ` ${t("raises")}`),
    el("span", { "aria-hidden": true }, el("mark", { class: "lowers" }, "abc"), ` ${t("lowers")}`),
  );
}
