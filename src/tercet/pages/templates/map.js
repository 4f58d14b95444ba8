// The map of texts. `points` are [x, y, cluster or -1, text] with x and y between 0 and 1, and `clusters` are
// { name, size, centre: [x, y], hue }, largest first. Jinja2 includes this file, so it must not contain its
// delimiters: an opening brace followed by a brace, a percent sign or a hash.
"use strict";

const EDGE = 36; // pixels between the outermost points and the frame
const NEAR = 14; // pixels from the pointer to a point that is shown
const MAX_ZOOM = 200;
const MAX_LISTED = 200;
const MAX_LABEL = 34;
const LABELS = 24; // at the first zoom level; closer, there is room for more

const $ = (selector) => document.querySelector(selector);
const canvas = $("canvas"), pen = canvas.getContext("2d"), tip = $("#tip");
const darkMode = matchMedia("(prefers-color-scheme: dark)");
const buttons = [...document.querySelectorAll("#legend button")];

const view = { zoom: 1, x: 0, y: 0 };
const chosen = { cluster: null, words: "", point: null };
const folded = points.map((point) => fold(point[3]));
// texts without a cluster are drawn first, so that they cover nothing
const order = points.map((_, index) => index).sort((a, b) => (points[a][2] >= 0) - (points[b][2] >= 0));

function fold(text) {
  return text.normalize("NFC").toLowerCase();
}

// What is highlighted: null if nothing is chosen, otherwise whether each point is, and the clusters of those.
let highlighted = null, highlightedClusters = null;

function choose() {
  const any = chosen.cluster !== null || chosen.words !== "";
  highlighted = any ? points.map(isChosen) : null;
  highlightedClusters = any ? new Set(points.filter((_, index) => highlighted[index]).map((point) => point[2])) : null;
  for (const button of buttons) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.cluster) === chosen.cluster));
  }
  listTexts();
  redraw();
}

function isChosen(point, index) {
  return (chosen.cluster === null || point[2] === chosen.cluster) && folded[index].includes(chosen.words);
}

// Positions

function toScreen([x, y]) {
  const width = canvas.clientWidth - 2 * EDGE, height = canvas.clientHeight - 2 * EDGE;
  return [view.x + view.zoom * (EDGE + width * x), view.y + view.zoom * (EDGE + height * (1 - y))];
}

function zoomBy(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
  const zoom = Math.min(Math.max(view.zoom * factor, 0.5), MAX_ZOOM);
  const change = zoom / view.zoom;
  view.x = x - change * (x - view.x);
  view.y = y - change * (y - view.y);
  view.zoom = zoom;
  redraw();
}

function moveBy(x, y) {
  view.x += x;
  view.y += y;
  redraw();
}

function reset() {
  Object.assign(view, { zoom: 1, x: 0, y: 0 });
  redraw();
}

function nearest(x, y) {
  let best = null, least = NEAR ** 2;
  points.forEach((point, index) => {
    if (highlighted && !highlighted[index]) return;
    const [px, py] = toScreen(point), distance = (px - x) ** 2 + (py - y) ** 2;
    if (distance < least) [best, least] = [index, distance];
  });
  return best;
}

// Drawing

let waiting = false;

function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}

function draw() {
  const ratio = window.devicePixelRatio || 1, style = getComputedStyle(document.documentElement);
  const colours = { paper: style.getPropertyValue("--paper"), ink: style.getPropertyValue("--ink"), grey: style.getPropertyValue("--grey") };
  canvas.width = Math.round(canvas.clientWidth * ratio);
  canvas.height = Math.round(canvas.clientHeight * ratio);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.fillStyle = colours.paper;
  pen.fillRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  const radius = Math.min(Math.max(80 / Math.sqrt(points.length), 2.2), 6) * Math.min(view.zoom ** 0.3, 2.5);
  for (const index of order) if (!highlighted || !highlighted[index]) drawPoint(index, radius, colours);
  if (highlighted) for (const index of order) if (highlighted[index]) drawPoint(index, radius * 1.25, colours);
  drawLabels(colours, radius);
  if (chosen.point !== null) drawRing(points[chosen.point], radius + 4, colours);
}

function drawPoint(index, radius, colours) {
  const point = points[index], [x, y] = toScreen(point);
  if (x < -radius || y < -radius || x > canvas.clientWidth + radius || y > canvas.clientHeight + radius) return;
  const faint = highlighted && !highlighted[index];
  pen.globalAlpha = faint ? 0.18 : highlighted ? 0.95 : point[2] < 0 ? 0.55 : 0.75;
  pen.fillStyle = faint || point[2] < 0 ? colours.grey : colourOf(clusters[point[2]]);
  if (!faint && highlighted && point[2] < 0) pen.fillStyle = colours.ink;
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.fill();
  pen.globalAlpha = 1;
}

function drawRing(point, radius, colours) {
  const [x, y] = toScreen(point);
  pen.lineWidth = 2;
  pen.strokeStyle = colours.ink;
  pen.beginPath();
  pen.arc(x, y, radius, 0, 2 * Math.PI);
  pen.stroke();
}

function colourOf(cluster) {
  return `hsl(${cluster.hue} 65% ${darkMode.matches ? 62 : 42}%)`;
}

// Names are placed from the largest cluster on; one that would overlap another is left out until there is room.
function drawLabels(colours, radius) {
  const taken = [];
  pen.font = "600 13px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.lineJoin = "round";
  for (const [number, cluster] of clusters.entries()) {
    if (taken.length >= LABELS * view.zoom) break;
    if (highlightedClusters && !highlightedClusters.has(number)) continue;
    const name = cluster.name.length > MAX_LABEL ? cluster.name.slice(0, MAX_LABEL) + "…" : cluster.name;
    const width = pen.measureText(name).width + 8;
    const box = freeBox(toScreen(cluster.centre), width, { taken, away: radius + 11 });
    if (!box) continue;
    taken.push(box);
    pen.lineWidth = 4;
    pen.strokeStyle = colours.paper;
    pen.fillStyle = `hsl(${cluster.hue} 60% ${darkMode.matches ? 80 : 27}%)`;
    pen.strokeText(name, box.x, box.y);
    pen.fillText(name, box.x, box.y);
  }
}

// A box for a label just above a centre, or just below it, so that it hides few points; null if both are taken.
function freeBox([x, y], width, { taken, away }) {
  const height = 20, left = width / 2, right = canvas.clientWidth - width / 2;
  if (x < 0 || x > canvas.clientWidth || right < left) return null;
  const inside = Math.min(Math.max(x, left), right);
  for (const shift of [-away, away]) {
    const box = { x: inside, y: y + shift, width, height };
    const visible = box.y > height / 2 && box.y < canvas.clientHeight - height / 2;
    if (visible && !taken.some((other) => overlap(box, other))) return box;
  }
  return null;
}

function overlap(a, b) {
  return Math.abs(a.x - b.x) * 2 < a.width + b.width && Math.abs(a.y - b.y) * 2 < a.height + b.height;
}

// The text of a point

function point(index) {
  if (chosen.point === index) return;
  chosen.point = index;
  tip.hidden = index === null;
  if (index !== null) fillTip(points[index]);
  redraw();
}

function fillTip(shown) {
  const [x, y] = toScreen(shown), cluster = clusters[shown[2]];
  tip.replaceChildren(shown[3]);
  if (cluster) {
    const name = document.createElement("b");
    name.textContent = cluster.name;
    name.style.color = colourOf(cluster);
    tip.prepend(name);
  }
  tip.style.left = "0"; // a tip at the right edge would be squeezed, and its width wrong
  const left = x + 16 + tip.offsetWidth > canvas.clientWidth ? x - 16 - tip.offsetWidth : x + 16;
  tip.style.left = `${Math.max(left, 4)}px`;
  tip.style.top = `${Math.max(Math.min(y + 12, canvas.clientHeight - tip.offsetHeight - 4), 4)}px`;
}

function listTexts() {
  const found = highlighted ? order.filter((index) => highlighted[index]) : [];
  $("#count").textContent = highlighted
    ? `${found.length.toLocaleString("en")} of ${points.length.toLocaleString("en")} texts`
    : "";
  const rows = found.slice(0, MAX_LISTED).map(listedText);
  if (!highlighted) rows.push(note("Search, or choose a cluster, to list its texts."));
  else if (found.length > MAX_LISTED) rows.push(note(`${MAX_LISTED} of ${found.length.toLocaleString("en")} texts shown`));
  else if (!found.length) rows.push(note("No text matches."));
  $("#texts").replaceChildren(...rows);
}

function listedText(index) {
  const row = document.createElement("li"), button = document.createElement("button");
  button.textContent = points[index][3];
  button.addEventListener("focus", () => point(index));
  button.addEventListener("mouseenter", () => point(index));
  for (const left of ["blur", "mouseleave"]) {
    button.addEventListener(left, () => { if (chosen.point === index) point(null); });
  }
  row.append(button);
  return row;
}

function note(text) {
  const row = document.createElement("li");
  row.className = "note";
  row.textContent = text;
  return row;
}

// Pointer and keyboard

let dragged = null;

function endDrag() {
  dragged = null;
  canvas.classList.remove("dragging");
}

canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  dragged = { x: event.offsetX, y: event.offsetY, far: false };
});

canvas.addEventListener("pointermove", (event) => {
  if (!dragged) return point(nearest(event.offsetX, event.offsetY));
  const x = event.offsetX - dragged.x, y = event.offsetY - dragged.y;
  if (!dragged.far && Math.hypot(x, y) < 4) return;
  dragged = { x: event.offsetX, y: event.offsetY, far: true };
  canvas.classList.add("dragging");
  point(null);
  moveBy(x, y);
});

canvas.addEventListener("pointerup", (event) => {
  const clicked = dragged && !dragged.far;
  endDrag();
  if (!clicked) return;
  const index = nearest(event.offsetX, event.offsetY);
  const cluster = index === null ? null : points[index][2];
  chosen.cluster = cluster === chosen.cluster ? null : cluster;
  choose();
});

canvas.addEventListener("pointercancel", endDrag);
canvas.addEventListener("pointerleave", () => point(null));

canvas.addEventListener("wheel", (event) => {
  event.preventDefault();
  point(null);
  zoomBy(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), event.offsetX, event.offsetY);
}, { passive: false });

const KEYS = {
  ArrowLeft: () => moveBy(60, 0),
  ArrowRight: () => moveBy(-60, 0),
  ArrowUp: () => moveBy(0, 60),
  ArrowDown: () => moveBy(0, -60),
  "+": () => zoomBy(1.4),
  "=": () => zoomBy(1.4),
  "-": () => zoomBy(1 / 1.4),
  "0": reset,
};

canvas.addEventListener("keydown", (event) => {
  const action = event.ctrlKey || event.metaKey || event.altKey ? null : KEYS[event.key];
  if (!action) return;
  event.preventDefault();
  point(null);
  action();
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  Object.assign(chosen, { cluster: null, words: "" });
  $("#search").value = "";
  point(null);
  choose();
});

for (const button of buttons) {
  button.addEventListener("click", () => {
    const cluster = Number(button.dataset.cluster);
    chosen.cluster = cluster === chosen.cluster ? null : cluster;
    choose();
  });
}

$("#search").addEventListener("input", (event) => {
  chosen.words = fold(event.target.value.trim());
  point(null);
  choose();
});

const BUTTONS = { "#closer": () => zoomBy(1.5), "#farther": () => zoomBy(1 / 1.5), "#reset": reset };

for (const [selector, action] of Object.entries(BUTTONS)) {
  $(selector).addEventListener("click", () => {
    point(null); // its text would stay where the point was
    action();
  });
}

new ResizeObserver(redraw).observe(canvas);
darkMode.addEventListener("change", redraw);
redraw();
