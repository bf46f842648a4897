// Opens the list of documents or a document, and shows why that failed.

import { Problem } from "./api.js";
import { openDocument } from "./document.js";
import { openDocuments } from "./documents.js";
import { byId } from "./dom.js";
import { askForKey } from "./options.js";
import { showView } from "./views.js";

/** The AbortController of the place that is being opened or was opened last. */
let opening = new AbortController();

/** Opens a place. `shown`: the question whose reply is shown, and its answers, which may cite the place. */
export async function openPlace(place, { question, answers }) {
  opening.abort();
  const own = (opening = new AbortController());
  showView(place.view);
  byId("document-back").hidden = !question;
  byId("document-back").href = `#q=${encodeURIComponent(question)}`;
  const cites = (each) => each.passage?.id === place.passageId;
  try {
    if (place.view === "documents") await openDocuments(own.signal);
    else await openDocument(place, answers.find(cites) ?? null, own.signal);
  } catch (error) {
    if (own.signal.aborted) return;
    if (!(error instanceof Problem)) throw error;
    byId(`${place.view}-state`).textContent = error.message;
    if ([401, 403].includes(error.status)) askForKey(error.message);
  }
}
