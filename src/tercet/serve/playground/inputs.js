// Texts as the user typed them, made ready for the server.

/** Halves of characters, which no server accepts, become a replacement character. */
export const wellFormed = (text) => text.toWellFormed?.() ?? text;

/** The lines that are not blank. */
export const linesOf = (text) =>
  wellFormed(text)
    .split(/\r?\n/)
    .filter((line) => line.trim());

/** Whether a good part of a text is not in Latin letters. */
export function isForeign(text) {
  const letters = text.match(/\p{L}/gu)?.length ?? 0;
  const latin = text.match(/\p{Script=Latin}/gu)?.length ?? 0;
  return letters > 0 && latin < 0.7 * letters;
}
