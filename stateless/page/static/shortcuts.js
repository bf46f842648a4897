// Keyboard shortcuts of the page.

import { byId } from "./dom.js";

/** Starts listening for keys. Escape calls `stop`. */
export function listen(stop) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === "Escape") stop();
    if (event.key === "Enter" && event.target === byId("question") && !event.shiftKey) {
      event.preventDefault();
      byId("ask").requestSubmit();
    }
    if (isTextInput(event.target)) return;
    if (event.key === "/") {
      event.preventDefault();
      byId("question").focus();
      byId("question").select();
    }
    if (event.key === "j") step(1);
    if (event.key === "k") step(-1);
  });
}

/** Whether keys pressed in this element are letters of a text. */
const isTextInput = (element) =>
  element.matches?.("textarea, select, input:not([type=checkbox])") || element.isContentEditable;

/** Moves the focus to the next answer (`by` is 1) or to the previous answer (-1). */
function step(by) {
  const places = [...document.querySelectorAll("#result .words, #result .candidates summary")];
  if (places.length === 0) return;
  const now = places.findIndex((each) => each === document.activeElement);
  const next = now < 0 ? (by > 0 ? 0 : places.length - 1) : now + by;
  places[Math.min(Math.max(next, 0), places.length - 1)].focus();
}
