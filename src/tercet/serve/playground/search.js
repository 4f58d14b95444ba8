// The tab "Search": an index, a query, and the hits.
import { call } from "./api.js";
import { searchCalls } from "./calls.js";
import { startCode } from "./code.js";
import { byId, el } from "./dom.js";
import { foundElements } from "./found.js";
import { wellFormed } from "./inputs.js";
import { language, number, t } from "./language.js";
import { announce, errorBox } from "./notices.js";
import { unreadNote } from "./start.js";

const RERANK_DEPTH = 50; // as in the library
const STOPPABLE_MS = 600; // a second click that comes sooner was a double click

/**
 * @param {object} hooks
 * @param {() => void} hooks.onDraft called when the inputs change
 * @param {() => void} hooks.onRun called when they are run
 */
export function startSearch({ onDraft, onRun }) {
  let indexes = null;
  let models = [];
  let asked = null; // the body of the last request
  let found = null; // {answer, seconds} or {error}
  let running = null;
  let stoppable = false;
  let awaited = null; // what a link asks for, until the indexes are known
  const code = startCode(byId("search-code"));

  const current = () => indexes?.find((each) => each.id === byId("index").value) ?? null;
  const mode = () => byId("modes").querySelector("input:checked").value;

  function body() {
    const index = current();
    const k = Math.min(1000, Math.max(1, Math.round(Number(byId("k").value)) || 10));
    const given = { index: index?.id, context: wellFormed(byId("query").value).trim(), k, mode: mode() };
    const reranked = byId("rerank").checked && index?.reranker;
    return { ...given, ...(reranked ? { rerank: Math.max(k, RERANK_DEPTH) } : {}) };
  }

  function edited() {
    if (awaited) awaited.tab = "rank"; // a draft is not run by itself
    byId("search-problem").textContent = "";
    showIndex();
    showCode();
    onDraft();
  }

  function showIndex() {
    const index = current();
    byId("index-about").textContent = index
      ? t("indexAbout", index.size, index.model, t("kind", index.kind))
      : "";
    byId("rerank").disabled = !index?.reranker;
    byId("rerank").nextElementSibling.textContent = index?.reranker
      ? t("rerankBy", index.reranker)
      : t("rerankNone");
  }

  function showCode() {
    const given = body();
    code.show(given.index && given.context ? searchCalls(given, current().reranker) : null);
  }

  async function run() {
    const given = body();
    const wrong = given.index && !given.context ? "needQuery" : null;
    byId("search-problem").textContent = wrong ? t(wrong) : "";
    if (awaited) awaited.tab = "search";
    if (wrong || !given.index) return;
    running?.abort();
    const mine = (running = new AbortController());
    [asked, found] = [given, null];
    stoppable = false;
    setTimeout(() => running === mine && offerStop(), STOPPABLE_MS);
    onRun();
    draw();
    const outcome = await ask(given, mine.signal);
    if (running !== mine) return;
    [found, running] = [outcome, null];
    draw();
    if (found?.answer) {
      announce(`${t("foundTitle", found.answer.hits.length, given.index)}. ${t("certainty", found.answer.certainty)}`);
    }
  }

  async function ask(given, signal) {
    try {
      const { data, seconds } = await call("v1/search", given, { signal });
      return { answer: data, seconds };
    } catch (error) {
      return error.name === "AbortError" ? null : { error };
    }
  }

  function offerStop() {
    stoppable = true;
    byId("search-run").textContent = t("stop");
  }

  function stop() {
    running.abort();
    asked = null;
  }

  function draw() {
    byId("search-run").textContent = t(running && stoppable ? "stop" : "search");
    byId("search-empty").hidden = asked !== null;
    byId("found").hidden = asked === null;
    byId("found").ariaBusy = String(running !== null);
    showUnread();
    if (found?.error) byId("found").replaceChildren(errorBox(found.error, run));
    else byId("found").replaceChildren(...foundElements(asked, found));
  }

  /** Searching by words needs no model. */
  function showUnread() {
    const model = models.filter((each) => asked?.mode !== "lexical" && each.id === current()?.model);
    const note = asked ? unreadNote(model, asked.context) : "";
    byId("search-language-note").textContent = note;
    byId("search-language-note").hidden = !note;
  }

  function drawEmpty() {
    const none = indexes !== null && !indexes.length;
    byId("search-form").hidden = none;
    const [model, faq] = language() === "ko" ? ["bi-ko", "faq.ko"] : ["bi", "faq.en"];
    const commands = [
      `tercet index build sample:${faq} --model ${model} --column question -o faq.tercet`,
      `tercet serve --model ${model} --model poly --model cross --index faq.tercet`,
    ];
    byId("search-empty").replaceChildren(
      el("h2", {}, t(none ? "noIndexTitle" : "searchEmptyTitle")),
      el("p", { class: "muted" }, t(none ? "noIndexText" : "searchEmptyText")),
      ...(none ? [el("pre", { tabindex: 0, dir: "ltr" }, el("code", {}, commands.join("\n")))] : []),
    );
  }

  function setIndexes(served, loaded) {
    [indexes, models] = [served, loaded];
    const options = served.map(({ id, size }) => el("option", { value: id }, `${id} (${number(size)})`));
    byId("index").replaceChildren(...options);
    drawEmpty();
    const { index, rerank, tab } = awaited ?? {};
    awaited = null;
    restore({ ...state(), index, rerank, tab });
  }

  function state() {
    const { k, mode } = body();
    return { index: byId("index").value, query: byId("query").value, k, mode, rerank: byId("rerank").checked };
  }

  /** Show the inputs of a link or of an entry of the history, and their results. */
  function restore(given) {
    if (indexes === null) awaited = { ...given };
    if (indexes?.some((each) => each.id === given.index)) byId("index").value = given.index;
    byId("query").value = given.query;
    byId("k").value = given.k;
    for (const each of byId("modes").querySelectorAll("input")) each.checked = each.value === given.mode;
    showIndex();
    byId("rerank").checked = Boolean(given.rerank) && !byId("rerank").disabled;
    showCode();
    const wanted = body();
    if (JSON.stringify(wanted) === JSON.stringify(asked)) return;
    running?.abort();
    [asked, found, running] = [null, null, null];
    draw();
    if (wanted.index && wanted.context && given.tab === "search") run();
  }

  byId("search-form").addEventListener("input", edited);
  byId("search-form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (!running || !event.submitter) run();
    else if (stoppable) stop();
  });
  drawEmpty();
  return {
    restore,
    setIndexes,
    state,
    /** Draw everything in another language. */
    redraw: () => {
      drawEmpty();
      showIndex();
      showCode();
      draw();
    },
  };
}
