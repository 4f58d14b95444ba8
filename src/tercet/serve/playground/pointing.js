// Which candidate is pointed at or pinned: by mouse, touch, focus and arrow keys.

/** @typedef {{model: string, position: number}} Place a candidate in the column of a model */

const BUTTON = ".candidate[data-position]";

const same = (one, other) => one?.model === other?.model && one?.position === other?.position;
const placeOf = (button) => button && { model: button.dataset.model, position: Number(button.dataset.position) };

/**
 * @param {HTMLElement} area holds the columns
 * @param {object} hooks
 * @param {(place: Place | null, at: {now: boolean}) => void} hooks.onPoint called with what is to be explained
 * @param {() => void} hooks.onPin called when a candidate is pinned or released
 */
export function startPointing(area, { onPoint, onPin }) {
  let active = null;
  let pinned = null;

  /** Light up the candidate in all columns and lines. */
  function light() {
    const at = active ?? pinned;
    for (const each of area.querySelectorAll("[data-position]")) {
      const lit = at !== null && Number(each.dataset.position) === at.position;
      each.classList.toggle("active", lit);
      each.classList.toggle("chosen", lit && each.dataset.model === at.model);
      if (each.matches(BUTTON)) each.ariaPressed = String(pinned !== null && same(placeOf(each), pinned));
    }
    area.classList.toggle("has-active", at !== null);
  }

  function point(place, { now = false } = {}) {
    active = place;
    light();
    onPoint(active ?? pinned, { now });
  }

  function pin(place) {
    pinned = place;
    point(place, { now: true });
    onPin();
  }

  function focus(button) {
    for (const each of button.closest("ol").querySelectorAll(BUTTON)) each.tabIndex = -1;
    button.tabIndex = 0; // Tab enters a column where it was left
    if (!same(placeOf(button), active)) point(placeOf(button));
  }

  const buttonIn = (event) => event.target.closest?.(BUTTON) ?? null;

  area.addEventListener("pointerover", (event) => {
    const place = event.pointerType === "mouse" ? placeOf(buttonIn(event)) : null;
    if (place && !same(place, active)) point(place);
  });
  area.addEventListener("pointerleave", () => active && point(null));
  area.addEventListener("focusin", (event) => buttonIn(event) && focus(buttonIn(event)));
  area.addEventListener("focusout", (event) => {
    if (active && !area.contains(event.relatedTarget)) point(null);
  });
  area.addEventListener("click", (event) => {
    const place = placeOf(buttonIn(event));
    if (place) pin(same(place, pinned) ? null : place);
  });
  area.addEventListener("keydown", (event) => {
    const button = buttonIn(event);
    if (event.key === "Escape" && pinned) pin(null);
    const next = button && neighbour(area, button, event.key);
    if (next === undefined || next === null) return;
    event.preventDefault();
    next.focus();
  });

  return {
    pinned: () => pinned,
    release: () => pin(null),
    /** Pin without telling anybody, for a state that is restored. */
    setPinned: (place) => ([pinned, active] = [place, null]),
    show: () => point(null, { now: true }),
    light,
    /** Draw again, and keep the focus on the same candidate. */
    redraw: (draw) => {
      const place = placeOf(document.activeElement?.closest(BUTTON));
      draw();
      const buttons = [...area.querySelectorAll(BUTTON)];
      if (place) buttons.find((each) => same(placeOf(each), place))?.focus();
      light();
    },
  };
}

/** The button that an arrow key leads to: along a column, or to the same candidate in the next one. */
function neighbour(area, button, key) {
  const list = button.closest("ol");
  const rows = [...list.querySelectorAll(BUTTON)];
  const at = rows.indexOf(button);
  const lists = [...area.querySelectorAll("ol.ranking:not([aria-hidden])")];
  const beside = (by) => {
    const other = lists[lists.indexOf(list) + by];
    return other?.querySelector(`[data-position="${button.dataset.position}"]`) ?? other?.querySelector(BUTTON);
  };
  const targets = {
    ArrowDown: () => rows[at + 1],
    ArrowUp: () => rows[at - 1],
    Home: () => rows[0],
    End: () => rows.at(-1),
    ArrowRight: () => beside(1),
    ArrowLeft: () => beside(-1),
  };
  return Object.hasOwn(targets, key) ? (targets[key]() ?? button) : null;
}
