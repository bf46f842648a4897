// Sends calls. This is the first script of the page and not a module, so that the question in the
// address is sent before anything else is loaded.
"use strict";

globalThis.winnow = {
  /** Returns the key that is sent with calls; empty for none. */
  key: () => sessionStorage.getItem("winnow-key") ?? "",

  /** Stores a key until the tab is closed. */
  setKey(value) {
    if (value) sessionStorage.setItem("winnow-key", value);
    else sessionStorage.removeItem("winnow-key");
  },

  /** Returns the question in the address, as in #q=who. Browsers do not send this part. */
  namedQuestion: () => (new URLSearchParams(location.hash.slice(1)).get("q") ?? "").trim(),

  /** The index in the address, as in ?index=docs; empty for the default index. */
  index: new URLSearchParams(location.search).get("index") ?? "",

  /** The tenant in the address, as in ?tenant=acme; empty if the key decides it. */
  tenant: new URLSearchParams(location.search).get("tenant") ?? "",

  /** Returns the path of a call for the index in the address. Converting a document needs no index. */
  pathOf(path) {
    if (!this.index || !path.startsWith("v1/") || path.startsWith("v1/documents:convert")) return path;
    return `v1/indexes/${encodeURIComponent(this.index)}/${path.slice("v1/".length)}`;
  },

  /** Sends a call; returns its response. */
  send(path, options) {
    const headers = {};
    if (options.body) headers["content-type"] = "application/json";
    if (this.key()) headers.authorization = `Bearer ${this.key()}`;
    // the state of the cluster is that of all tenants
    if (this.tenant && path !== "v1/cluster") headers["x-winnow-tenant"] = encodeURI(this.tenant);
    return fetch(this.pathOf(path), { ...options, headers, credentials: "omit", cache: "no-store" });
  },

  /** Sends a request for an answer. If this script has sent it already, returns that response. */
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

  /** The request that this script has sent, until `ask` takes it. */
  early: null,
};

if (winnow.namedQuestion()) {
  const controller = new AbortController();
  const body = JSON.stringify({ question: winnow.namedQuestion() });
  const response = winnow.send("v1/answer", { method: "POST", body, signal: controller.signal });
  response.catch(() => {}); // `ask` returns this response, and its caller handles the error
  winnow.early = { body, controller, response };
}
