// What the tab "Rank" shows before the first run: the models and examples; and the list of examples.
import { byId, el } from "./dom.js";
import { examples } from "./examples.js";
import { unreadBy } from "./inputs.js";
import { language, t } from "./language.js";

/** Fill the list of examples, those in the language of the page first. */
export function drawExampleList() {
  const chosen = byId("example").value;
  const groups = [exampleGroup("en", "English"), exampleGroup("ko", "한국어")];
  if (language() === "ko") groups.reverse();
  byId("example").replaceChildren(el("option", { value: "" }, t("ownTexts")), ...groups);
  byId("example").value = chosen;
}

function exampleGroup(of, label) {
  const options = examples
    .filter((each) => each.language === of)
    .map((each) => el("option", { value: each.id }, each.title[language()]));
  return el("optgroup", { label }, ...options);
}

/** The example with these inputs. */
export const exampleOf = ({ turns, candidates }) =>
  examples.find(
    (each) => each.candidates.join("\n") === candidates && JSON.stringify(each.turns) === JSON.stringify(turns),
  );

/** @param {{id: string, kind: string, scripts: string[]}[]} models */
export function drawStart(models, choose) {
  const shown = examples.filter((each) => each.language === language());
  const unread = unreadBy(models, shown.flatMap((each) => each.turns).join(" "));
  const kinds = models.map((model) => el("li", {}, el("strong", {}, model.id), about(model, unread.includes(model))));
  byId("rank-empty").replaceChildren(
    el("h2", {}, t("emptyTitle")),
    el("p", { class: "muted" }, t("emptyText")),
    el("ul", { class: "kinds" }, ...kinds),
    el("p", {}, t("emptyStart")),
    el("div", { class: "cards" }, ...shown.map((each) => card(each, choose))),
  );
}

function about({ kind }, isUnread) {
  const text = `${t("kind", kind)}: ${t("kindAbout", kind)}`;
  return el("span", { class: "muted" }, text, isUnread ? el("span", { class: "cut" }, ` · ${t("unreadExamples")}`) : null);
}

/** A sentence about the models that cannot read a text; empty if all can. */
export function unreadNote(models, text) {
  const names = unreadBy(models, text).map((model) => model.id);
  return names.length ? t("unread", names.join(", ")) : "";
}

function card(example, choose) {
  return el(
    "button",
    { type: "button", class: "card", on: { click: () => choose(example.id) } },
    el("span", { class: "card-title" }, example.title[language()]),
    el("span", { class: "muted small" }, example.about[language()]),
  );
}
