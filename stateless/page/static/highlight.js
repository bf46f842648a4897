// Parts of a text by their places. Replies count code points; JavaScript counts UTF-16 units.

import { make } from "./dom.js";

/** The text in order: pieces that are one of `parts` ({start, end}), and what is between them. */
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

/** The text with its parts marked; what `about` says of a part stands behind it. */
export function marked(text, parts, about = () => null) {
  return pieces(text, parts).map((each) =>
    each.part ? make("mark", {}, each.text, about(each.part)) : each.text,
  );
}
