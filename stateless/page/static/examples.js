// Shows example questions, made of passages of a few documents.

import { listDocuments, listPassages, Problem } from "./api.js";
import { byId, make } from "./dom.js";
import { questionsOf } from "./example_questions.js";
import { documentFilter } from "./library.js";

/** Maximum number of examples that are shown. */
const MOST = 4;
/** Number of documents whose first passages are read for examples. */
const DOCUMENTS = 6;
const DOCUMENT_NAMES = 200;
const PASSAGES = 30;

/** Shows examples under the question, if there are any. The page works without them. */
export async function showExamples() {
  try {
    const questions = chosen((await samples()).map(questionsOf));
    const items = questions.map((each) =>
      make("li", {}, make("a", { href: `#q=${encodeURIComponent(each)}` }, each)),
    );
    if (items.length === 0) return;
    const place = byId("examples");
    place.replaceChildren(make("h2", {}, "Questions that this index may answer"), make("ul", {}, items));
    place.hidden = byId("result").hasChildNodes() || byId("result").hidden;
  } catch (error) {
    if (!(error instanceof Problem)) throw error;
  }
}

/** Returns passages of some documents, a list for each; of any passages, if there are no documents. */
async function samples() {
  const { documents = [] } = await listDocuments({ pageSize: DOCUMENT_NAMES });
  const filters = documents.length ? some(documents).map((each) => documentFilter(each.name)) : [""];
  const pages = await Promise.all(
    filters.map((filter) => listPassages({ filter, pageSize: PASSAGES * (documents.length ? 1 : MOST) })),
  );
  return pages.map((page) => page.passages ?? []);
}

/** Returns a few documents, which differ from visit to visit. */
function some(documents) {
  const step = Math.max(Math.floor(documents.length / DOCUMENTS), 1);
  const first = Math.floor(Math.random() * step);
  return documents.filter((_, place) => place % step === first).slice(0, DOCUMENTS);
}

/** Returns the first questions of each list in turn, each question once. */
function chosen(lists) {
  const turns = Math.max(0, ...lists.map((each) => each.length));
  const all = Array.from({ length: turns }, (_, turn) => lists.map((each) => each[turn])).flat();
  return [...new Set(all.filter(Boolean))].slice(0, MOST);
}
