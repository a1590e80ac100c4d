// The elements of the page. Texts of tokens are only ever set as text, never as HTML.

export const page = document.documentElement;

export const byId = (id) => document.getElementById(id);

const THEME = "attention-atlas-theme";

/** The theme that the reader chose on a page before, where the writer of this one leaves it to the reader; a list
chooses another. changed: called after a choice. */
export function offerThemes(list, changed) {
  // A page in a frame may have no memory.
  const remember = (value) => {
    try {
      if (value) window.localStorage.setItem(THEME, value);
      return window.localStorage.getItem(THEME);
    } catch {
      return null;
    }
  };
  const values = Array.from(list.options, ({ value }) => value);
  if (page.dataset.theme === "system" && values.includes(remember())) page.dataset.theme = remember();
  list.value = page.dataset.theme;
  list.addEventListener("change", () => {
    page.dataset.theme = list.value;
    remember(list.value);
    changed();
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}

export function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}
