// Creates elements from names, properties and children. Texts are never parsed as markup.

/** Creates an element. Properties such as "role", "aria-…" and "data-…" become attributes. */
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

/** Returns the element with this id. */
export const byId = (id) => document.getElementById(id);

/** Shows a text in an element. Hides the element if the text is empty. */
export function showText(element, text) {
  element.textContent = text;
  element.hidden = text === "";
}
