// The inputs in the address of the page, so that a link restores them, and Back goes to the inputs before.

const LONGEST = 6000; // characters of a fragment that still travels well in chats and mails
const MODES = ["vectors", "lexical", "hybrid"];

/**
 * @typedef {object} State
 * @property {"rank" | "search"} tab
 * @property {string[]} turns
 * @property {string} candidates one per line
 * @property {{model: string, position: number} | null} pinned the candidate whose explanation is kept
 * @property {string} index
 * @property {string} query
 * @property {number} k
 * @property {string} mode
 * @property {boolean} rerank
 */

/** @returns {State} */
export const emptyState = () => ({
  tab: "rank",
  turns: [""],
  candidates: "",
  pinned: null,
  index: "",
  query: "",
  k: 10,
  mode: "vectors",
  rerank: false,
});

/** The fragment of a state, without "#". */
export function toFragment(state) {
  const written = new URLSearchParams({ tab: state.tab });
  if (state.turns.some(Boolean)) for (const turn of state.turns) written.append("turn", turn);
  if (state.candidates) written.set("candidates", state.candidates);
  if (state.pinned) written.set("explain", `${state.pinned.position}.${state.pinned.model}`);
  if (state.query) {
    for (const name of ["index", "query", "k", "mode"]) written.set(name, state[name]);
    if (state.rerank) written.set("rerank", "1");
  }
  return written.toString();
}

/** The state of a fragment; what is missing or wrong has its default. */
export function fromFragment(fragment) {
  const state = emptyState();
  const read = new URLSearchParams(fragment);
  if (read.get("tab") === "search") state.tab = "search";
  if (read.has("turn")) state.turns = read.getAll("turn");
  for (const name of ["candidates", "index", "query"]) state[name] = read.get(name) ?? state[name];
  const [, position, model] = /^(\d+)\.(.+)$/.exec(read.get("explain") ?? "") ?? [];
  if (model) state.pinned = { model, position: Number(position) };
  const k = Number(read.get("k"));
  if (Number.isInteger(k) && k > 0) state.k = k;
  if (MODES.includes(read.get("mode"))) state.mode = read.get("mode");
  state.rerank = read.get("rerank") === "1";
  return state;
}

export const isTooLong = (state) => toFragment(state).length > LONGEST;

let isDraft = true;

/**
 * Write the state to the address. A draft, which was not run, is one entry of the history that later ones
 * replace; so Back leads from one run to the run before.
 * @param {State} state
 */
export function remember(state, { draft }) {
  const fragment = isTooLong(state) ? `tab=${state.tab}` : toFragment(state);
  if (toFragment(current()) === toFragment(state)) {
    isDraft &&= draft;
    return;
  }
  const write = isDraft ? "replaceState" : "pushState";
  isDraft = draft;
  try {
    history[write](state, "", `#${fragment}`); // the entry itself keeps texts that a link cannot
  } catch {
    history[write](null, "", `#${fragment}`); // larger than the browser keeps
  }
}

/** The state of the current entry of the history, or of the link by which the page was opened. */
export function recall() {
  isDraft = false;
  return current();
}

const current = () =>
  history.state ? { ...emptyState(), ...history.state } : fromFragment(location.hash.slice(1));
