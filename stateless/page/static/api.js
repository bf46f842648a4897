// The calls of this page: for answers, stored passages, documents, and the state of the cluster.

import { seconds } from "./numbers.js";

/** Timeout of a call for the state of the cluster. */
const CLUSTER_TIMEOUT_MS = 5000;

/**
 * An error with a message for users. `violations` name fields: {field, description}. `retryAfter`: seconds
 * after which the call may succeed; 0 if it will not.
 */
export class Problem extends Error {
  constructor(message, { status = 0, violations = [], requestId = "", retryAfter = 0 } = {}) {
    super(message);
    Object.assign(this, { status, violations, requestId, retryAfter });
  }
}

/** Sends a question; returns the reply. */
export const ask = (request, signal) => replyOf(winnow.ask(request, signal));

/** Returns the state of the cluster. A late reply would be outdated, so it is given up. */
export const cluster = () =>
  replyOf(winnow.send("v1/cluster", { signal: AbortSignal.timeout(CLUSTER_TIMEOUT_MS) }));

/** Returns a page of documents. `query` has the fields of ListDocumentsRequest. */
export const listDocuments = (query, signal) => replyOf(get("v1/documents", query, signal));

/** Returns a page of passages. `query` has the fields of ListPassagesRequest. */
export const listPassages = (query, signal) => replyOf(get("v1/passages", query, signal));

/** Returns the passages with these ids. */
export const getPassages = (ids, signal) =>
  replyOf(post("v1/passages:get", { ids }, signal));

/** Returns the OpenAPI description of the operations that this front serves. */
export const operations = (signal) => replyOf(winnow.send("openapi.json", { signal }));

/** Converts a document to passages. `request` has the fields of ConvertDocumentRequest. */
export const convertDocument = (request, signal) => replyOf(post("v1/documents:convert", request, signal));

/** Stores passages. */
export const putPassages = (request, signal) => replyOf(post("v1/passages", request, signal));

/** Deletes passages by filter. */
export const deleteWhere = (request, signal) => replyOf(post("v1/passages:deleteWhere", request, signal));

const get = (path, query, signal) => winnow.send(`${path}?${new URLSearchParams(query)}`, { signal });

const post = (path, request, signal) =>
  winnow.send(path, { method: "POST", body: JSON.stringify(request), signal });

async function replyOf(sent) {
  let response;
  try {
    response = await sent;
  } catch (error) {
    throw connectionError(error);
  }
  const body = await response.json().catch((error) => {
    if (error instanceof SyntaxError) return null;
    throw connectionError(error);
  });
  if (response.ok && body !== null) return body;
  throw problemOf(response.status, body ?? {});
}

/** Returns the error of a call without a reply. An AbortError stays as it is. */
function connectionError(error) {
  if (error.name === "AbortError") return error;
  if (error.name === "TimeoutError") return new Problem("The server does not reply.");
  return new Problem("The server cannot be reached. Try again.");
}

/** Converts problem+json to a Problem. */
function problemOf(status, body) {
  const again = Number(body.retryAfterSeconds ?? 0);
  const detail = body.detail || body.title || `The server replied with status ${status}.`;
  return new Problem(again ? `${detail} (try again in ${seconds(again)})` : detail, {
    status,
    violations: body.violations ?? [],
    requestId: body.requestId ?? "",
    retryAfter: again,
  });
}
