// Scores as bars. All bars of a list share a scale, and start at 0.
import { el } from "./dom.js";

/**
 * The lengths of bars for scores. The scores of a cross-encoder have no bounds: their bars show 1/(1+e^-score),
 * as /v1/rerank does. Probabilities are shown as they are.
 * @param {{score: number, probability?: number | null}[]} scored
 * @param {boolean} byCross
 */
export function barLengths(scored, byCross) {
  const known = scored.every((each) => typeof each.probability === "number");
  const unbounded = byCross && scored.some(({ score }) => score < 0 || score > 1);
  if (known) return scale(scored.map((each) => each.probability), 1);
  if (unbounded) return scale(scored.map(({ score }) => 1 / (1 + Math.exp(-score))), 1);
  return scale(scored.map(({ score }) => score), 0);
}

function scale(values, least) {
  const low = Math.min(0, ...values);
  const span = Math.max(least, ...values, 0) - low || 1;
  return values.map((value) => ({ value, low, span }));
}

/** The bar of one length; negative values go to the left of 0. */
export function bar({ value, low, span }) {
  const fill = el("span", { class: value < 0 ? "fill negative" : "fill" });
  fill.style.left = `${(100 * (Math.min(0, value) - low)) / span}%`;
  fill.style.width = `${(100 * Math.abs(value)) / span}%`;
  const zero = el("span", { class: "zero" });
  zero.style.left = `${(100 * -low) / span}%`;
  return el("span", { class: "bar", "aria-hidden": true }, fill, low < 0 ? zero : null);
}
