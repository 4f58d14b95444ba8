// Runs before the page is painted, so that a chosen theme or language does not flash.
(() => {
  const read = (name) => {
    try {
      return localStorage.getItem(`tercet.${name}`);
    } catch {
      return null; // storage is switched off
    }
  };
  const theme = read("theme");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  const language = read("language") ?? (navigator.language ?? "en").slice(0, 2);
  document.documentElement.lang = language === "ko" ? "ko" : "en";
})();
