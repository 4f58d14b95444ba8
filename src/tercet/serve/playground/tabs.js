// Tabs as in the WAI-ARIA practices: one stop for Tab, arrow keys move, Home and End go to the ends.

/**
 * @param {HTMLElement} list the element with role "tablist"
 * @param {(tab: HTMLElement) => void} onSelect called when the user chooses a tab
 * @returns {(tab: HTMLElement) => void} selects a tab without calling `onSelect`
 */
export function startTabs(list, onSelect) {
  const tabs = () => [...list.querySelectorAll('[role="tab"]')];
  const select = (chosen) => {
    for (const tab of tabs()) {
      const selected = tab === chosen;
      tab.ariaSelected = String(selected);
      tab.tabIndex = selected ? 0 : -1;
      const panel = document.getElementById(tab.getAttribute("aria-controls"));
      if (panel?.getAttribute("aria-labelledby") === tab.id) panel.hidden = !selected;
      else if (selected) panel?.setAttribute("aria-labelledby", tab.id); // several tabs share one panel
    }
  };
  const choose = (tab) => {
    select(tab);
    onSelect(tab);
  };
  list.addEventListener("click", (event) => {
    const tab = event.target.closest('[role="tab"]');
    if (tab) choose(tab);
  });
  list.addEventListener("keydown", (event) => {
    const all = tabs();
    const at = all.indexOf(document.activeElement);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (at < 0 || next === undefined) return;
    event.preventDefault();
    const tab = all.at(next % all.length);
    tab.focus();
    choose(tab);
  });
  return select;
}
