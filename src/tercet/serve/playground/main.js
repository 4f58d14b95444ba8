// Starts the page: models and indexes, tabs, history and keys.
import { call } from "./api.js";
import { byId, debounced, el } from "./dom.js";
import { onLanguage, translate } from "./language.js";
import { errorBox, showNotice, startNotices } from "./notices.js";
import { startPreferences } from "./preferences.js";
import { startRank } from "./rank.js";
import { startSearch } from "./search.js";
import { isTooLong, recall, remember } from "./state.js";
import { startTabs } from "./tabs.js";

const DRAFT_MS = 300;

translate();
startPreferences();
startNotices();

const rank = startRank({ onDraft: debounced(() => save(true), DRAFT_MS), onRun: () => save(false) });
const search = startSearch({ onDraft: debounced(() => save(true), DRAFT_MS), onRun: () => save(false) });
const selectTab = startTabs(document.querySelector(".top [role=tablist]"), () => save(false));
let restoring = false;

onLanguage(() => {
  rank.redraw();
  search.redraw();
});

const tab = () => (byId("panel-rank").hidden ? "search" : "rank");

function save(draft) {
  if (restoring) return;
  const state = { tab: tab(), ...rank.state(), ...search.state() };
  remember(state, { draft });
  byId("rank-long").hidden = byId("search-long").hidden = !isTooLong(state);
}

function restore() {
  const state = recall();
  restoring = true; // what is restored is in the history already
  selectTab(byId(`tab-${state.tab}`));
  rank.restore(state);
  search.restore(state);
  restoring = false;
  byId("rank-long").hidden = byId("search-long").hidden = !isTooLong(state);
}

async function start() {
  showNotice(null);
  try {
    const [models, indexes] = [(await call("v1/models")).data.data, (await call("v1/indexes")).data.data];
    restoring = true; // what a link asks for is in the history already
    rank.setModels(models);
    search.setIndexes(indexes, models);
    restoring = false;
  } catch (error) {
    showNotice(() => el("div", { class: "notice", role: "alert" }, errorBox(error, start)));
  }
}

addEventListener("popstate", restore);
addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.isComposing) return;
  const searches = event.target.id === "query" && !event.shiftKey; // as in any search box
  if (!searches && !event.ctrlKey && !event.metaKey) return;
  event.preventDefault();
  byId(`${tab()}-form`).requestSubmit();
});
byId("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address holds the inputs
  byId("main").focus();
});

restore();
start();
