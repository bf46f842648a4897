// Fetches the documents of the index, and the passages of a document in their order.

import { getPassages, listDocuments, listPassages } from "./api.js";

const PAGE_SIZE = 1000;
/** Maximum number of documents that are fetched. */
const MOST_DOCUMENTS = 5000;
/** Maximum number of pages that are fetched of a document. Of a longer one, a part is fetched. */
const MOST_PAGES = 4;
/** Characters of a part of a long document. */
const PART = 200_000;

/** Returns the documents by name, and whether these are all. */
export async function documents(signal) {
  const found = [];
  let pageToken = "";
  do {
    const page = await listDocuments({ pageSize: PAGE_SIZE, pageToken }, signal);
    found.push(...(page.documents ?? []));
    pageToken = page.nextPageToken ?? "";
  } while (pageToken && found.length < MOST_DOCUMENTS);
  return { documents: found, complete: !pageToken };
}

/** Returns the passage with this id; null if the index lacks it. */
export async function passageById(id, signal) {
  const { passages = [] } = await getPassages([id], signal);
  return passages[0] ?? null;
}

/** Returns the passages of a document in their order; of a long document, `isLong` and only some of them. */
export async function passagesOf(name, signal) {
  const { passages, complete } = await matching(documentFilter(name), signal);
  return { passages: inOrder(passages), isLong: !complete };
}

/** Returns the passages of the part of a document that contains an offset, with `start` and `end` of the part. */
export async function partOf(name, offset, signal) {
  const { start, end } = partAround(offset);
  const filter = `${documentFilter(name)} and start >= ${start} and start < ${end}`;
  const { passages } = await matching(filter, signal);
  return { passages: inOrder(passages), start, end };
}

async function matching(filter, signal) {
  const passages = [];
  let pageToken = "";
  let pages = 0;
  do {
    const page = await listPassages({ filter, pageSize: PAGE_SIZE, pageToken }, signal);
    passages.push(...(page.passages ?? []));
    pageToken = page.nextPageToken ?? "";
    pages += 1;
  } while (pageToken && pages < MOST_PAGES);
  return { passages, complete: !pageToken };
}

/** Returns the filter that selects the passages of a document. */
export const documentFilter = (name) =>
  `document = "${name.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`;

/** Returns the part that contains an offset. Parts begin at multiples of half their size. */
export function partAround(offset) {
  const start = Math.max(Math.floor((2 * offset) / PART) - 1, 0) * (PART / 2);
  return { start, end: start + PART };
}

/** Whether a passage knows its offset in the text of its document. */
export const hasStart = (passage) => typeof passage.metadata?.start === "number";

/** Ids end in the number of the passage, so 10 follows 9. */
const byId = new Intl.Collator("en", { numeric: true });

/** Sorts passages by their offset in the document, or by their ids if some have no offset. */
function inOrder(passages) {
  const order = passages.every(hasStart)
    ? (a, b) => a.metadata.start - b.metadata.start
    : (a, b) => byId.compare(a.id, b.id);
  return passages.toSorted(order);
}
