// The language of the page: texts by key, and numbers.
import { en } from "./en.js";
import { ko } from "./ko.js";

const TEXTS = { en, ko };
const listeners = [];

export const language = () => document.documentElement.lang;

/** The text of a key; texts with numbers or names in them are functions. */
export function t(key, ...values) {
  const text = TEXTS[language()][key] ?? en[key];
  return typeof text === "function" ? text(...values) : text;
}

export const number = (value) => value.toLocaleString(language());

/** A score with three digits after the point. */
export const scoreText = (value) => value.toFixed(3).replace("-", "−");

/** A contribution, always with its sign. */
export const signed = (value) => (value < 0 ? "" : "+") + scoreText(value);

/** A time in ms, or in s from one second on. */
export const duration = (seconds) =>
  seconds < 1 ? `${Math.max(1, Math.round(1000 * seconds))} ms` : `${seconds.toFixed(2)} s`;

/** Fill the elements that name their text. */
export function translate(root = document) {
  for (const each of root.querySelectorAll("[data-t]")) each.textContent = t(each.dataset.t);
  for (const each of root.querySelectorAll("[data-t-label]")) each.ariaLabel = t(each.dataset.tLabel);
  for (const each of root.querySelectorAll("[data-t-placeholder]")) {
    each.placeholder = t(each.dataset.tPlaceholder);
  }
  document.title = t("title");
}

/** Call `listener` whenever the language changes. */
export const onLanguage = (listener) => listeners.push(listener);

export function setLanguage(chosen) {
  document.documentElement.lang = chosen;
  translate();
  for (const listener of listeners) listener();
}
