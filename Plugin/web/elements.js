// The elements of the page. Texts of tokens are only ever set as text, never as HTML.

export const page = document.documentElement;

export const byId = (id) => document.getElementById(id);

export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}
