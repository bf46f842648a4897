// Shows the document from which a passage was cut, and the web address of the document.

import { make } from "./dom.js";
import { number } from "./numbers.js";

/** Metadata fields of a passage that a citation shows, or that only programs need. */
export const SOURCE_FIELDS = new Set([
  "document", "page", "heading", "start", "end", "url", "document_hash", "document_passages",
]);

/** Returns a citation such as "policy.pdf, page 4, Archive areas". */
export function citationText(source) {
  const page = source.page == null ? "" : `page ${source.page}`;
  return [source.document, page, source.headings?.at(-1)].filter(Boolean).join(", ");
}

/** Returns a paragraph that cites the document of an answer; null without a document. */
export function citation({ source, passage }) {
  if (!source) return null;
  const link = make("a", { href: documentAddress(source.document, passage?.id) }, citationText(source));
  return make("p", { className: "quiet source" }, link, original(source));
}

/** Returns the address on this page of a document, at a passage. */
export function documentAddress(name, passageId) {
  const place = `#document=${encodeURIComponent(name)}`;
  return passageId ? `${place}&passage=${encodeURIComponent(passageId)}` : place;
}

/** Returns a link to the document at its web address, as a sentence part; null without an address. */
export function original(source) {
  const address = originalAddress(source);
  if (!address) return null;
  return [" · ", make("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, "original")];
}

/** Returns the web address of a document, at the page if it is a PDF file; "" without an address. */
export function originalAddress({ url = "", page, document = "" }) {
  if (typeof url !== "string" || !/^https?:/i.test(url) || !URL.canParse(url)) return "";
  const { hash, pathname } = new URL(url);
  const isPdf = [pathname, document].some((each) => each.toLowerCase().endsWith(".pdf"));
  return isPdf && number(page) && !hash ? `${url.replace(/#$/, "")}#page=${page}` : url;
}
