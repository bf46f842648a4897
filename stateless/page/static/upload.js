// Adds documents to the index: the server converts a file to passages, and then stores the passages.

import { convertDocument, deleteWhere, operations, Problem, putPassages } from "./api.js";
import { documentFilter } from "./library.js";
import { number } from "./numbers.js";

const CONVERT = "/v1/documents:convert";
/** Maximum number of passages, and of characters of their JSON, in a call. */
const MOST_PASSAGES = 100;
const MOST_CHARACTERS = 500_000;
/** Maximum number of times that a refused call is sent again. */
const RETRIES = 20;

/** Whether this front converts and stores documents. */
export async function canUpload(signal) {
  return CONVERT in ((await operations(signal)).paths ?? {});
}

/**
 * Adds a file, or replaces the document of its name. `progress(stored, all)` is called after each call.
 * Returns the number of passages, and notes about what they lack. Throws a Problem. It is safe to try again.
 */
export async function upload(file, progress, signal) {
  const name = file.webkitRelativePath || file.name;
  const content = await base64(file);
  const converted = await patiently(() => convertDocument({ name, content }, signal));
  const passages = converted.passages ?? [];
  const positions = new Map();
  let stored = 0;
  progress(stored, passages.length);
  for (const batch of batches(passages)) {
    const { results = [] } = await patiently(() => putPassages({ passages: batch }, signal));
    const own = new Map();
    for (const { position } of results) keepLater(own, position);
    // of two batches the later one counts: positions of a tenant have no order
    for (const [shard, position] of own) positions.set(shard, position);
    progress((stored += batch.length), passages.length);
  }
  await deleteOthers(name, converted.documentHash, [...positions.values()], signal);
  return { passages: passages.length, notes: converted.notes ?? [] };
}

/** Keeps the later one of two positions of a shard. */
function keepLater(positions, position) {
  if (!position) return;
  const known = number(positions.get(position.shard)?.sequence);
  if (number(position.sequence) >= known) positions.set(position.shard, position);
}

/** Deletes the passages of an earlier version of the document. */
async function deleteOthers(name, hash, after, signal) {
  const filter = `${documentFilter(name)} and not document_hash = "${hash}"`;
  let reply;
  do {
    reply = await patiently(() => deleteWhere({ filter, after }, signal));
  } while (reply.complete === false);
}

/** Returns the content of a file in base64. */
function base64(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => reject(new Problem("The browser cannot read this file."));
    reader.readAsDataURL(file);
  });
}

/** Yields passages in batches that fit into a call. */
export function* batches(passages) {
  let batch = [];
  let size = 0;
  for (const passage of passages) {
    const own = JSON.stringify(passage).length;
    if (batch.length && (batch.length === MOST_PASSAGES || size + own > MOST_CHARACTERS)) {
      yield batch;
      batch = [];
      size = 0;
    }
    batch.push(passage);
    size += own;
  }
  if (batch.length) yield batch;
}

/** Sends a call again while the server is busy. */
async function patiently(call) {
  for (let tries = 0; ; tries += 1) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof Problem) || !error.retryAfter || tries >= RETRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, 1000 * error.retryAfter));
    }
  }
}
