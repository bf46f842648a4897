// Makes elements out of names, properties and children. A text is always text, never markup.

/** An element; a property whose name begins with "aria-" or "data-" is an attribute. */
export function make(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (/^(aria|data)-|^(role|for|scope|colspan)$/.test(key)) element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...children.flat(Infinity).filter((each) => each !== null && each !== undefined));
  return element;
}

/** The element with this id. */
export const byId = (id) => document.getElementById(id);

/** Shows a text in an element, or hides the element if there is none. */
export function tell(element, text) {
  element.textContent = text;
  element.hidden = text === "";
}
