// Lines between two columns. All rows have the same height, so a row is one unit of the drawing.
import { svg } from "./dom.js";

const WIDTH = 10;

/** The drawing between two answers of /v1/rank; empty while one of them is missing. */
export function moves(left, right, shown) {
  const paths = left && right ? lines(left, right, shown) : [];
  return svg(
    "svg",
    {
      class: "moves",
      viewBox: `0 0 ${WIDTH} ${Math.max(1, shown)}`,
      preserveAspectRatio: "none",
      "aria-hidden": true,
    },
    ...paths,
  );
}

function lines(left, right, shown) {
  const ends = new Map(right.ranking.slice(0, shown).map((each, at) => [each.position, at]));
  return left.ranking.slice(0, shown).flatMap(({ position }, at) => {
    const end = ends.get(position);
    if (end === undefined) return [];
    const middle = WIDTH / 2;
    const d = `M0 ${at + 0.5}C${middle} ${at + 0.5} ${middle} ${end + 0.5} ${WIDTH} ${end + 0.5}`;
    const moved = Math.min(3, Math.abs(at - end));
    return [svg("path", { d, data: { position, moved } })];
  });
}
