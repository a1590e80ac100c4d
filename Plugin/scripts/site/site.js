// The search and the theme of the documents. Works from file://, without a network.
"use strict";

const input = document.getElementById("search");
const list = document.getElementById("found");
const button = document.getElementById("theme");
const MOST = 30;
let chosen = -1;

// What is stored stays on this machine; some browsers forbid it for files.
function stored(value) {
  try {
    if (value) localStorage.setItem("theme", value);
    return localStorage.getItem("theme");
  } catch {
    return value;
  }
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  button.textContent = theme === "dark" ? "Light" : "Dark";
  button.setAttribute("aria-label", `Switch to the ${button.textContent.toLowerCase()} theme`);
}

const system = matchMedia("(prefers-color-scheme: dark)");
setTheme(stored() ?? (system.matches ? "dark" : "light"));
system.addEventListener("change", () => stored() || setTheme(system.matches ? "dark" : "light"));
button.addEventListener("click", () => {
  setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
  stored(document.documentElement.dataset.theme);
});

// The index is read when it is first needed.
let loading = null;
function sections() {
  loading ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = "search.js";
    script.onload = () => done(SECTIONS.map(([title, heading, address, text]) =>
      ({ title, heading, address, text, names: `${title} ${heading}`.toLowerCase(), all: `${title} ${heading} ${text}`.toLowerCase() })));
    script.onerror = failed;
    document.head.append(script);
  });
  return loading;
}

// The sections that have every word, those with words in their headings first.
function find(all, words) {
  const found = [];
  for (const section of all) {
    if (!words.every(word => section.all.includes(word))) continue;
    let rank = 0;
    for (const word of words) {
      const place = section.names.indexOf(word);
      if (place >= 0) rank += 10 + (place === 0 || /\W/.test(section.names[place - 1]) ? 5 : 0);
      rank += Math.min(3, section.all.split(word).length - 1);
    }
    if (section.heading.toLowerCase() === words.join(" ")) rank += 50;
    found.push([rank, section]);
  }
  return found.sort((a, b) => b[0] - a[0]).slice(0, MOST).map(([, section]) => section);
}

// A text around the first word, with all words marked. Text stays text.
function excerpt(element, text, words) {
  const lower = text.toLowerCase();
  const first = Math.min(...words.map(word => lower.indexOf(word)).filter(place => place >= 0), text.length);
  const begin = first === text.length ? 0 : Math.max(0, first - 50);
  const part = text.slice(begin, begin + 160);
  const escaped = words.map(word => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  for (const piece of part.split(new RegExp(`(${escaped.join("|")})`, "gi"))) {
    const node = words.includes(piece.toLowerCase()) ? document.createElement("mark") : document.createElement("span");
    node.textContent = piece;
    if (piece) element.append(node);
  }
}

function choose(number) {
  const items = list.children;
  if (!items.length) return;
  chosen = (number + items.length) % items.length;
  for (const [i, item] of [...items].entries()) item.setAttribute("aria-selected", i === chosen);
  items[chosen].scrollIntoView({ block: "nearest" });
  input.setAttribute("aria-activedescendant", items[chosen].id);
}

function close() {
  list.hidden = true;
  input.setAttribute("aria-expanded", "false");
  input.removeAttribute("aria-activedescendant");
  chosen = -1;
}

function follow(address) {
  close();
  location.href = address;
}

async function search() {
  const asked = input.value;
  const words = asked.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return close();
  const found = find(await sections(), words);
  if (input.value !== asked) return;
  list.replaceChildren();
  for (const [i, section] of found.entries()) {
    const item = document.createElement("li");
    const heading = document.createElement("b");
    item.id = `found-${i}`;
    item.setAttribute("role", "option");
    item.dataset.address = section.address;
    heading.textContent = section.heading === section.title ? section.title : `${section.title}: ${section.heading}`;
    item.append(heading);
    excerpt(item, section.text, words);
    item.addEventListener("click", () => follow(section.address));
    list.append(item);
  }
  if (!found.length) {
    const item = document.createElement("li");
    item.id = "found-none";
    item.setAttribute("role", "option");
    item.setAttribute("aria-disabled", "true");
    item.textContent = "Nothing found";
    list.append(item);
  }
  list.hidden = false;
  input.setAttribute("aria-expanded", "true");
  chosen = -1;
  if (found.length) choose(0);
}

input.addEventListener("input", search);
input.addEventListener("focus", () => input.value && search());
input.addEventListener("keydown", event => {
  if (event.key === "ArrowDown") choose(chosen + 1);
  else if (event.key === "ArrowUp") choose(chosen - 1);
  else if (event.key === "Enter" && chosen >= 0) follow(list.children[chosen].dataset.address);
  else if (event.key === "Escape") { input.value = ""; close(); input.blur(); }
  else return;
  event.preventDefault();
});
document.addEventListener("keydown", event => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey) {
    event.preventDefault();
    input.focus();
    input.select();
  }
});
document.addEventListener("pointerdown", event => event.target.closest(".search") || close());
document.documentElement.dataset.status = "ready";
