// Lists the documents of the index, and finds them by name.

import { documentAddress } from "./citation.js";
import { byId, make } from "./dom.js";
import * as library from "./library.js";
import { count, counted, number } from "./numbers.js";
import { canUpload } from "./upload.js";
import * as uploads from "./uploads.js";

/** Maximum number of documents that are listed. */
const MOST = 200;

let known = { documents: [], complete: true };

/** Fetches the documents and lists them. Throws a Problem if that fails. */
export async function openDocuments(signal) {
  document.title = "Documents · Winnow";
  byId("documents-state").textContent = known.documents.length ? "" : "Loading…";
  byId("documents-find").focus();
  await refresh(signal);
  byId("upload").hidden = !(await canUpload(signal));
}

async function refresh(signal) {
  known = await library.documents(signal);
  list();
}

/** Starts listening to the field that finds documents by name, and for files. */
export function listen() {
  byId("documents-find").addEventListener("input", list);
  uploads.listen(refresh);
}

function list() {
  const wanted = folded(byId("documents-find").value.trim());
  const found = known.documents.filter((each) => folded(each.name).includes(wanted));
  byId("documents-list").replaceChildren(...found.slice(0, MOST).map(line));
  byId("documents-state").textContent = state(found);
}

/** Returns a name in lower case and without accents. */
const folded = (name) => name.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase();

function state(found) {
  if (known.documents.length === 0) {
    return "This index has no documents: no passage has the metadata field document.";
  }
  const all = known.complete
    ? counted(known.documents.length, "document")
    : `the first ${counted(known.documents.length, "document")}`;
  const parts = [found.length < known.documents.length ? `${count(found.length)} of ${all}.` : `${all}.`];
  if (found.length > MOST) parts.push(`The first ${MOST} are listed: write more of the name.`);
  return parts.join(" ").replace(/^t/, "T");
}

function line({ name, passages, expected }) {
  const isPart = expected !== undefined && number(expected) !== number(passages);
  const size = isPart ? `${count(passages)} of ${counted(expected, "passage")}` : counted(passages, "passage");
  return make(
    "li",
    {},
    make("a", { href: documentAddress(name) }, name),
    make("span", { className: "quiet figure" }, size),
  );
}
