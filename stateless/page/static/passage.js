// Shows the passage of an answer with its sentence, its span, its title and its metadata.

import { SOURCE_FIELDS } from "./citation.js";
import { make } from "./dom.js";
import { markedSentence } from "./highlight.js";
import { number } from "./numbers.js";

/** Returns the passage of an answer, with `extra` elements in its caption. */
export function passageOf(answer, ...extra) {
  return make(
    "figure",
    { className: "passage" },
    make("blockquote", {}, markedPassage(answer)),
    make("figcaption", { className: "quiet" }, titleOf(answer), extra, metadata(answer)),
  );
}

/** Returns the text of the passage, with its sentence and its span marked. */
export function markedPassage(answer) {
  const span = { start: number(answer.start), end: number(answer.end) };
  const { sentenceStart: start, sentenceEnd: end } = answer;
  const sentence = end == null ? span : { start: number(start), end };
  return markedSentence(answer.passage?.text ?? "", sentence, span);
}

/** Returns the title of the passage of an answer, or its id. */
export const titleOf = (answer) => answer.passage?.title || answer.passage?.id || "";

/** Returns the metadata of a passage, without the fields that its citation shows. */
function metadata({ passage, source }) {
  const known = Object.entries(passage?.metadata ?? {}).filter(
    ([name]) => !(source && SOURCE_FIELDS.has(name)),
  );
  if (known.length === 0) return null;
  return make(
    "dl",
    { className: "metadata" },
    known.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, shown(value)))),
  );
}

const shown = (value) => (typeof value === "string" ? value : JSON.stringify(value));
