// Marks parts of a text. Positions in replies count code points; JavaScript counts UTF-16 units.

import { make } from "./dom.js";

/** Splits a text into the pieces that are one of `parts` ({start, end}) and the pieces between. */
export function pieces(text, parts) {
  const points = Array.from(text);
  const found = [];
  let place = 0;
  for (const part of [...parts].sort((a, b) => a.start - b.start)) {
    if (part.start < place || part.end > points.length || part.start >= part.end) continue;
    found.push({ text: points.slice(place, part.start).join("") });
    found.push({ text: points.slice(part.start, part.end).join(""), part });
    place = part.end;
  }
  found.push({ text: points.slice(place).join("") });
  return found.filter((each) => each.text !== "");
}

/** Returns the text with marked parts. `about` returns what follows a part inside its mark. */
export function marked(text, parts, about = () => null) {
  return pieces(text, parts).map((each) =>
    each.part ? make("mark", {}, each.text, about(each.part)) : each.text,
  );
}

/** Returns the text with a sentence that is marked lightly, and in it a span that is marked strongly. */
export function markedSentence(text, sentence, span) {
  if (!(sentence.start <= span.start && span.end <= sentence.end)) return marked(text, [span]);
  const inside = { start: span.start - sentence.start, end: span.end - sentence.start };
  return pieces(text, [sentence]).map((each) =>
    each.part ? make("span", { className: "sentence" }, marked(each.text, [inside])) : each.text,
  );
}
