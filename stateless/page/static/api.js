// The calls that this page makes: a question, and a look at the cluster.

import { seconds } from "./numbers.js";

const LOOK_MS = 5000;

/** An error that people can read. `violations` are of fields: {field, description}. */
export class Problem extends Error {
  constructor(message, { status = 0, violations = [], requestId = "" } = {}) {
    super(message);
    Object.assign(this, { status, violations, requestId });
  }
}

/** Asks a question; gives the reply. */
export const ask = (request, signal) => replyOf(winnow.ask(request, signal));

/** The cluster as the front sees it. What is shown is now, so a late reply is worth nothing. */
export const cluster = () =>
  replyOf(winnow.send("v1/cluster", { signal: AbortSignal.timeout(LOOK_MS) }));

async function replyOf(sent) {
  let response;
  try {
    response = await sent;
  } catch (error) {
    throw unreached(error);
  }
  const said = await response.json().catch((error) => {
    if (error instanceof SyntaxError) return null;
    throw unreached(error);
  });
  if (response.ok && said !== null) return said;
  throw problemOf(response.status, said ?? {});
}

/** What to say of a call without a reply; one that was given up needs no words. */
function unreached(error) {
  if (error.name === "AbortError") return error;
  if (error.name === "TimeoutError") return new Problem("The server does not reply.");
  return new Problem("The server cannot be reached. Try again.");
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
