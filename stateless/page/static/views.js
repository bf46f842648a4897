// The views of the page, of which one is shown: the answer, the documents, or one document.

import { byId } from "./dom.js";

const PARTS = {
  answer: ["status", "examples", "result", "cluster"],
  documents: ["documents"],
  document: ["document"],
};
/** Elements that are hidden for another reason than the view. */
const EMPTY = new Set(["examples"]);

/** Where a view begins for keyboards and screen readers. */
const FIRST = { answer: "result", documents: "documents-find", document: "document-name" };

let current = "answer";
/** Where the user was in the answer: the scroll position, and the element with the focus. */
let left = { y: 0, element: null };

/** Returns the name of the view that is shown. */
export const shownView = () => current;

/** Shows a view. Returning to the answer restores its scroll position and focus. */
export function showView(name) {
  if (name === current) return;
  if (current === "answer") left = { y: scrollY, element: document.activeElement };
  current = name;
  for (const [view, ids] of Object.entries(PARTS)) {
    for (const id of ids) byId(id).hidden = view !== name || (EMPTY.has(id) && !byId(id).hasChildNodes());
  }
  if (name !== "answer") return;
  left.element?.focus({ preventScroll: true });
  scrollTo(0, left.y);
}

/** Moves the focus to the beginning of the view. */
export const goToView = () => byId(FIRST[current]).focus();

/** Returns the place that the address names after `#`: a view, a document and a passage. */
export function namedPlace() {
  const fields = new URLSearchParams(location.hash.slice(1));
  const name = fields.get("document");
  if (name) return { view: "document", name, passageId: fields.get("passage") ?? "" };
  return { view: fields.has("documents") ? "documents" : "answer" };
}
