// The buttons for language and theme. Both choices are kept in this browser.
import { byId } from "./dom.js";
import { language, setLanguage } from "./language.js";

const dark = matchMedia("(prefers-color-scheme: dark)");

export function startPreferences() {
  byId("language").addEventListener("click", () => {
    setLanguage(language() === "ko" ? "en" : "ko");
    keep("language", language());
    showLanguage();
  });
  byId("theme").addEventListener("click", () => {
    const chosen = isDark() ? "light" : "dark";
    document.documentElement.dataset.theme = chosen;
    keep("theme", chosen);
    showTheme();
  });
  dark.addEventListener("change", showTheme);
  showLanguage();
  showTheme();
}

const isDark = () => (document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";

function showTheme() {
  byId("theme").ariaPressed = String(isDark());
}

function showLanguage() {
  const other = language() === "ko" ? ["en", "English"] : ["ko", "한국어"];
  [byId("language").lang, byId("language").textContent] = other;
}

function keep(name, value) {
  try {
    localStorage.setItem(`tercet.${name}`, value);
  } catch {
    // storage is switched off: the choice lasts until the page is closed
  }
}
