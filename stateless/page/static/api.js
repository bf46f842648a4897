// The calls that this page makes: a question, and a look at the cluster.

import { seconds } from "./numbers.js";

const KEY = "winnow-key";

/** An error that people can read. `violations` are of fields: {field, description}. */
export class Problem extends Error {
  constructor(message, { status = 0, violations = [], requestId = "" } = {}) {
    super(message);
    Object.assign(this, { status, violations, requestId });
  }
}

/** The key that calls carry; empty for none. */
export const key = () => sessionStorage.getItem(KEY) ?? "";

/** Remembers a key for as long as the tab is open. */
export function setKey(value) {
  if (value) sessionStorage.setItem(KEY, value);
  else sessionStorage.removeItem(KEY);
}

/** Asks a question; gives the reply. */
export const ask = (request, signal) =>
  call("v1/answer", { method: "POST", body: JSON.stringify(request), signal });

/** The cluster as the front sees it. */
export const cluster = (signal) => call("v1/cluster", { signal });

async function call(path, options) {
  const headers = {};
  if (options.body) headers["content-type"] = "application/json";
  if (key()) headers.authorization = `Bearer ${key()}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers, credentials: "omit", cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The server cannot be reached. Try again.");
  }
  const said = await response.json().catch((error) => {
    if (error.name === "AbortError") throw error;
    return null;
  });
  if (response.ok && said !== null) return said;
  throw problemOf(response.status, said ?? {});
}

/** What a problem+json says, in one text. */
function problemOf(status, said) {
  const again = Number(said.retryAfterSeconds ?? 0);
  const detail = said.detail || said.title || `The server replied with status ${status}.`;
  return new Problem(again ? `${detail} (try again in ${seconds(again)})` : detail, {
    status,
    violations: said.violations ?? [],
    requestId: said.requestId ?? "",
  });
}
