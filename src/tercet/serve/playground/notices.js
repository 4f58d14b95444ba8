// Messages above the page: models that are being loaded, the form for an API key; and errors in words.
import { ApiError, recovery } from "./api.js";
import { byId, el } from "./dom.js";
import { onLanguage, t } from "./language.js";

let draw = null;

/** Tell the calls what to show while they wait. */
export function startNotices() {
  recovery.onLoading = () => showNotice(loadingNotice);
  recovery.onReady = () => showNotice(null);
  recovery.askForKey = (refused) =>
    new Promise((resolve) => {
      const done = (key) => {
        showNotice(null);
        resolve(key);
      };
      showNotice(() => keyForm(refused, done));
      byId("api-key").focus();
    });
  onLanguage(() => showNotice(draw));
}

/** Let screen readers say something. */
export function announce(text) {
  byId("status").textContent = text;
}

/** An error in words: a sentence for the reader, the server's own message, and the number of the request. */
export function errorParts(error) {
  if (!(error instanceof ApiError)) return [t("errorUnknown"), String(error?.message ?? error)];
  const kinds = { 0: "errorUnreachable", 408: "errorTimeout", 413: "errorTooLarge", 429: "errorBusy" };
  const kind = kinds[error.status] ?? (error.status >= 500 ? "errorServer" : "errorRefused");
  return [t(kind, error.retryAfter ?? 1), error.message, error.requestId].filter(Boolean);
}

/** The same as elements, with a button that tries again. */
export function errorBox(error, retry) {
  const [sentence, message, request] = errorParts(error);
  return el(
    "div",
    { class: "error" },
    el("p", {}, sentence),
    message ? el("p", { class: "small", lang: "en" }, message) : null,
    request ? el("p", { class: "muted small" }, `${t("request")} `, el("code", {}, request)) : null,
    retry ? el("button", { type: "button", class: "quiet", on: { click: retry } }, t("tryAgain")) : null,
  );
}

/** Show what a function draws above the page, or nothing. It is called again when the language changes. */
export function showNotice(drawing) {
  draw = drawing;
  byId("notices").replaceChildren(...(drawing ? [drawing()] : []));
}

function loadingNotice() {
  return el("p", { class: "notice", role: "status" }, el("span", { class: "spinner" }), t("loadingModels"));
}

function keyForm(refused, done) {
  const input = el("input", { id: "api-key", type: "password", autocomplete: "off", required: true });
  const submit = (event) => {
    event.preventDefault();
    const key = input.value.trim();
    if (/^[\x21-\x7e]+$/.test(key)) done(key); // others cannot be sent in a header
    else input.setAttribute("aria-invalid", "true");
  };
  return el(
    "form",
    { class: "notice key", on: { submit } },
    el("label", { for: "api-key" }, t(refused ? "keyRefused" : "keyNeeded")),
    el("div", { class: "row" }, input, el("button", { class: "primary" }, t("useKey"))),
    el("p", { class: "muted small" }, t("keyKept")),
  );
}
