// Texts as the user typed them, made ready for the server.

/** Halves of characters, which no server accepts, become a replacement character. */
export const wellFormed = (text) => text.toWellFormed?.() ?? text;

/** The lines that are not blank. */
export const linesOf = (text) =>
  wellFormed(text)
    .split(/\r?\n/)
    .filter((line) => line.trim());

/**
 * The models whose vocabulary does not contain a good part of the letters of a text.
 * @param {{id: string, scripts: string[]}[]} models
 */
export function unreadBy(models, text) {
  const letters = text.match(/\p{L}/gu)?.length ?? 0;
  return models.filter(({ scripts }) => lettersOf(scripts, text) < 0.7 * letters);
}

function lettersOf(scripts, text) {
  if (!scripts.length) return 0;
  const known = new RegExp(scripts.map((script) => `\\p{Script=${script}}`).join("|"), "gu");
  return text.match(known)?.length ?? 0;
}
