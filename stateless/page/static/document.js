// Shows the text of a document: its passages in their order, under their headings.

import { original } from "./citation.js";
import { byId, make } from "./dom.js";
import * as library from "./library.js";
import { counted, number } from "./numbers.js";
import { markedPassage } from "./passage.js";

const SEPARATOR = " › ";
const SMALLEST_HEADING = 6;

/**
 * Shows a document, scrolled to the passage with the id `passageId`. `answer` is the answer that cites the
 * passage; null if it is unknown. Throws a Problem if fetching fails.
 */
export async function openDocument({ name, passageId }, answer, signal) {
  startPage(name);
  const [cited, whole] = await Promise.all([
    passageId ? library.passageById(passageId, signal) : null,
    library.passagesOf(name, signal),
  ]);
  const { passages, isLong } = whole;
  if (isLong && passages.every(library.hasStart)) {
    await showPart(name, number(cited?.metadata?.start), signal, cited?.id, answer);
  } else {
    byId("document-text").replaceChildren(...textOf(passages, cited?.id, answer));
  }
  showState(name, passages, isLong, cited);
  if (passageId && !cited) {
    byId("document-state").prepend("The cited passage is gone: the document has changed. ");
  }
  goToCited();
}

function startPage(name) {
  document.title = `${name} · Winnow`;
  byId("document-name").textContent = name;
  byId("document-state").textContent = "Loading…";
  byId("document-text").replaceChildren();
  byId("document-name").focus();
}

function showState(name, passages, isLong, cited) {
  const size = isLong ? "A long document: a part of it is shown" : counted(passages.length, "passage");
  const first = cited ?? passages[0];
  const link = original({ document: name, url: first?.metadata?.url, page: cited?.metadata?.page });
  byId("document-state").replaceChildren(...[size, link].flat().filter(Boolean));
}

/** Shows the part of a long document that contains an offset, with buttons for the parts around it. */
async function showPart(name, offset, signal, citedId, answer) {
  const { passages, start, end } = await library.partOf(name, offset, signal);
  const move = (to) => async () => {
    await showPart(name, to, signal);
    byId("document-name").focus();
    byId("document-name").scrollIntoView();
  };
  byId("document-text").replaceChildren(
    ...(start > 0 ? [partButton("Earlier text", move(start - 1))] : []),
    ...textOf(passages, citedId, answer),
    passages.length ? partButton("Later text", move(end)) : make("p", {}, "The document ends before this part."),
  );
}

function goToCited() {
  const place = byId("document-text").querySelector(".cited");
  place?.focus({ preventScroll: true });
  place?.scrollIntoView({ block: "center" });
}

function partButton(label, act) {
  const button = make("button", { type: "button" }, label);
  button.addEventListener("click", act);
  return make("p", {}, button);
}

/** Returns the elements of passages: headings where they change, page numbers, and texts. */
function textOf(passages, citedId, answer) {
  let path = [];
  let page;
  return passages.flatMap((passage) => {
    const before = path;
    const pageBefore = page;
    path = headingsOf(passage);
    page = passage.metadata?.page;
    return [
      page !== undefined && page !== pageBefore ? make("p", { className: "quiet page" }, `page ${page}`) : null,
      ...newHeadings(path, before),
      textElement(passage, passage.id === citedId, answer),
    ].filter(Boolean);
  });
}

/** Returns the headings above a passage, the outermost first. */
function headingsOf({ title = "", metadata = {} }) {
  const path = typeof metadata.heading === "string" ? metadata.heading : title;
  return path.split(SEPARATOR).map((each) => each.trim()).filter(Boolean);
}

function newHeadings(path, before) {
  let same = 0;
  while (same < path.length && path[same] === before[same]) same += 1;
  return path.slice(same).map((text, place) => {
    const level = Math.min(3 + same + place, SMALLEST_HEADING);
    return make(`h${level}`, {}, text);
  });
}

function textElement(passage, isCited, answer) {
  if (!isCited) return make("p", {}, passage.text);
  const own = answer?.passage?.id === passage.id && answer.passage.text === passage.text;
  return make(
    "p",
    { className: "cited", tabIndex: -1, role: "group", "aria-label": "Cited passage" },
    own ? markedPassage(answer) : passage.text,
  );
}
