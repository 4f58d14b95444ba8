// The tab "Rank": the inputs, one call per model, and the columns with the answers.
import { call } from "./api.js";
import { rankCalls } from "./calls.js";
import { startCode } from "./code.js";
import { columnElements, summary } from "./columns.js";
import { byId } from "./dom.js";
import { examples } from "./examples.js";
import { explain, redrawExplanation, showContext } from "./explain.js";
import { linesOf, wellFormed } from "./inputs.js";
import { t } from "./language.js";
import { announce } from "./notices.js";
import { startPointing } from "./pointing.js";
import { drawExampleList, drawStart, exampleOf, unreadNote } from "./start.js";
import { startTurns } from "./turns.js";

const FIRST = 20; // candidates that are shown before "Show all"
const STOPPABLE_MS = 600; // a second click that comes sooner was a double click

/**
 * @param {object} hooks
 * @param {() => void} hooks.onDraft called when the inputs change
 * @param {() => void} hooks.onRun called when they are run, or a candidate is pinned
 */
export function startRank({ onDraft, onRun }) {
  let models = [];
  let columns = [];
  let asked = null; // the inputs of the columns
  let shown = FIRST;
  let running = null;
  let stoppable = false;
  let pending = false; // to be run once the models are known
  const turns = startTurns(edited);
  const code = startCode(byId("rank-code"));
  const pointing = startPointing(byId("columns"), {
    onPoint: explainPlace,
    onPin: () => {
      showCode();
      onRun();
    },
  });

  function inputs() {
    const said = turns.get().map(wellFormed).filter((turn) => turn.trim());
    return { context: said.length === 1 ? said[0] : said, candidates: linesOf(byId("candidates").value) };
  }

  function edited() {
    pending = false;
    byId("example").value = "";
    byId("rank-problem").textContent = "";
    showCounts();
    showCode();
    showStale();
    onDraft();
  }

  function showCounts() {
    const { length } = linesOf(byId("candidates").value);
    byId("candidate-count").textContent = length ? t("candidateCount", length) : "";
  }

  function showStale() {
    byId("rank-stale").hidden = asked === null || equal(asked, inputs());
  }

  function showCode() {
    const given = inputs();
    code.show(problem(given) ? null : rankCalls(given, models), pointing.pinned()?.model);
  }

  /** Ask the models one after another: together, they would wait for each other, and the times would show it. */
  async function run({ restoring = false } = {}) {
    const given = inputs();
    const wrong = problem(given);
    byId("rank-problem").textContent = wrong ? t(wrong) : "";
    pending = !wrong && !models.length;
    if (wrong || pending) return;
    running?.abort();
    const mine = (running = new AbortController());
    if (asked && !equal(asked, given)) pointing.setPinned(null);
    [asked, shown] = [given, FIRST];
    columns = models.map((model) => ({ model, status: "waiting" }));
    showContext(given.context);
    onRun();
    announce("");
    stoppable = false;
    setTimeout(() => running === mine && offerStop(), STOPPABLE_MS);
    for (const column of columns) {
      if (mine.signal.aborted) break;
      column.status = "running";
      draw();
      if (column === columns[0] && !restoring) scrollToResults();
      await ask(column, given, mine.signal);
    }
    if (running === mine) finish();
  }

  /** On narrow screens, the results begin below the inputs. */
  function scrollToResults() {
    if (!matchMedia("(max-width: 64rem)").matches) return;
    byId("comparison").parentElement.scrollIntoView();
  }

  function finish() {
    running = null;
    draw();
    announce(summary(columns));
    const { model } = pointing.pinned() ?? {};
    if (!columns.some((column) => column.model.id === model)) pointing.setPinned(null);
    pointing.show();
  }

  function offerStop() {
    stoppable = true;
    byId("rank-run").textContent = t("stop");
  }

  function stop() {
    for (const column of columns) if (column.status === "waiting") column.status = "stopped";
    running.abort();
  }

  function draw() {
    const count = asked?.candidates.length ?? 0;
    byId("rank-empty").hidden = asked !== null;
    for (const id of ["explanation", "comparison"]) byId(id).hidden = asked === null;
    showUnread();
    byId("rank-run").textContent = t(running && stoppable ? "stop" : "rank");
    byId("show-all").hidden = count <= FIRST;
    byId("show-all").textContent = shown === FIRST ? t("showAll", count) : t("showFewer", FIRST);
    showStale();
    byId("columns").ariaBusy = String(running !== null);
    byId("columns").style.setProperty("--columns", String(columns.length));
    pointing.redraw(() =>
      byId("columns").replaceChildren(...columnElements(columns, Math.min(shown, count), () => run())),
    );
  }

  function showUnread() {
    const note = asked ? unreadNote(models, [asked.context, asked.candidates].flat().join(" ")) : "";
    byId("language-note").textContent = note;
    byId("language-note").hidden = !note;
  }

  function explainPlace(place, { now }) {
    const candidate = asked?.candidates[place?.position];
    if (!asked) return;
    if (candidate === undefined) showContext(asked.context);
    else {
      const pinned = pointing.pinned() !== null;
      const { model } = place;
      const kind = models.find((each) => each.id === model)?.kind;
      explain({ model, kind, context: asked.context, candidate, pinned, release: pointing.release }, { now });
    }
  }

  function choose(id) {
    const example = examples.find((each) => each.id === id);
    if (!example) return;
    pointing.setPinned(null);
    setInputs({ turns: example.turns, candidates: example.candidates.join("\n") });
    run();
  }

  function setInputs(state) {
    turns.set(state.turns);
    byId("candidates").value = state.candidates;
    byId("example").value = exampleOf(state)?.id ?? "";
    showCounts();
    showCode();
  }

  /** Show the inputs of a link or of an entry of the history, and their results. */
  function restore(state) {
    setInputs(state);
    const given = inputs();
    pointing.setPinned(problem(given) ? null : state.pinned);
    if (asked && equal(given, asked)) pointing.show();
    else {
      running?.abort();
      [asked, columns, running] = [null, [], null];
      draw();
      if (!problem(given)) run({ restoring: true });
    }
    showCode();
  }

  byId("candidates").addEventListener("input", edited);
  byId("example").addEventListener("change", (event) => choose(event.target.value));
  byId("show-all").addEventListener("click", () => {
    shown = shown === FIRST ? Infinity : FIRST;
    draw();
  });
  byId("rank-form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (!running || !event.submitter) run(); // Ctrl+Enter has no submitter
    else if (stoppable) stop();
  });
  drawExampleList();
  return {
    restore,
    state: () => ({ turns: turns.get(), candidates: byId("candidates").value, pinned: pointing.pinned() }),
    setModels: (loaded) => {
      models = loaded;
      drawStart(models, choose);
      showCode();
      if (pending) run({ restoring: true });
    },
    /** Draw everything in another language. */
    redraw: () => {
      turns.draw();
      drawExampleList();
      drawStart(models, choose);
      showCounts();
      showCode();
      draw();
      redrawExplanation();
    },
  };
}

/** Fill a column with the answer of its model, or with the error. */
async function ask(column, { context, candidates }, signal) {
  const body = { model: column.model.id, context, candidates, k: candidates.length };
  try {
    const { data, seconds } = await call("v1/rank", body, { signal });
    Object.assign(column, { status: "done", answer: data, seconds });
  } catch (error) {
    Object.assign(column, { status: signal.aborted ? "stopped" : "failed", error });
  }
}

const equal = (one, other) => JSON.stringify(one) === JSON.stringify(other);

const problem = ({ context, candidates }) =>
  !context.length ? "needContext" : !candidates.length ? "needCandidates" : null;
