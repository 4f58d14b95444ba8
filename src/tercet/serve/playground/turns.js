// The context as boxes, one per turn: add, remove, reorder; pasted lines become turns.
import { byId, el, svg } from "./dom.js";
import { t } from "./language.js";
import { announce } from "./notices.js";

const ICONS = { up: "M5 12l5-5 5 5", down: "M5 8l5 5 5-5", remove: "M6 6l8 8M14 6l-8 8" };

/** @param {() => void} onChange called after every change by the user */
export function startTurns(onChange) {
  const list = byId("turns");
  let turns = [""];

  const boxes = () => [...list.querySelectorAll("textarea")];
  const change = (changed, focus) => {
    turns = changed.length ? changed : [""];
    draw();
    if (focus !== undefined) boxes()[Math.max(0, Math.min(focus, turns.length - 1))].focus();
    onChange();
  };
  const insert = (at, ...added) => change(turns.toSpliced(at, 0, ...added), at + added.length - 1);
  const remove = (at) => {
    change(turns.toSpliced(at, 1), Math.max(0, at - 1));
    announce(t("turnRemoved"));
  };
  const move = (at, by) => {
    const to = at + by;
    if (to < 0 || to >= turns.length) return;
    change(turns.with(at, turns[to]).with(to, turns[at]), to);
    announce(t("turnMoved", to + 1));
  };

  function onKey(event, at) {
    if (event.isComposing) return; // Enter ends a syllable of an input method, not the turn
    if (event.key === "Enter" && !event.shiftKey && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      insert(at + 1, "");
    } else if (event.key === "Backspace" && !turns[at] && turns.length > 1) {
      event.preventDefault();
      remove(at);
    } else if (event.altKey && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
      event.preventDefault();
      move(at, event.key === "ArrowUp" ? -1 : 1);
    }
  }

  function onPaste(event, at) {
    const lines = event.clipboardData.getData("text").split(/\r?\n/).filter((line) => line.trim());
    if (lines.length < 2) return;
    event.preventDefault();
    const { selectionStart: start, selectionEnd: end } = event.target;
    const first = turns[at].slice(0, start) + lines[0];
    const last = lines.at(-1) + turns[at].slice(end);
    change(turns.toSpliced(at, 1, first, ...lines.slice(1, -1), last), at + lines.length - 1);
  }

  function box(turn, at) {
    const area = el("textarea", {
      rows: 1,
      dir: "auto",
      "aria-label": t("turn", at + 1),
      placeholder: at === turns.length - 1 ? t("turnHint") : null,
      on: {
        input: () => {
          turns[at] = area.value;
          fit(area);
          onChange();
        },
        keydown: (event) => onKey(event, at),
        paste: (event) => onPaste(event, at),
      },
    });
    area.value = turn;
    const button = (name, label, action, disabled) =>
      el(
        "button",
        { type: "button", class: "quiet icon", "aria-label": label, title: label, disabled, on: { click: action } },
        svg("svg", { viewBox: "0 0 20 20", width: 16, height: 16, "aria-hidden": true }, svg("path", { d: ICONS[name] })),
      );
    return el(
      "li",
      {},
      el("span", { class: "turn-number", "aria-hidden": true }, String(at + 1)),
      area,
      turns.length > 1
        ? el(
            "span",
            { class: "turn-buttons" },
            button("up", t("turnUp", at + 1), () => move(at, -1), at === 0),
            button("down", t("turnDown", at + 1), () => move(at, 1), at === turns.length - 1),
            button("remove", t("turnRemove", at + 1), () => remove(at), false),
          )
        : null,
    );
  }

  function draw() {
    list.replaceChildren(...turns.map(box));
    boxes().forEach(fit);
  }

  byId("add-turn").addEventListener("click", () => insert(turns.length, ""));
  addEventListener("resize", () => boxes().forEach(fit));
  return {
    get: () => [...turns],
    set: (given) => {
      turns = given.length ? [...given] : [""];
      draw();
    },
    draw,
  };
}

/** Make a box as high as its text, up to a limit that style sheets set. */
function fit(area) {
  area.style.height = "auto";
  if (area.scrollHeight) area.style.height = `${area.scrollHeight + 2}px`;
}
