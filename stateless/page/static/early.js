// Sends calls. No module, and the first script of the page: the question that the address names is on
// its way before anything else is loaded.
"use strict";

globalThis.winnow = {
  /** The key that calls carry; empty for none. */
  key: () => sessionStorage.getItem("winnow-key") ?? "",

  /** Remembers a key for as long as the tab is open. */
  setKey(value) {
    if (value) sessionStorage.setItem("winnow-key", value);
    else sessionStorage.removeItem("winnow-key");
  },

  /** The question that the address names, as in #q=who. It never leaves the browser by itself. */
  named: () => (new URLSearchParams(location.hash.slice(1)).get("q") ?? "").trim(),

  /** Sends a call; gives its response. */
  send(path, options) {
    const headers = {};
    if (options.body) headers["content-type"] = "application/json";
    if (this.key()) headers.authorization = `Bearer ${this.key()}`;
    return fetch(path, { ...options, headers, credentials: "omit", cache: "no-store" });
  },

  /** Sends a request for an answer, unless it is the one that is on its way already. */
  ask(request, signal) {
    const body = JSON.stringify(request);
    const early = this.early;
    this.early = null;
    if (early?.body === body) {
      signal.addEventListener("abort", () => early.controller.abort());
      return early.response;
    }
    early?.controller.abort();
    return this.send("v1/answer", { method: "POST", body, signal });
  },

  early: null,
};

if (winnow.named()) {
  const controller = new AbortController();
  const body = JSON.stringify({ question: winnow.named() });
  const response = winnow.send("v1/answer", { method: "POST", body, signal: controller.signal });
  response.catch(() => {}); // whoever asks for it is told
  winnow.early = { body, controller, response };
}
