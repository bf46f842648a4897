// What keys do, beside what they do in every page.

import { byId } from "./dom.js";

/** `stop` is called by Escape. */
export function begin(stop) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === "Escape") stop();
    if (event.key === "Enter" && event.target === byId("question") && !event.shiftKey) {
      event.preventDefault();
      byId("ask").requestSubmit();
    }
    if (writes(event.target)) return;
    if (event.key === "/") {
      event.preventDefault();
      byId("question").focus();
      byId("question").select();
    }
    if (event.key === "j") step(1);
    if (event.key === "k") step(-1);
  });
}

/** Whether keys pressed there are letters of a text. */
const writes = (element) =>
  element.matches?.("textarea, select, input:not([type=checkbox])") || element.isContentEditable;

/** Goes to the next answer, or to the one before. */
function step(by) {
  const places = [...document.querySelectorAll("#result .words, #result .candidates summary")];
  if (places.length === 0) return;
  const now = places.findIndex((each) => each === document.activeElement);
  const next = now < 0 ? (by > 0 ? 0 : places.length - 1) : now + by;
  places[Math.min(Math.max(next, 0), places.length - 1)].focus();
}
