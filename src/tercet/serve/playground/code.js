// The panel "The same call": code to copy, in several languages.
import { byId, el } from "./dom.js";
import { t } from "./language.js";
import { startTabs } from "./tabs.js";

const CONFIRMED_MS = 2000;

/** @param {HTMLElement} panel */
export function startCode(panel) {
  let chosen = "curl";
  let model = null;
  let shown = null;

  /** @param {{models: object[], calls: object[]} | null} given null hides the panel */
  function show(given, preferred) {
    shown = given;
    panel.hidden = given === null || (given.calls.length > 3 && !given.models.length);
    if (panel.hidden) return;
    if (preferred) model = preferred;
    draw();
  }

  function draw() {
    const current = shown.models.find((each) => each.id === model) ?? shown.models[0] ?? null;
    const written = shown.calls.map(({ id, write }) => ({ id, source: write(current) })).filter(({ source }) => source);
    const call = written.find(({ id }) => id === chosen) ?? written[0];
    const focused = panel.contains(document.activeElement) ? document.activeElement.id : null;
    const name = panel.id;
    const tabs = written.map(({ id }) =>
      el(
        "button",
        {
          type: "button",
          role: "tab",
          id: `${name}-${id}`,
          "aria-controls": `${name}-source`,
          "aria-selected": String(id === call.id),
          tabindex: id === call.id ? 0 : -1,
          data: { call: id },
        },
        label(id),
      ),
    );
    const list = el("div", { class: "tabs small", role: "tablist", "aria-label": t("callsIn") }, ...tabs);
    startTabs(list, (tab) => {
      chosen = tab.dataset.call;
      draw();
    });
    panel.replaceChildren(
      el("header", {}, el("h2", {}, t("sameCall")), list, current && shown.models.length > 1 ? chooser(current) : null),
      el(
        "div",
        { class: "source", role: "tabpanel", id: `${name}-source`, "aria-labelledby": `${name}-${call.id}` },
        el("pre", { tabindex: 0, dir: "ltr", "aria-label": label(call.id) }, el("code", {}, call.source)),
        copyButton(call.source),
      ),
    );
    if (focused) byId(focused)?.focus();
  }

  function chooser(current) {
    const id = `${panel.id}-model`;
    const options = shown.models.map((each) => el("option", { value: each.id, selected: each === current }, each.id));
    const change = (event) => {
      model = event.target.value;
      draw();
    };
    return el("div", { class: "chooser" }, el("label", { for: id }, t("model")), el("select", { id, on: { change } }, ...options));
  }

  function copyButton(source) {
    const button = el("button", { type: "button", class: "quiet copy", id: `${panel.id}-copy` }, t("copy"));
    const confirmed = el("span", { class: "hidden", role: "status" });
    button.addEventListener("click", async () => {
      const text = await copy(source, panel.querySelector("code"));
      button.textContent = confirmed.textContent = t(text);
      setTimeout(() => (button.textContent = t("copy")), CONFIRMED_MS);
    });
    return el("div", { class: "copying" }, button, confirmed);
  }

  return { show };
}

/** Copy; where a page may not write to the clipboard, select the code instead. */
async function copy(source, element) {
  try {
    await navigator.clipboard.writeText(source);
    return "copied";
  } catch {
    getSelection().selectAllChildren(element);
    return "copyFailed";
  }
}

const label = (id) => ({ library: t("library"), http: t("http") })[id] ?? id;
