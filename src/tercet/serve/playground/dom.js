// Elements made in scripts. Texts are always set as text, never as markup.

const SVG = "http://www.w3.org/2000/svg";

/** The element of the page with an id. */
export const byId = (id) => document.getElementById(id);

/**
 * A new element.
 * @param {string} tag
 * @param {Object<string, unknown>} [given] `on` has listeners, `data` the dataset; the others are attributes.
 * @param {...(Node | string | null)} children
 */
export function el(tag, given = {}, ...children) {
  return filled(document.createElement(tag), given, children);
}

/** The same for an element of a drawing. */
export function svg(tag, given = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), given, children);
}

/** Text that only screen readers see. */
export const spoken = (text) => el("span", { class: "hidden" }, text);

function filled(element, { on = {}, data = {}, ...attributes }, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value != null) element.setAttribute(name, String(value));
  }
  Object.assign(element.dataset, data);
  for (const [name, listener] of Object.entries(on)) element.addEventListener(name, listener);
  element.append(...children.filter((child) => child != null));
  return element;
}

/** Calls `action` once no further call has come for `wait` ms. */
export function debounced(action, wait) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(action, wait, ...values);
  };
}
